"""Rules of all policies: one visit at a time, no page lost, clock jumps tolerated."""

import numpy as np
import pytest

from crawld.core.change.refit import blank_records
from crawld.core.change.site_model import default_site_model
from crawld.core.revisit.names import NAMES
from crawld.core.revisit.policies import UniformPolicy, VisitObservation
from crawld.core.revisit.policies_frequency import DelayedPolicy, MergePolicy, RandomPolicy
from crawld.core.revisit.policies_greedy import GreedyPolicy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.revisit.registry import FACTORIES, FrequencyPolicy
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.revisit_queue import VisitedPages
from tests.unit.core.revisit.visits import visit

POLICIES = {
    "uniform": UniformPolicy,
    "random": RandomPolicy,
    "random-f": lambda: RandomPolicy(by_frequency=True),
    "merge": MergePolicy,
    "delayed": DelayedPolicy,
    "greedy": GreedyPolicy,
    "greedy-printed": lambda: GreedyPolicy(conditional=False),
    "index": IndexPolicy,
}
EAGER = [name for name in POLICIES if name != "delayed"]
NOW = 1.7e9


@pytest.fixture(params=POLICIES)
def policy(request):
    return POLICIES[request.param]()


@pytest.fixture(params=EAGER)
def eager(request):
    return POLICIES[request.param]()


def allocate(policy, pages, frequency=1e-4):
    if hasattr(policy, "set_frequencies"):
        policy.set_frequencies(pages, np.full(len(pages), frequency))


def test_contains_many_agrees_with_in(policy):
    policy.load([7, 8, 9])
    policy.add(3, NOW)
    policy.remove(8)
    asked = [9, 8, 3, 4, 7]
    assert policy.contains_many(asked).tolist() == [page in policy for page in asked]
    assert policy.contains_many([]).tolist() == []


def test_new_pages_are_selected_once_each(policy):
    policy.load([7, 8, 9])
    assert sorted(policy.select(NOW) for _ in range(3)) == [7, 8, 9]
    assert policy.select(NOW) is None
    policy.release(8)
    assert policy.select(NOW) == 8


def test_an_empty_host_selects_nothing(policy):
    policy.load([])
    policy.remove(1)
    assert policy.select(NOW) is None
    assert len(policy) == 0


def test_a_host_of_one_page_visits_it_again(eager):
    eager.add(5, None)
    assert [visit(eager, NOW + k) for k in range(4)] == [5, 5, 5, 5]


def test_every_page_is_visited_within_a_few_rounds(eager):
    pages = list(range(40))
    eager.load(pages)
    allocate(eager, pages)
    seen = [visit(eager, NOW + 3600.0 * k) for k in range(400)]
    assert set(seen) == set(pages)


def test_unknown_pages_are_ignored(policy):
    policy.add(1, None)
    policy.remove(2)
    policy.record_visit(2, NOW, None)
    policy.release(2)
    policy.record_hint(2, NOW)
    policy.set_weight(2, 3.0)
    assert 2 not in policy
    assert len(policy) == 1


def test_a_page_removed_in_flight_stays_away(policy):
    policy.load([1, 2])
    page = policy.select(NOW)
    policy.remove(page)
    policy.record_visit(page, NOW, VisitObservation(True))
    policy.release(page)
    assert page not in policy
    assert len(policy) == 1
    assert [policy.select(NOW + 1e7) for _ in range(2)] == [3 - page, None]


def test_a_failed_visit_does_not_block_the_host(eager):
    eager.load([1, 2])
    for k in range(6):
        page = eager.select(NOW + 60.0 * k)
        assert page in (1, 2)
        eager.record_visit(page, NOW + 60.0 * k, None)


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_clock_jump_starves_no_page(policy, jump):
    pages = list(range(10))
    policy.load(pages)
    allocate(policy, pages, 1e-3)
    for k in range(30):
        visit(policy, NOW + 100.0 * k)
    for k in range(30):
        visit(policy, NOW + jump + 100.0 * k)
    after = [visit(policy, NOW + 6000.0 + 100.0 * k) for k in range(400)]
    assert set(pages) <= set(after)


def test_pages_are_added_and_removed_while_it_runs(policy):
    rng = np.random.default_rng(1)
    held = set()
    for k in range(600):
        page = int(rng.integers(0, 60))
        if rng.random() < 0.3:
            policy.remove(page)
            held.discard(page)
        elif page not in held:
            policy.add(page, None if rng.random() < 0.5 else NOW - 1e5 * rng.random())
            held.add(page)
        picked = visit(policy, NOW + 50.0 * k, changed=bool(rng.random() < 0.5))
        assert picked is None or picked in held
        assert len(policy) == len(held)


def test_weights_are_set_while_it_runs(policy):
    policy.load(np.arange(20), np.full(20, NOW - 1e5), np.linspace(0, 2, 20))
    allocate(policy, list(range(20)), 1e-3)
    policy.set_weight(3, 5.0)
    assert any(visit(policy, NOW + 1e3 * k) is not None for k in range(50))


def records(rates):
    """Return models of pages visited for a year that change at these rates, per second."""
    models = blank_records(len(rates))
    models["visits"], models["first_at"], models["last_visit_at"] = 100, NOW - 3e7, NOW
    models["last_change_at"], models["change_known"] = NOW - 1e5, 1
    models["rate"] = rates
    return models


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rates", [[0.0] * 6, [np.inf] * 6, [0.0, np.inf, 1e-30, 1e30, 1e-5, 1e-6]])
def test_pages_that_never_or_always_change_use_every_slot(name, rates):
    pages = PageQueue(1, 1, name, discovery_share=0.5, min_revisit_s=0.0)
    numbers = np.arange(1, 7)
    pages.load_visited(VisitedPages(numbers, np.full(6, NOW - 1e5)), NOW)
    pages.set_models(numbers, records(rates), default_site_model())
    pages.set_frequencies(
        numbers, np.where((np.array(rates) > 0.0) & (np.array(rates) < 1e-4), 1e-3, 0)
    )
    taken, now = [], NOW
    for _ in range(60):
        now += 100.0
        if (page := pages.take(now)) is not None:
            taken.append(page)
            pages.visited(page, now, VisitObservation(page % 2 == 0))
    assert set(taken) <= set(numbers.tolist())
    # Only DELAYED keeps a slot free when no page is due.
    assert len(taken) == 60 or name == "delayed"


@pytest.mark.parametrize("name", NAMES)
def test_without_bandwidth_a_free_slot_is_still_used(name):
    policy = FACTORIES[name]()
    policy.load([1, 2, 3], np.full(3, NOW - 1e5))
    if isinstance(policy, FrequencyPolicy):
        policy.set_frequencies([1, 2, 3], np.zeros(3))
    taken = {visit(policy, NOW + 60.0 * k) for k in range(9)}
    assert taken == ({None} if name == "delayed" else {1, 2, 3})
