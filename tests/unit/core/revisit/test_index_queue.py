"""The queue of the index policy with very many pages: bounded work per pick."""

import numpy as np
import pytest

from crawld.core.change.site_model import default_site_model
from crawld.core.revisit.index_pages import IndexPages
from crawld.core.revisit.index_queue import IndexQueue
from crawld.core.revisit.visit_value import VisitValueTable

NOW, DAY = 1.7e9, 86_400.0
COUNT, AT_ONCE = 150_000, 16_384


class Counting(VisitValueTable):
    """Counts the calls that value many pages, their pages, and those valued alone."""

    most = 0
    calls = 0
    together = 0
    alone = 0

    def values(self, age, scale_s, since_s):
        self.most = max(self.most, len(age))
        self.calls += 1
        self.together += len(age)
        return super().values(age, scale_s, since_s)

    def value(self, age, scale_s, since_s):
        self.alone += 1
        return super().value(age, scale_s, since_s)


def queue_of(count):
    """Return pages of one host, the queue of all of them, and their value table."""
    rng = np.random.default_rng(0)
    table = Counting(default_site_model().scale.shape)
    pages = IndexPages(table)
    pages.extend(count)
    slots = np.arange(count)
    pages.add_many(0, NOW - rng.uniform(0, 7 * DAY, count), 1.0)
    pages.set_models(slots, rng.exponential(1, count), np.exp(rng.normal(14, 1.5, count)))
    queue = IndexQueue(pages)
    queue.load(slots, np.full(count, np.nan))
    return pages, queue, table


def pick(pages, queue, at):
    """Visit the best page; return its visit value."""
    assert queue.first_new() == -1
    slot, value = queue.best(at)
    queue.remove(slot)
    pages.visited_at[slot] = at
    queue.push_visited(slot, pages.visited_at.item(slot))
    return value


def test_pages_are_checked_before_they_reach_the_level_whatever_waiting_is_worth():
    pages, _, table = queue_of(2_000)
    slots = np.arange(2_000)
    for share in (0.06, 0.2, 3.8):
        pages.table = table.with_share(share)
        due = pages.dues(slots, 5e4)
        reached = [pages.value(slot, at) for slot, at in enumerate(due.tolist())]
        assert np.quantile(reached, 0.98) <= 5e4
        assert pages.due(7, 5e4) == due[7]
        assert pages.values(slots[7:8], NOW)[0] == pages.value(7, NOW)


def test_the_best_page_is_found_after_waiting_is_worth_more():
    pages, queue, table = queue_of(3_000)
    for k in range(200):
        pick(pages, queue, NOW + 60.0 * k)
    pages.table = table.with_share(0.9)
    queue.revalue()
    for k in range(200, 400):
        at = NOW + 60.0 * k
        best = pages.values(np.arange(3_000), at).max()
        assert pick(pages, queue, at) >= 0.99 * best


@pytest.mark.parametrize("share", [0.06, 0.96, 3.84])
def test_a_pick_values_few_pages(share):
    """Most picks follow lines that were drawn for hundreds of picks."""
    pages, queue, table = queue_of(3_000)
    pages.table = counted = table.with_share(share)
    for k in range(3_000):
        pick(pages, queue, NOW + 120.0 * k)
    counted.alone = counted.calls = counted.together = 0
    for k in range(3_000, 6_000):
        pick(pages, queue, NOW + 120.0 * k)
    assert counted.alone <= 0.9 * 3_000
    assert counted.calls <= 0.07 * 3_000
    assert counted.together <= 12 * 3_000


@pytest.mark.parametrize("step_s", [5.0, 120.0, 1_800.0])
@pytest.mark.parametrize("count", [40, 400, 700])
def test_picks_of_few_pages_are_near_the_best(count, step_s):
    """The fewer the pages, the more a value grows between two picks."""
    pages, queue, _ = queue_of(count)
    shares = []
    for k in range(2 * count):
        best = pages.values(np.arange(count), NOW + step_s * k).max()
        shares.append(pick(pages, queue, NOW + step_s * k) / best)
    assert min(shares) >= 0.98
    assert np.mean(shares) >= 0.999


