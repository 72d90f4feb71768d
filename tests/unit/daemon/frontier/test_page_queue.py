"""The page queue of one site and host: which page is next, and where pages go after a visit."""

import math

import numpy as np
import pytest

from crawld.core.revisit.due import RETRY_S, Due
from crawld.core.revisit.policies import UniformPolicy, VisitObservation
from crawld.daemon.frontier.look_ahead import LOOK_AHEAD
from crawld.daemon.frontier.ordered_pages import LOADED_LATER
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.rank import Rank
from crawld.daemon.frontier.revisit_queue import VisitedPages

NOW = 1_780_000_000.0
REST_S = 3600.0
CHANGED = VisitObservation(changed=True)


def make_queue(*, visited=0, share=0.5, rested_s=2 * REST_S, policy="uniform"):
    """Return a queue of pages numbered from 1, visited `rested_s` ago, one second apart."""
    queue = PageQueue(1, 1, policy, discovery_share=share, min_revisit_s=REST_S)
    if visited:
        numbers = np.arange(1, visited + 1, dtype=np.int64)
        queue.load_visited(VisitedPages(numbers, NOW - rested_s - visited + numbers), NOW)
    return queue


def take(queue, count, now=NOW):
    """Return the pages of the next turns; None for a turn without a page."""
    return [queue.take(now) for _ in range(count)]


@pytest.mark.parametrize(("visited", "at_start"), [(LOADED_LATER, 0), (LOADED_LATER + 1, 1)])
def test_a_start_makes_only_the_policies_of_large_hosts(visited, at_start):
    made = []

    def make():
        made.append(UniformPolicy())
        return made[-1]

    queue = PageQueue(1, 1, "uniform", discovery_share=0.5, min_revisit_s=REST_S)
    queue.factories = {"uniform": make}
    numbers = np.arange(1, visited + 1, dtype=np.int64)
    queue.load_visited(VisitedPages(numbers, NOW - 9e5 + numbers), NOW)
    assert queue.wanted_at(NOW) == NOW
    assert queue.rank is Rank.REVISIT
    assert math.isinf(queue.due_at(NOW))
    assert math.isinf(queue.affected_due_at(NOW))
    assert not queue.has_stale
    assert len(made) == at_start
    assert take(queue, 2) == [1, 2]
    assert len(queue.policy) == visited
    assert len(made) == 1


@pytest.mark.parametrize(
    ("share", "new"), [(0.0, 0), (0.25, 100), (0.5, 200), (0.9, 360), (1.0, 400)]
)
def test_new_pages_and_revisits_share_the_turns(share, new):
    queue = make_queue(visited=1000, share=share)
    queue.ahead.more = True
    queue.ahead.refill(list(range(10_001, 11_001)), asked=2000)
    taken = take(queue, 400)
    assert sum(page > 10_000 for page in taken) == pytest.approx(400 * share, abs=2)
    # The share also holds for the first turns.
    assert sum(page > 10_000 for page in taken[:100]) == pytest.approx(100 * share, abs=2)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_visited_or_new_pages_alone_get_all_turns(share):
    visited = make_queue(visited=10, share=share)
    assert take(visited, 11) == [*range(1, 11), None]
    new = make_queue(share=share)
    new.add_new(range(1, 11))
    assert take(new, 11) == [*range(1, 11), None]


def test_turns_without_the_other_kind_are_not_compensated_later():
    queue = make_queue(share=0.5)
    queue.add_new(range(1, 101))
    take(queue, 100)
    for page in range(1, 101):
        queue.visited(page, NOW, CHANGED)
    queue.add_new(range(201, 301))
    later = take(queue, 40, NOW + REST_S)
    assert sum(page <= 100 for page in later) == pytest.approx(20, abs=2)


def test_a_page_rests_after_its_visit():
    queue = make_queue(visited=1)
    assert take(queue, 2) == [1, None]
    assert queue.wanted_at(NOW) is None
    queue.visited(1, NOW, CHANGED)
    assert queue.wanted_at(NOW) == NOW + REST_S
    assert queue.take(NOW + REST_S - 1.0) is None
    assert queue.take(NOW + REST_S) == 1


def test_a_clock_that_is_set_back_does_not_prolong_a_rest_by_a_day():
    queue = make_queue(visited=2)
    for page in (queue.take(NOW), queue.take(NOW)):
        queue.visited(page, NOW, CHANGED)
    set_back = NOW - 86_400.0
    assert queue.take(set_back) is None
    assert queue.wanted_at(set_back) == set_back + REST_S
    assert queue.take(set_back + REST_S - 1.0) is None
    assert {queue.take(set_back + REST_S) for _ in range(2)} == {1, 2}


