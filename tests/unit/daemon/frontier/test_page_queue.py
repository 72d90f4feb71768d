"""The pages of one host: who comes next, and where each goes after its visit."""

import numpy as np
import pytest

from crawld.core.revisit.policies import VisitObservation
from crawld.daemon.frontier.page_queue import LOOK_AHEAD, PageQueue, VisitedPages

NOW = 1_780_000_000.0
REST_S = 3600.0
CHANGED = VisitObservation(changed=True)


def pages_of(*, visited=0, share=0.5, rested_s=2 * REST_S):
    """Return pages numbered from 1 that were all visited so long ago, one second apart."""
    pages = PageQueue(1, 1, "uniform", discovery_share=share, min_revisit_s=REST_S)
    if visited:
        numbers = np.arange(1, visited + 1, dtype=np.int64)
        pages.load_visited(VisitedPages(numbers, NOW - rested_s - visited + numbers), NOW)
    return pages


def turns(pages, count, now=NOW):
    return [pages.take(now) for _ in range(count)]


@pytest.mark.parametrize(
    ("share", "new"), [(0.0, 0), (0.25, 100), (0.5, 200), (0.9, 360), (1.0, 400)]
)
def test_new_pages_and_revisits_share_the_turns(share, new):
    pages = pages_of(visited=1000, share=share)
    pages.more = True
    pages.refill(list(range(10_001, 11_001)), asked=2000)
    taken = turns(pages, 400)
    assert sum(page > 10_000 for page in taken) == pytest.approx(400 * share, abs=2)
    # and at any time, not first the ones and then the others
    assert sum(page > 10_000 for page in taken[:100]) == pytest.approx(100 * share, abs=2)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_whoever_is_alone_has_all_turns(share):
    alone = pages_of(visited=10, share=share)
    assert turns(alone, 11) == [*range(1, 11), None]
    fresh = pages_of(share=share)
    fresh.add_new(range(1, 11))
    assert turns(fresh, 11) == [*range(1, 11), None]


def test_a_long_time_alone_is_not_made_up_for():
    pages = pages_of(share=0.5)
    pages.add_new(range(1, 101))
    turns(pages, 100)
    for page in range(1, 101):
        pages.visited(page, NOW, CHANGED)
    pages.add_new(range(201, 301))
    later = turns(pages, 40, NOW + REST_S)
    assert sum(page <= 100 for page in later) == pytest.approx(20, abs=2)


def test_a_page_rests_after_its_visit():
    pages = pages_of(visited=1)
    assert turns(pages, 2) == [1, None]
    assert pages.wanted_at(NOW) is None
    pages.visited(1, NOW, CHANGED)
    assert pages.wanted_at(NOW) == NOW + REST_S
    assert pages.take(NOW + REST_S - 1.0) is None
    assert pages.take(NOW + REST_S) == 1


def test_a_report_to_rely_on_ends_the_rest_of_its_page():
    pages = pages_of(visited=3)
    turns(pages, 3)
    for page in (1, 2, 3):
        pages.visited(page, NOW + page, CHANGED)
    pages.add_hint(1, NOW, trust=1.0)  # that is what the visit saw
    pages.add_hint(2, NOW + 60, trust=1.0)
    pages.add_hint(3, NOW + 60, trust=0.1)
    assert pages.wanted_at(NOW + 61) == NOW + 61
    assert turns(pages, 2, NOW + 61) == [2, None]
    assert pages.wanted_at(NOW + 61) == NOW + 1 + REST_S
    assert set(turns(pages, 3, NOW + 3 + REST_S)) == {1, 3, None}


def test_after_a_start_young_pages_rest_on_and_a_future_visit_is_not_believed():
    pages = pages_of()
    instants = np.array([NOW - 2 * REST_S, NOW - 600.0, NOW + 99 * REST_S])
    pages.load_visited(VisitedPages(np.array([1, 2, 3]), instants), NOW)
    assert turns(pages, 2) == [1, None]
    assert pages.wanted_at(NOW) == NOW - 600.0 + REST_S
    assert turns(pages, 3, NOW + REST_S) == [2, 3, None]


def test_a_failed_page_comes_at_its_own_instant_and_before_the_policy():
    pages = pages_of(visited=3)
    page = pages.take(NOW)
    pages.retry(page, NOW + 60.0)
    assert pages.wanted_at(NOW) == NOW  # the others
    assert turns(pages, 3, NOW + 59.0) == [2, 3, None]
    assert pages.wanted_at(NOW + 59.0) == NOW + 60.0
    assert turns(pages, 2, NOW + 60.0) == [1, None]


