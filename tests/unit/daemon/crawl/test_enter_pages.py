"""In which order the new pages and requisites of a visit are queued."""

from types import SimpleNamespace

import pytest

from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.store.frontier.caps import NewPage


def queue(*, requisites):
    settings = {"discovery_share": 0.5, "min_revisit_s": 60.0, "requisites": requisites}
    return PageQueue(1, 1, "uniform", **settings)


@pytest.mark.parametrize(("soon", "images"), [(True, [12, 14, 20]), (False, [20, 12, 14])])
def test_requisites_go_to_the_front_in_their_order_and_pages_behind(soon, images):
    held = {False: queue(requisites=False), True: queue(requisites=True)}
    for each, page in zip(held.values(), (10, 20), strict=True):
        each.add_new([page])
    state = SimpleNamespace(
        _queue_of=lambda page: (SimpleNamespace(slot=None), held[page.requisite]),
        schedule=SimpleNamespace(wake=lambda slot: None),
    )
    found = [
        NewPage(number, 1, 1, 1, 0, f"http://a.test/{number}", requisite=number % 2 == 0)
        for number in (11, 12, 13, 14)
    ]
    CrawlState.enter_pages(state, found, soon=soon)
    assert list(held[False].ahead) == [10, 11, 13]
    assert list(held[True].ahead) == images
