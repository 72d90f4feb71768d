"""The allocation of each host's turns among its pages, as the daemon and the laboratory make it.

A host has one turn per delay, and all of them are used, so hosts are independent of each other,
unless they share a limit: then OPT_POLITE (`allocation.py`) divides the limit by their change
rates. Where a policy follows frequencies (MERGE, DELAYED, RANDOM-f), the turns of the host are then
divided by Wolf's allocation, from the distribution of the intervals between changes that the model
of each page has learnt (`renewal_allocation.py`): changes come in bursts, and rates alone give up
pages that are worth a visit.

No page is given up there: a page without visits teaches its model nothing. Each has at least
`LEAST_SHARE` of the mean frequency, and the frequency that its site asks for.

Source: PUC-Rio dissertation, chapters 4 and 6; Wolf et al., WWW 2002.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from crawld.core.change.record import Records
from crawld.core.change.refit import fit_renewals
from crawld.core.change.renewal import BINS, EDGES_S, Renewal
from crawld.core.revisit.allocation import Allocation, allocate, ceilings_within, kkt_residual
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.price import revisit_frequency
from crawld.core.revisit.renewal_allocation import allocate_renewal, renewal_frequency

MIN_DELAY_S: Final = 0.01
"""Smallest delay assumed, for hosts without a delay."""

KEEP_SHARE: Final = 0.02
"""A host keeps its price while a smaller share of its pages was visited since."""

LEAST_SHARE: Final = 0.02
"""Lowest frequency of a page that has an importance, as a share of the mean of its host."""

EVERY_S: Final = 3600.0
"""Time between two allocations."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class HostLimit(NamedTuple):
    """Numbers of hosts that share a limit, and its requests per second."""

    hosts: frozenset[int]
    visits_per_s: float


@dataclass(frozen=True, slots=True)
class AllocationPages:
    """The pages of an allocation, ordered by host; one element of each array per page.

    Attributes:
        rate: changes per second.
        weight: importance.
        follows: whether a policy of its host follows frequencies.
        intervals: distribution of the intervals between changes, in the bins of `renewal.EDGES_S`,
            one row for each page that `follows`, in the same order.
    """

    page: Integers
    host: Integers
    site: Integers
    rate: Floats
    weight: Floats
    follows: npt.NDArray[np.bool_]
    intervals: npt.NDArray[np.float32]

    @staticmethod
    def of_models(
        pages: Integers,
        records: Records,
        weights: Floats,
        *,
        host: int,
        site: int,
        follows: bool,
    ) -> AllocationPages:
        """Return the pages of one site on one host, from their change models."""
        count = len(pages)
        intervals = fit_renewals(records).mass if follows else np.zeros((0, BINS))
        return AllocationPages(
            pages,
            np.full(count, host, np.int64),
            np.full(count, site, np.int64),
            records["rate"].astype(np.float64),
            weights,
            np.full(count, follows),
            intervals.astype(np.float32),
        )

    @staticmethod
    def joined(parts: Sequence[AllocationPages]) -> AllocationPages:
        """Return the pages of all parts; those of one host either all follow, or none."""
        host = np.concatenate([each.host for each in parts])
        order = np.argsort(host, kind="stable")
        follows = np.concatenate([each.follows for each in parts])
        of_row = host[follows]
        return AllocationPages(
            np.concatenate([each.page for each in parts])[order],
            host[order],
            np.concatenate([each.site for each in parts])[order],
            np.concatenate([each.rate for each in parts])[order],
            np.concatenate([each.weight for each in parts])[order],
            follows[order],
            np.concatenate([each.intervals for each in parts])[np.argsort(of_row, kind="stable")],
        )


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """The result of an allocation.

    Attributes:
        hosts: host numbers, in the order of `allocation.price`.
        offsets: index of the first page of each host, then the number of pages.
        residual: KKT residual of OPT_POLITE, the distance from optimality.
    """

    hosts: Integers
    offsets: Integers
    allocation: Allocation
    residual: float


def allocate_hosts(
    pages: AllocationPages,
    delay_s: Mapping[int, float],
    limits: Sequence[HostLimit] = (),
    longest_s: Mapping[int, float] | None = None,
) -> AllocationResult:
    """Return the optimal allocation that uses every request of every host.

    Args:
        pages: at least one.
        delay_s: delay by host number.
        limits: what hosts share, the narrower ones first.
        longest_s: longest time between two visits of a page, by site number; a site without one
            asks for none.
    """
    hosts, starts = np.unique(pages.host, return_index=True)
    offsets = np.append(starts, len(pages.host)).astype(np.int64)
    ceiling = np.array([1.0 / max(delay_s[host], MIN_DELAY_S) for host in hosts.tolist()])
    web = PagesByHost(pages.rate, offsets, ceiling, pages.weight)
    shared = [(np.isin(hosts, list(each.hosts)), each.visits_per_s) for each in limits]
    ceiling = ceilings_within(web, shared)
    web = replace(web, ceiling=ceiling)
    bandwidth = float(ceiling.sum())
    polite = allocate(web, bandwidth)
    residual = kkt_residual(web, bandwidth, polite)
    allocation = _by_intervals(pages, offsets, polite, longest_s or {})
    return AllocationResult(hosts, offsets, allocation, residual)


def _by_intervals(
    pages: AllocationPages, offsets: Integers, polite: Allocation, longest_s: Mapping[int, float]
) -> Allocation:
    """Return an allocation with the turns of hosts that follow frequencies divided by Wolf's."""
    frequency, price = polite.frequency.copy(), polite.price.copy()
    first_row = 0
    for host, (first, end) in enumerate(pairwise(offsets.tolist())):
        if not pages.follows[first]:
            continue
        part, rows = slice(first, end), slice(first_row, first_row + end - first)
        first_row += end - first
        turns_per_s = float(polite.spent[host])
        found = allocate_renewal(
            Renewal(EDGES_S, pages.intervals[rows].astype(np.float64)),
            turns_per_s,
            pages.weight[part],
            least_frequency(
                pages.weight[part],
                turns_per_s / (end - first),
                longest_s_of(pages.site[part], longest_s),
            ),
        )
        frequency[part], price[host] = found.frequency, found.price
    return replace(polite, frequency=frequency, price=price)


def most_visited(pages: int) -> int:
    """Return how many of a host's pages may be visited before it needs another price; 0: none."""
    return int(KEEP_SHARE * pages)


def longest_s_of(site: Integers, longest_s: Mapping[int, float]) -> Floats:
    """Return the longest time between two visits that the site of each page asks for, or ∞."""
    found = np.full(len(site), np.inf)
    for number, seconds in longest_s.items():
        found[site == number] = seconds
    return found


def least_frequency(weight: Floats, mean: float, longest_s: npt.ArrayLike) -> Floats:
    """Return the lowest frequency of each page, per second; 0 without an importance.

    Args:
        mean: visits of the host per second and page.
        longest_s: longest time between two visits that is asked for, ∞: none.
    """
    asked = 1.0 / np.asarray(longest_s, np.float64)
    return np.where(weight > 0, np.maximum(LEAST_SHARE * mean, asked), 0.0)


def frequency_at_price(
    records: Records, price: float, weights: Floats, least: npt.ArrayLike, *, follows: bool
) -> Floats:
    """Return the frequencies of pages of a host that keeps its price, from their own models.

    Args:
        price: μ of the host, weighted fresh seconds a visit.
        least: lowest frequency of each page, per second.
        follows: as in `AllocationPages`.
    """
    if follows:
        return renewal_frequency(fit_renewals(records), price, weights, least)
    return revisit_frequency(records["rate"].astype(np.float64), price, weights)