def test_a_picked_page_has_the_value_that_is_told():
    """Values are told by lines, and compared with those of hinted pages."""
    pages, queue, _ = queue_of(3_000)
    for k in range(2_000):
        slot, told = queue.best(NOW + 60.0 * k)
        assert told == pytest.approx(pages.value(slot, NOW + 60.0 * k), rel=2e-2)
        queue.remove(slot)
        pages.visited_at[slot] = NOW + 60.0 * k
        queue.push_visited(slot, pages.visited_at.item(slot))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_page_is_forgotten_when_the_shortlist_overflows(seed):
    """Many pages reach the level together, all models change, and again."""
    pages, queue, _ = queue_of(3_000)
    rng, slots, at = np.random.default_rng(seed), np.arange(3_000), NOW
    for k in range(1_500):
        at += 60.0
        if k % 150 == 0:
            some = rng.choice(slots, 2_000, replace=False)
            pages.visited_at[some] = at - rng.exponential(DAY, 2_000)
            queue.reorder(some, np.full(2_000, np.nan))
        best = pages.values(slots, at).max()
        assert pick(pages, queue, at) >= 0.99 * best


def test_a_full_shortlist_never_lowers_the_level():
    """Pages of the heap are due when they reach the level of before: they would be late."""
    pages, queue, _ = queue_of(3_000)
    for k in range(100):
        pick(pages, queue, NOW + 60.0 * k)
    high = queue._level = 1.2 * queue._level
    queue._list(queue._heap.members()[:1_000])
    queue._raise_level(NOW + 6_000.0)
    assert queue._level >= high


def test_a_new_value_of_waiting_empties_the_shortlist():
    pages, queue, table = queue_of(3_000)
    for k in range(600):
        pick(pages, queue, NOW + 60.0 * k)
    for k in range(600, 1_200):
        if k % 100 == 0:
            pages.table = table.with_share(3.84 if k % 200 else 0.96)
            queue.revalue()
        best = pages.values(np.arange(3_000), NOW + 60.0 * k).max()
        assert pick(pages, queue, NOW + 60.0 * k) >= 0.99 * best
        assert len(queue) == 3_000
    assert pages.table.alone <= 4 * 600


def test_no_pick_values_all_pages():
    pages, queue, table = queue_of(COUNT)
    for k in range(3_000):
        pick(pages, queue, NOW + k)
    assert len(queue) == COUNT
    assert 0 < table.most <= AT_ONCE


def test_after_the_first_sweep_every_pick_is_within_a_percent_of_the_best():
    pages, queue, _ = queue_of(COUNT)
    step_s = DAY / (0.3 * COUNT)
    for k in range(COUNT // AT_ONCE + 2):
        pick(pages, queue, NOW + k * step_s)
    for k in range(20, 12_000):
        at = NOW + k * step_s
        best = None if k % 100 else float(pages.values(np.arange(COUNT), at).max())
        value = pick(pages, queue, at)
        assert best is None or value >= 0.99 * best


def test_a_page_that_becomes_due_is_the_best_also_where_the_front_has_no_room_for_it():
    rng = np.random.default_rng(1)
    pages, queue, _ = queue_of(0)
    slots, at = np.arange(0), NOW
    for slot in range(60):
        at += 60.0
        pages.extend(1)
        pages.add(slot, at - rng.uniform(0.5, 1.5) * DAY, 1.0)
        queue.push(slot)
        slots = np.append(slots, slot)
        best = int(pages.values(slots, at).argmax())
        assert queue.best(at)[0] == slots[best]
        if slot % 3:
            queue.remove(int(slots[best]))
            slots = np.delete(slots, best)
