"""The queue of the index policy with very many pages: bounded work per pick."""

import numpy as np

from crawld.core.revisit.index_pages import IndexPages
from crawld.core.revisit.index_queue import IndexQueue
from crawld.core.revisit.visit_value import VisitValueTable, default_scale_model

NOW, DAY = 1.7e9, 86_400.0
COUNT, AT_ONCE = 150_000, 16_384


class Counting(VisitValueTable):
    """Counts the pages valued in one call."""

    most = 0

    def values(self, age, scale_s, since_s):
        self.most = max(self.most, len(age))
        return super().values(age, scale_s, since_s)


def queue_of(count):
    """Return pages of one host, the queue of all of them, and their value table."""
    rng = np.random.default_rng(0)
    table = Counting(default_scale_model().shape)
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
    pages.set_visit(slot, at)
    queue.push_visited(slot)
    return value


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