def test_a_reliable_hint_ends_the_rest_of_its_page():
    queue = make_queue(visited=3)
    take(queue, 3)
    for page in (1, 2, 3):
        queue.visited(page, NOW + page, CHANGED)
    queue.add_hint(1, NOW, trust=1.0)  # no later than the visit
    queue.add_hint(2, NOW + 60, trust=1.0)
    queue.add_hint(3, NOW + 60, trust=0.1)
    assert queue.wanted_at(NOW + 61) == NOW + 61
    assert take(queue, 2, NOW + 61) == [2, None]
    assert queue.wanted_at(NOW + 61) == NOW + 1 + REST_S
    assert set(take(queue, 3, NOW + 3 + REST_S)) == {1, 3, None}


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(("changed_at", "again"), [(NOW + 2, True), (NOW + 9, True), (NOW, False)])
def test_a_change_reported_during_a_visit_brings_another_one(is_new, changed_at, again):
    queue = make_queue(policy="index", visited=0 if is_new else 1)
    if is_new:
        queue.add_new([1])
    assert queue.take(NOW + 1) == 1
    assert queue.first_visits == ({1} if is_new else set())
    queue.add_hint(1, changed_at, trust=1.0, due=Due.by(NOW + 20))
    queue.due_at(NOW + 4)  # as at the turn of another page
    queue.mark_recorded(1)
    queue.visited(1, NOW + 5, CHANGED, asked_at=NOW + 1)
    assert queue.due_at(NOW + 6) == (NOW + 20 if again else math.inf)
    assert queue.take(NOW + 6) == (1 if again else None)
    assert not queue.first_visits


def test_a_page_put_back_keeps_a_change_reported_meanwhile():
    queue = make_queue(policy="index", visited=1)
    assert queue.take(NOW) == 1
    queue.add_hint(1, NOW + 1, trust=1.0, due=Due.by(NOW + 20))
    queue.put_back(1)
    assert queue.due_at(NOW + 2) == NOW + 20


def test_after_a_start_pages_go_on_resting_and_visits_in_the_future_count_as_now():
    queue = make_queue()
    visited_at = np.array([NOW - 2 * REST_S, NOW - 600.0, NOW + 99 * REST_S])
    queue.load_visited(VisitedPages(np.array([1, 2, 3]), visited_at), NOW)
    assert take(queue, 2) == [1, None]
    assert queue.wanted_at(NOW) == NOW - 600.0 + REST_S
    assert take(queue, 3, NOW + REST_S) == [2, 3, None]


@pytest.mark.parametrize(
    ("changed_at", "gone_at", "is_back"),
    [(NOW + 5, NOW, True), (NOW - 5, NOW, False), (NOW + 5, math.inf, False)],
)
def test_a_hint_during_the_visit_of_a_gone_page_says_that_it_is_back(changed_at, gone_at, is_back):
    queue = make_queue(visited=1)
    assert queue.take(NOW) == 1
    queue.add_hint(1, changed_at, 1.0)
    queue.retry(1, NOW + 86_400.0, gone_at=gone_at)
    assert queue.take(NOW + 6) == (1 if is_back else None)


def test_a_failed_page_comes_at_its_retry_time_before_pages_of_the_policy():
    queue = make_queue(visited=3)
    page = queue.take(NOW)
    queue.retry(page, NOW + 60.0)
    assert queue.wanted_at(NOW) == NOW  # the others
    assert take(queue, 3, NOW + 59.0) == [2, 3, None]
    assert queue.wanted_at(NOW + 59.0) == NOW + 60.0
    assert take(queue, 2, NOW + 60.0) == [1, None]


def test_loaded_retries_come_in_order():
    queue = make_queue()
    for page, after_s in ((1, 30.0), (2, 10.0), (3, 20.0)):
        queue.load_retry(page, NOW + after_s)
    assert queue.wanted_at(NOW) == NOW + 10.0
    assert take(queue, 4, NOW + 25.0) == [2, 3, None, None]


def test_a_page_put_back_is_next():
    queue = make_queue(visited=3)
    queue.add_new([11, 12])
    new, old = take(queue, 2)
    assert {new, old} == {11, 1}
    queue.put_back(old)
    queue.put_back(new)
    assert set(take(queue, 2)) == {11, 1}
    queue.retry(1, 0.0)
    retried = queue.take(NOW)
    queue.put_back(retried)
    assert retried in take(queue, 3)


