"""The queue behind the index policy where there are very many pages: a pick is bounded work."""

import numpy as np

from crawld.core.revisit.index_pages import IndexPages
from crawld.core.revisit.index_queue import IndexQueue
from crawld.core.revisit.visit_value import VisitValueTable, default_scale_model

NOW, DAY = 1.7e9, 86_400.0
COUNT, AT_ONCE = 150_000, 16_384


class Counting(VisitValueTable):
    """Counts the pages priced in one call."""

    most = 0

    def values(self, age, scale_s, since_s):
        self.most = max(self.most, len(age))
        return super().values(age, scale_s, since_s)


def many(count):
    """Return pages of one host, the queue of all of them, and the table that prices them."""
    rng = np.random.default_rng(0)
    table = Counting(default_scale_model().shape)
    pages = IndexPages(table)
    pages.extend(count)
    slots = np.arange(count)
    pages.begin(0, NOW - rng.uniform(0, 7 * DAY, count), 1.0)
    pages.learn_many(slots, rng.exponential(1, count), np.exp(rng.normal(14, 1.5, count)))
    queue = IndexQueue(pages)
    queue.load(slots, np.full(count, np.nan))
    return pages, queue, table


def pick(pages, queue, at):
    """Visit the best page; return what it was worth."""
    assert queue.first_new() == -1
    slot, worth = queue.best(at)
    queue.remove(slot)
    pages.set_visit(slot, at)
    queue.push_visited(slot)
    return worth


def test_no_pick_prices_all_pages():
    pages, queue, table = many(COUNT)
    for k in range(3_000):
        pick(pages, queue, NOW + k)
    assert len(queue) == COUNT
    assert 0 < table.most <= AT_ONCE


def test_once_all_were_seen_every_pick_is_within_a_hundredth_of_the_best():
    pages, queue, _ = many(COUNT)
    step_s = DAY / (0.3 * COUNT)
    for k in range(COUNT // AT_ONCE + 2):
        pick(pages, queue, NOW + k * step_s)
    for k in range(20, 12_000):
        at = NOW + k * step_s
        best = None if k % 100 else float(pages.values(np.arange(COUNT), at).max())
        worth = pick(pages, queue, at)
        assert best is None or worth >= 0.99 * best
