"""The page queue with each revisit policy: switches, idle policies, clock jumps, weights."""

from collections import Counter

import numpy as np
import pytest
import trio

from crawld.core.change.refit import blank_records
from crawld.core.change.site_model import default_site_model
from crawld.core.politeness import DelayRules, QuietHours
from crawld.core.revisit.host_allocation import AllocationPages, allocate_hosts
from crawld.core.revisit.names import NAMES
from crawld.core.revisit.policies import VisitObservation
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.revisit.registry import FACTORIES, FOLLOW_FREQUENCIES
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.daemon.schedule.slots import HostSlot


def make_queue(policy, count=6, **more):
    """Return a queue of pages that were all visited long ago."""
    settings = {"discovery_share": 0.5, "min_revisit_s": 10.0, **more}
    queue = PageQueue(1, 1, policy, **settings)
    queue.load_visited(visited_pages(range(1, count + 1)), 1000.0)
    return queue


def visited_pages(numbers):
    numbers = np.array(list(numbers), dtype=np.int64)
    return VisitedPages(numbers, np.arange(len(numbers), dtype=np.float64))


def drain(queue, now):
    """Take all pages that may be visited now."""
    taken = []
    while (page := queue.take(now)) is not None:
        taken.append(page)
    return taken


class TestSwitch:
    @pytest.mark.parametrize("after", NAMES)
    @pytest.mark.parametrize("before", ["uniform", "delayed", "index"])
    def test_pages_in_flight_or_resting_are_neither_lost_nor_taken_twice(self, before, after):
        queue = make_queue(before)
        in_flight, resting = queue.take(1000.0), queue.take(1000.0)
        assert None not in (in_flight, resting)
        queue.visited(resting, 1000.0, VisitObservation(False))
        queue.policy_name = after
        queue.switch(visited_pages(range(1, 7)))
        assert type(queue.policy) is type(FACTORIES[after]())
        assert not queue.switching
        taken = drain(queue, 1001.0)
        assert sorted(taken) == sorted(set(range(1, 7)) - {in_flight, resting})
        queue.visited(in_flight, 1001.0, VisitObservation(True))
        again = drain(queue, 1012.0) + drain(queue, 1012.0 + 300.0)
        assert sorted(again) == sorted([in_flight, resting])

    def test_a_page_first_visited_after_the_file_was_read_is_kept(self):
        queue = make_queue("uniform")
        queue.policy_name = "merge"
        queue.add_new([7])
        assert queue.take(1000.0) == 7
        queue.visited(7, 1000.0, VisitObservation(True))
        queue.mark_recorded(7)
        first = queue.take(1010.0)
        queue.put_back(first)
        queue.switch(visited_pages(range(1, 7)))
        assert sorted(drain(queue, 1011.0)) == list(range(1, 8))

    def test_pages_removed_during_the_switch_stay_out(self):
        queue = make_queue("uniform")
        queue.policy_name = "index"
        queue.drop(3)
        queue.retry(4, 5000.0)
        queue.switch(visited_pages(range(1, 7)))
        assert sorted(drain(queue, 1000.0)) == [1, 2, 5, 6]

    def test_the_switch_keeps_importance(self):
        queue = make_queue("uniform")
        queue.policy_name = "index"
        visited = visited_pages(range(1, 7))
        queue.switch(VisitedPages(visited.pages, np.full(6, 500.0), np.array([1, 1, 1, 1, 9.0, 1])))
        assert queue.take(90_000.0) == 5


class TestIdle:
    def test_delayed_waits_for_its_due_time_and_wakes_after_a_new_allocation(self):
        queue = make_queue("delayed", count=2, min_revisit_s=0.0)
        numbers = np.array([1, 2])
        queue.set_frequencies(numbers, np.array([1e-4, 1e-4]))
        while (page := queue.take(1000.0)) is not None:
            queue.visited(page, 1000.0, VisitObservation(False))
        wanted_at = queue.wanted_at(1000.0)
        assert wanted_at is not None
        assert 1000.0 < wanted_at <= 1300.0
        assert queue.wanted_at(-1e6) == -1e6  # clock set back by days: no wait
        queue.set_frequencies(numbers, np.array([1.0, 1.0]))
        assert queue.wanted_at(1000.0) == 1000.0

    def test_visits_recorded_after_their_rest_do_not_advance_the_clock_of_index(self):
        queue = make_queue("index", min_revisit_s=3600.0)
        now = 10_000.0
        for _ in range(50):
            page = queue.take(now)
            if page is not None:
                queue.visited(page, now, VisitObservation(False))
            now += 1000.0
        # The value of a page comes from its true time since the visit.
        values = queue.policy.visit_values([1], now)
        fresh = IndexPolicy(default_site_model())
        fresh.load([1], [0.0])
        assert values[0] <= fresh.visit_values([1], now + 1.0)[0]