def test_a_page_to_visit_again_comes_in_the_next_turn():
    queue = make_queue(visited=3)
    page = queue.take(NOW)
    queue.visit_again(page)
    assert queue.wanted_at(NOW) == NOW
    assert queue.take(NOW) == page


def test_refills_return_each_page_once():
    queue = make_queue()
    frontier = list(range(1, 1001))
    queue.add_new(frontier)
    assert queue.ahead.more
    seen = []
    while queue.wanted_at(NOW) is not None:
        if queue.ahead.wants_refill:
            limit = LOOK_AHEAD + len(queue.ahead.held)
            waiting = [page for page in frontier if page not in seen[:-10]]  # ten not recorded yet
            queue.ahead.refill(waiting[:limit], asked=limit)
        page = queue.take(NOW)
        if page is not None:
            seen.append(page)
        if len(seen) > 10:
            queue.mark_recorded(seen[-11])
    assert seen == frontier


def test_the_look_ahead_is_bounded():
    queue = make_queue()
    queue.add_new(range(10 * LOOK_AHEAD))
    assert len(take(queue, LOOK_AHEAD + 1)) == LOOK_AHEAD + 1
    assert queue.take(NOW) is None
    assert queue.ahead.more


def test_pages_added_soon_go_first_and_none_twice():
    queue = make_queue()
    queue.add_new(range(5))
    assert take(queue, 1) == [0]
    queue.add_new([3, 0, 9, 3], soon=True)
    assert take(queue, 6) == [3, 9, 1, 2, 4, None]
    # A refill skips the pages that are queued or in flight.
    queue.ahead.refill([1, 3, 9, 10], asked=10)
    assert take(queue, 2) == [10, None]


def test_adding_a_visited_page_soon_does_not_queue_it_twice():
    queue = make_queue(visited=1)
    queue.add_new([2, 3, 4])
    assert take(queue, 4) == [2, 1, 3, 4]
    for page in (2, 3, 4):
        queue.mark_recorded(page)
    queue.visited(2, NOW, CHANGED)
    queue.retry(3, NOW + REST_S)
    queue.visit_again(4)
    queue.add_new([1, 2, 3, 4, 5], soon=True)
    assert take(queue, 3) == [4, 5, None]


def test_select_takes_only_pages_of_the_policy():
    queue = make_queue(visited=2)
    queue.add_new([11])
    queue.load_retry(12, NOW - 1.0)
    assert queue.revisit_at(NOW) == NOW
    selected = [queue.select(NOW) for _ in range(3)]
    assert selected == [1, 2, None]
    assert queue.revisit_at(NOW) is None
    queue.put_back(2)
    assert queue.select(NOW) == 2
    queue.visited(1, NOW, CHANGED)
    assert queue.revisit_at(NOW) == NOW + REST_S
    assert sorted(take(queue, 2)) == [11, 12]


def test_pages_left_out_return_when_the_scopes_change():
    queue = make_queue(visited=2)
    queue.add_new([11])
    for page in take(queue, 3):
        queue.leave_out(page)
    assert queue.wanted_at(NOW + 99 * REST_S) is None
    queue.reconsider()
    assert queue.wanted_at(NOW) == NOW
    assert queue.ahead.wants_refill
    queue.ahead.refill([11], asked=LOOK_AHEAD)
    assert set(take(queue, 3)) == {1, 2, 11}


def test_a_dropped_page_does_not_come_back():
    queue = make_queue(visited=2)
    queue.drop(queue.take(NOW))
    queue.reconsider()
    assert take(queue, 2) == [2, None]


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(("asked_at", "again"), [(NOW - 2.0, True), (NOW + 2.0, False)])
def test_an_image_that_is_replaced_during_its_visit_is_visited_again(is_first, asked_at, again):
    images = PageQueue(1, 1, "uniform", discovery_share=0.5, min_revisit_s=REST_S, requisites=True)
    if is_first:
        images.add_new([601])
    else:
        images.load_retry(601, NOW)
    assert images.take(NOW) == 601
    assert images.under_way == {601}
    images.recall({601}, NOW + RETRY_S, changed_at=NOW)
    images.mark_recorded(601)
    images.retry(601, NOW + 24 * REST_S, gone_at=asked_at)
    assert images.due_at(NOW) == (NOW + RETRY_S if again else math.inf)
    assert images.take(NOW) == (601 if again else None)
    images.retry(601, NOW + 24 * REST_S, gone_at=NOW + 3.0)
    assert images.take(NOW) is None
