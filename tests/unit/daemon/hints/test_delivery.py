"""Which hints come after reports of edits, and which end the rest of a page."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import trio

from crawld.core.change.reliability import Reliability
from crawld.core.revisit.due import BELATED_S, MISSED_S, PROMPT_S, RETRY_S, SOON_S, Due
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import RELIABLE_TRUST, PageQueue
from crawld.daemon.frontier.rank import Rank
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.daemon.hints.delivery import HintDelivery, _later, is_indirect, trust_of
from crawld.daemon.schedule.slots import HostSlot
from crawld.store.changes import fan_out, hint, hint_source
from crawld.store.changes.hint import AcceptedHint, OutstandingHint
from crawld.store.changes.wiki_requisite import StaleRequisite
from crawld.store.frontier.removal import RemovedPage
from tests.unit.daemon.fake_hosts import on_autojump_clock

NOW = 1_790_000_000.0


def row(kind, *, real):
    """Return a source with a hundred judged hints, of which so many were real."""
    evidence = Reliability()
    for number in range(100):
        evidence.learn_visit(1, changed=number < real)
    return SimpleNamespace(kind=kind, evidence=json.dumps(evidence.as_dict()))


@pytest.mark.parametrize(
    ("kind", "real", "indirect"),
    [
        ("recent_changes", 99, False),
        ("feed", 99, False),
        ("sitemap", 10, True),
        ("fan_out", 99, True),
        ("gap", 99, True),
    ],
)
def test_guesses_and_doubtful_reports_come_after_edits(kind, real, indirect):
    source = row(kind, real=real)
    assert is_indirect(source.kind, trust_of(source)) == indirect


def test_users_of_templates_are_visited_although_most_edits_of_templates_show_nothing():
    assert trust_of(row("fan_out", real=2)) == RELIABLE_TRUST
    assert trust_of(row("sitemap", real=2)) < RELIABLE_TRUST


class KnownHost:
    """What delivery uses of a crawl: one host with the pages 1 and 2 of a site, and a clock."""

    def __init__(self):
        self.queue = PageQueue(1, 1, "index", discovery_share=0.5, min_revisit_s=3600.0)
        pages = np.array([1, 2, 3], np.int64)
        self.queue.load_visited(VisitedPages(pages, np.full(3, NOW - 86_400.0)), NOW)
        self.host = HostState(1, HostSlot("wiki.test", trio.current_time()))
        self.host.pages[1] = self.queue
        state = SimpleNamespace(
            hosts={"wiki.test": self.host}, schedule=SimpleNamespace(wake=lambda slot: None)
        )
        clock = SimpleNamespace(now=lambda: NOW)
        parts = dict.fromkeys(("database", "workers", "analyser", "rng", "config"))
        parts["database"] = self
        self.delivery = HintDelivery(SimpleNamespace(state=state, clock=clock, **parts))
        self.outstanding = []
        self.listed = {}

    async def read(self, function, **_):
        """Return rows as of a start, at which few hints are outstanding."""
        sources = [SimpleNamespace(hint_source_id=1, kind="recent_changes", evidence=None)]
        sources.append(SimpleNamespace(hint_source_id=2, kind="probe", evidence=None))
        sources.append(SimpleNamespace(hint_source_id=3, kind="fan_out", evidence=None))
        known = {hint_source.list_sources: sources, fan_out.users_by_time: self.listed}
        return {**known, hint.list_outstanding: self.outstanding}[function]

    @property
    def order(self):
        """The pages in the order of their turns, with their due times after now."""
        found = []
        while (due_at := self.queue.due_at(NOW)) < math.inf:
            found.append((self.queue.take(NOW), due_at - NOW))
        return found


@on_autojump_clock
async def test_a_page_that_was_replaced_is_due_before_edits_and_a_deletion_after_them():
    known = KnownHost()
    source = SimpleNamespace(host="wiki.test", kind="recent_changes", evidence=None)
    accepted = [
        AcceptedHint(page, NOW - 4.0, NOW - 3.0, 1, NOW - 86_400.0, None, None, 1)
        for page in (1, 2, 3)
    ]
    await known.delivery.deliver(source, accepted, frozenset({3}))
    known.delivery.confirm(source, [RemovedPage(1, 1)])
    assert known.order == [(3, 0.0), (2, SOON_S - 4.0)]
    assert known.queue.rank is Rank.REVISIT
    assert known.queue.take(NOW) == 1


@on_autojump_clock
async def test_a_picture_for_dense_screens_has_no_due_time():
    known = KnownHost()
    images = PageQueue(1, 1, "uniform", discovery_share=0.5, min_revisit_s=3600.0, requisites=True)
    known.host.requisites[1] = images
    for page in (501, 502):
        images.load_retry(page, NOW + 86_400.0)
    known.delivery.refresh([StaleRequisite(501, 1, 1, is_dense=True), StaleRequisite(502, 1, 1)])
    assert images.due_at(NOW) == NOW + RETRY_S
    assert [images.take(NOW) for _ in range(3)] == [502, 501, None]


@on_autojump_clock
async def test_an_edit_after_the_restoration_of_a_page_does_not_wait_for_its_confirmation():
    known = KnownHost()
    source = SimpleNamespace(host="wiki.test", kind="recent_changes", evidence=None)
    known.delivery.confirm(source, [RemovedPage(1, 1)])
    edited = AcceptedHint(1, NOW - 2.0, NOW - 1.0, 1, NOW - 86_400.0, None, None, 1)
    await known.delivery.deliver(source, [edited])
    assert known.order == [(1, PROMPT_S)]


@on_autojump_clock
async def test_a_start_lets_removed_pages_wait_for_edits_however_many_sources_report_them():
    known = KnownHost()
    known.outstanding = [
        OutstandingHint(page, 1, 1, source, NOW - 9.0, NOW - 8.0, NOW - 7.0, 1, None, page == 1)
        for page, source in ((1, 1), (1, 2), (2, 1))
    ]
    assert await known.delivery.restore() == 3
    assert known.order == [(2, PROMPT_S - 7.0)]
    assert known.queue.rank is Rank.REVISIT
    assert known.queue.take(NOW) == 1


@pytest.mark.parametrize("at_start", [False, True])
@on_autojump_clock
async def test_a_change_that_was_reported_late_keeps_its_due_time_whatever_is_edited_later(
    at_start,
):
    known = KnownHost()
    source = SimpleNamespace(host="wiki.test", kind="recent_changes", evidence=None)
    # Page 1 was changed in an outage, and again at its end; page 2 at its end only.
    late, prompt = (1, NOW - 50.0, NOW - 1.0), (2, NOW - 1.0, NOW - 1.0)
    if at_start:
        known.outstanding = [
            OutstandingHint(each[0], 1, 1, 1, *each[1:], NOW, 1) for each in (late, prompt)
        ]
        await known.delivery.restore()
    else:
        accepted = [
            AcceptedHint(*each, 1, NOW - 86_400.0, None, None, 1) for each in (late, prompt)
        ]
        await known.delivery.deliver(source, accepted)
    assert known.queue.due_at(NOW) == NOW - 1.0 + SOON_S
    assert known.queue.due_at(NOW + SOON_S) == NOW + PROMPT_S
    assert known.queue.due_at(NOW + 50.0) == NOW + BELATED_S
    assert known.queue.take(NOW + 50.0) == 1
    assert known.queue.due_at(NOW + 50.0) == NOW + PROMPT_S + MISSED_S


@on_autojump_clock
async def test_users_of_a_template_of_few_users_are_due_first():
    known = KnownHost()
    source = row("fan_out", real=99)
    source.host = "wiki.test"
    hints = [
        AcceptedHint(page, NOW - 4.0, NOW - 3.0, 1, NOW - 86_400.0, None, None, 1)
        for page in (1, 2, 3)
    ]
    elsewhere = [hints[0]._replace(site_id=2)] * 50
    await known.delivery.deliver(source, [*hints[:2], *elsewhere])
    await known.delivery.deliver(source, hints[2:])
    assert known.queue.due_at(NOW) == math.inf  # before edits they never come
    assert known.queue.take(NOW) == 3


def users(changed_at, *listings):
    """Return hints of pages 1, 2, ... by when each was listed first and last as a user."""
    return [
        OutstandingHint(page, 1, 1, 3, changed_at, last_at, first_at, 1)
        for page, (first_at, last_at) in enumerate(listings, 1)
    ]


@on_autojump_clock
async def test_after_a_start_a_user_of_two_templates_is_due_with_that_of_few_users():
    known = KnownHost()
    known.listed = {(3, NOW - 300.0): 200, (3, NOW - 10.0): 50, (3, NOW - 5.0): 5}
    known.outstanding = users(
        NOW - 310.0, (NOW - 300.0, NOW - 300.0), (NOW - 300.0, NOW - 10.0), (NOW - 5.0, NOW - 5.0)
    )
    await known.delivery.restore()
    assert [known.queue.take(NOW) for _ in range(3)] == [2, 3, 1]


@on_autojump_clock
async def test_after_a_start_the_last_users_of_a_large_template_wait_as_long_as_the_others():
    known = KnownHost()
    # The template was listed twice, and most of its users were visited between the listings.
    known.listed = {(3, NOW - 600.0): 20, (3, NOW - 300.0): 200, (3, NOW - 10.0): 50}
    known.outstanding = users(
        NOW - 610.0,
        (NOW - 600.0, NOW - 300.0),
        (NOW - 10.0, NOW - 10.0),
        (NOW - 300.0, NOW - 300.0),
    )
    await known.delivery.restore()
    assert [known.queue.take(NOW) for _ in range(3)] == [2, 1, 3]


@on_autojump_clock
async def test_guesses_have_no_due_time():
    known = KnownHost()
    source = row("gap", real=99)
    source.host = "wiki.test"
    known.queue.set_weight(3, 50.0)
    hints = [
        AcceptedHint(page, NOW - lag_s, NOW - 3.0, 1, NOW - 86_400.0, None, None, 1)
        for page, lag_s in ((1, 4.0), (2, 4.0), (3, 40.0))
    ]
    await known.delivery.deliver(source, hints)
    assert known.queue.take(NOW) == 3  # the most valuable, though an edit of it could wait longer


def test_a_change_that_a_slow_response_did_not_show_brings_a_visit():
    queue = PageQueue(1, 1, "index", discovery_share=0.5, min_revisit_s=0.0)
    queue.load_visited(VisitedPages(np.array([1]), np.array([NOW])), NOW)
    # The store accepts it: the response came nine seconds after the request.
    found = AcceptedHint(1, NOW - 3, NOW - 1, 1, NOW, None, None, 1)
    queue.add_hint(1, found.last_at, 1.0, due=Due.by(NOW + 15))
    assert queue.due_at(NOW + 1) == math.inf
    queue.add_hint(1, _later(found), 1.0, due=Due.by(NOW + 15))
    assert queue.due_at(NOW + 1) == NOW + 15
