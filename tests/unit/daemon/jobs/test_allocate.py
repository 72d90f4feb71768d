"""Allocation of visits to the pages of each host."""

import numpy as np
import pytest

from crawld.core.revisit.allocation import kkt_residual
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.daemon.jobs.allocate import AllocationPages, allocate_hosts


def test_the_frequencies_of_each_host_sum_to_its_turns():
    random = np.random.default_rng(4)
    host = np.sort(random.integers(1, 9, 4000))
    pages = AllocationPages(
        np.arange(4000),
        host,
        np.ones(4000, np.int64),
        random.lognormal(-14.0, 2.0, 4000),
        random.choice([0.5, 1.0, 3.0], 4000),
    )
    delay_s = {number: 0.5 * number for number in range(1, 9)}
    result = allocate_hosts(pages, delay_s)
    turns = [1.0 / delay_s[number] for number in result.hosts.tolist()]
    assert result.allocation.spent == pytest.approx(turns, rel=1e-6)
    assert result.residual <= 1e-6
    by_host = PagesByHost(pages.rate, result.offsets, np.array(turns), pages.weight)
    assert kkt_residual(by_host, sum(turns), result.allocation) == result.residual


def test_a_host_without_a_delay_gets_100_visits_per_second():
    pages = AllocationPages(
        np.array([1, 2]), np.array([5, 5]), np.array([1, 1]), np.full(2, 1e-5), np.ones(2)
    )
    result = allocate_hosts(pages, {5: 0.0})
    assert result.allocation.spent == pytest.approx([100.0])