def test_retries_of_a_start_come_in_order():
    pages = pages_of()
    for page, after_s in ((1, 30.0), (2, 10.0), (3, 20.0)):
        pages.load_retry(page, NOW + after_s)
    assert pages.wanted_at(NOW) == NOW + 10.0
    assert turns(pages, 4, NOW + 25.0) == [2, 3, None, None]


def test_a_page_given_back_is_the_next():
    pages = pages_of(visited=3)
    pages.add_new([11, 12])
    new, old = turns(pages, 2)
    assert {new, old} == {11, 1}
    pages.put_back(old)
    pages.put_back(new)
    assert set(turns(pages, 2)) == {11, 1}
    pages.retry(1, 0.0)
    retried = pages.take(NOW)
    pages.put_back(retried)
    assert retried in turns(pages, 3)


def test_a_page_to_be_read_twice_comes_at_once():
    pages = pages_of(visited=3)
    page = pages.take(NOW)
    pages.visit_again(page)
    assert pages.wanted_at(NOW) == NOW
    assert pages.take(NOW) == page


def test_a_refill_brings_each_page_once():
    pages = pages_of()
    frontier = list(range(1, 1001))
    pages.add_new(frontier)
    assert pages.more
    seen = []
    while pages.wanted_at(NOW) is not None:
        if pages.wants_refill:
            asked = LOOK_AHEAD + len(pages.held)
            waiting = [page for page in frontier if page not in seen[:-10]]  # ten unrecorded
            pages.refill(waiting[:asked], asked=asked)
        page = pages.take(NOW)
        if page is not None:
            seen.append(page)
        if len(seen) > 10:
            pages.mark_recorded(seen[-11])
    assert seen == frontier


def test_the_look_ahead_is_bounded():
    pages = pages_of()
    pages.add_new(range(10 * LOOK_AHEAD))
    assert len(turns(pages, LOOK_AHEAD + 1)) == LOOK_AHEAD + 1
    assert pages.take(NOW) is None
    assert pages.more


def test_pages_wanted_soon_go_first_and_none_twice():
    pages = pages_of()
    pages.add_new(range(5))
    assert turns(pages, 1) == [0]
    pages.add_new([3, 0, 9, 3], soon=True)
    assert turns(pages, 6) == [3, 9, 1, 2, 4, None]
    # What the file brings anew is known by then.
    pages.refill([1, 3, 9, 10], asked=10)
    assert turns(pages, 2) == [10, None]


def test_a_page_that_was_visited_before_it_is_wanted_soon_is_not_visited_twice():
    pages = pages_of(visited=1)
    pages.add_new([2, 3, 4])
    assert turns(pages, 4) == [2, 1, 3, 4]
    for page in (2, 3, 4):
        pages.mark_recorded(page)
    pages.visited(2, NOW, CHANGED)
    pages.retry(3, NOW + REST_S)
    pages.visit_again(4)
    pages.add_new([1, 2, 3, 4, 5], soon=True)
    assert turns(pages, 3) == [4, 5, None]


def test_only_what_the_policy_chooses_is_lent():
    pages = pages_of(visited=2)
    pages.add_new([11])
    pages.load_retry(12, NOW - 1.0)
    assert pages.revisit_at(NOW) == NOW
    lent = [pages.select(NOW) for _ in range(3)]
    assert lent == [1, 2, None]
    assert pages.revisit_at(NOW) is None
    pages.put_back(2)
    assert pages.select(NOW) == 2
    pages.visited(1, NOW, CHANGED)
    assert pages.revisit_at(NOW) == NOW + REST_S
    assert sorted(turns(pages, 2)) == [11, 12]


def test_what_is_left_out_stays_out_until_the_scopes_change():
    pages = pages_of(visited=2)
    pages.add_new([11])
    for page in turns(pages, 3):
        pages.leave_out(page)
    assert pages.wanted_at(NOW + 99 * REST_S) is None
    pages.reconsider()
    assert pages.wanted_at(NOW) == NOW
    assert pages.wants_refill
    pages.refill([11], asked=LOOK_AHEAD)
    assert set(turns(pages, 3)) == {1, 2, 11}


def test_what_is_forgotten_does_not_come_back():
    pages = pages_of(visited=2)
    pages.drop(pages.take(NOW))
    pages.reconsider()
    assert turns(pages, 2) == [2, None]