@pytest.mark.parametrize("policy", NAMES)
class TestEveryPolicy:
    """Every policy handles new and retired pages, clock jumps, closed hosts and importance."""

    def test_new_pages_are_taken_besides_those_of_the_policy(self, policy):
        queue = make_queue(policy, min_revisit_s=0.0)
        queue.add_new([7, 8])
        assert {7, 8} <= set(drain(queue, 1000.0))

    def test_pages_with_a_retry_time_wait_for_it(self, policy):
        queue = make_queue(policy)
        queue.retry(3, 5000.0)
        assert 3 not in drain(queue, 1000.0)
        # DELAYED is checked again every few minutes: its next due time may move.
        assert queue.wanted_at(1000.0) == 5000.0 or policy == "delayed"
        assert queue.take(5001.0) == 3
        queue.visited(3, 5001.0, VisitObservation(True))
        assert drain(queue, 5012.0) in ([3], [])
        assert 3 in {*drain(queue, 5012.0 + 400.0), *([3] if 3 in queue.policy else [])}

    def test_a_queue_of_one_page_and_an_empty_queue(self, policy):
        assert make_queue(policy, count=0).take(1000.0) is None
        single = make_queue(policy, count=1, min_revisit_s=0.0)
        taken = []
        for now in range(1000, 11_000, 1000):
            if (page := single.take(float(now))) is not None:
                taken.append(page)
                single.visited(page, float(now), VisitObservation(False))
        assert set(taken) == {1}
        assert len(taken) >= 5

    @pytest.mark.parametrize("jump_s", [-86_400.0, 86_400.0])
    def test_after_a_jump_of_the_clock_every_page_is_visited(self, policy, jump_s):
        queue, now, last_step = make_queue(policy, count=5), 200_000.0, {}
        queue.set_frequencies(np.arange(1, 6), np.full(5, 1e-3))
        for step in range(1200):
            now += jump_s if step == 100 else 100.0
            page = queue.take(now)
            if page is not None:
                queue.visited(page, now, VisitObservation(False))
                last_step[page] = step
        # A day is 864 steps: pages visited before the jump rest until the clock is there again.
        assert sorted(last_step) == [1, 2, 3, 4, 5]
        assert min(last_step.values()) > 1000

    @pytest.mark.parametrize("closed", ["quiet hours", "back-off"])
    async def test_a_closed_host_gets_no_turn(self, policy, closed):
        clock = Clock()
        host = HostState(1, HostSlot("a.test", trio.current_time()))
        quiet = ((0, 43_000), (43_200, 86_300)) if closed == "quiet hours" else ()
        now = clock.now()
        offset_s = -int(now % 86_400) + 1000  # local time is 1000 s after midnight
        host.apply_rules([DelayRules(host_delay_s=1.0, quiet_hours=QuietHours(quiet, offset_s))])
        host.pages[1] = make_queue(policy)
        if closed == "back-off":
            host.record_trouble(now, 600.0)
        assert host.wanted_at(now, {1}) is not None
        assert host.open_at(clock) > trio.current_time() + 500.0

    def test_a_page_of_importance_0_is_visited_only_by_blind_policies(self, policy):
        queue = PageQueue(1, 1, policy, discovery_share=0.5, min_revisit_s=0.0)
        numbers, weights = np.arange(1, 5), np.array([0.0, 1.0, 1.0, 1.0])
        queue.load_visited(VisitedPages(numbers, np.full(4, 1e9), weights), 1e9)
        models = blank_records(4)
        models["visits"], models["rate"], models["last_visit_at"] = 9, 1e-5, 1e9
        queue.set_models(numbers, models, default_site_model())
        pages = AllocationPages.of_models(
            numbers, models, weights, host=1, site=1, follows=policy in FOLLOW_FREQUENCIES
        )
        queue.set_frequencies(numbers, allocate_hosts(pages, {1: 3600.0}).allocation.frequency)
        taken = Counter()
        for step in range(300):
            now = 1e9 + 1e5 + 3600.0 * step
            if (page := queue.take(now)) is not None:
                queue.visited(page, now, VisitObservation(True))
                taken[page] += 1
        assert min(taken[page] for page in (2, 3, 4)) > 50
        # Uniform and random ignore importance: they are the baselines of the other policies.
        assert taken[1] == 0 or policy in ("uniform", "random")
