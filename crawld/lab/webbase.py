"""Measures the cost of politeness, and each policy against the bound, on a large synthetic web.

A few hosts have most pages (Zipf), rates are lognormal and independent of the host, and every host
permits one visit per 15 s. Allocations are scored in closed form over all pages, RANDOM by its
exact expression. MERGE and DELAYED, the daemon's objects, select pages on a sample of hosts (of a
big host, on a sample of its pages at their own frequencies), and are scored by the exact
expectation given their visits, relative to equal spacing. Each bandwidth is one step; an
interrupted run continues after the last one.

Source: PUC-Rio dissertation, chapters 3 to 5 (WEBBASE). Their collection is not public: compare
shape and order, not digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.allocation import allocate, kkt_residual, objective, proportional
from crawld.core.revisit.freshness import Order, mean_freshness, random_slot_freshness
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.policies_frequency import DelayedPolicy, MergePolicy
from crawld.core.units import DAY_S

Floats = NDArray[np.float64]
Result = dict[str, object]

BANDWIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
"""Shares of the total rate that all hosts permit."""

HOST_DELAY_S = 15.0
_ZIPF = 1.0
_MEDIAN_INTERVAL_S = 60 * DAY_S
_RATE_SPREAD = 1.5
_SAMPLED_HOSTS = 16
_SAMPLED_PAGES = 500
_ROUNDS = 8
_VISITS_MOST = 5_000
"""Visits simulated on a host, a tenth of a second of both policies."""

_BLOCK = 1 << 18


def synthetic_web(pages: int, hosts: int, seed: int) -> PagesByHost:
    """Return a web with Zipf host sizes and lognormal change rates."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, hosts + 1) ** _ZIPF
    sizes = np.floor(share / share.sum() * pages).astype(np.int64)
    sizes[: pages - int(sizes.sum())] += 1
    rate = rng.lognormal(-np.log(_MEDIAN_INTERVAL_S), _RATE_SPREAD, int(sizes.sum()))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return PagesByHost(rate, offsets, np.full(hosts, 1.0 / HOST_DELAY_S))


def run_webbase(
    *,
    pages: int,
    hosts: int,
    seed: int,
    kept: Result | None = None,
    done: Callable[[Result], object] = lambda result: None,
) -> Result:
    """Score allocations and policies over all bandwidths.

    Args:
        kept: result of an interrupted run; its steps are reused if it is of the same web.
        done: called with the result so far after each bandwidth.

    Returns:
        JSON types: `rows` with policy, bandwidth_share, bandwidth (per second), freshness.
    """
    about: Result = {"pages": pages, "hosts": hosts, "seed": seed, "host_delay_s": HOST_DELAY_S}
    rows: list[Result] = []
    if kept is not None and all(kept.get(key) == value for key, value in about.items()):
        old = kept.get("rows")
        rows = list(old) if isinstance(old, list) else []
    web: PagesByHost | None = None
    for share in BANDWIDTHS:
        if not any(row.get("bandwidth_share") == share for row in rows):
            web = web or synthetic_web(pages, hosts, seed)
            rows.extend(_rows(web, share, seed))
        done({**about, "rows": rows})
    return {**about, "rows": rows}


def _rows(web: PagesByHost, share: float, seed: int) -> list[Result]:
    bandwidth = share * float(web.ceiling.sum())
    free = PagesByHost(web.change_rate, web.offsets, np.full(web.hosts, np.inf))
    unpolite = allocate(free, bandwidth).frequency
    polite = allocate(web, bandwidth)
    best = objective(web, polite.frequency)
    merge, delayed = _spacing_ratios(web, polite.frequency, seed)
    pages = len(web.change_rate)
    scores = {
        "UNPOLITE bound": objective(web, unpolite),
        "OPT_POLITE (POLITE bound)": best,
        "unconstrained, cut to ceilings": objective(web, _cut_to_ceilings(web, unpolite)),
        "uniform, cut to ceilings": objective(
            web, _cut_to_ceilings(web, np.full(pages, bandwidth / pages))
        ),
        "proportional, cut to ceilings": objective(
            web, _cut_to_ceilings(web, proportional(web.change_rate, bandwidth))
        ),
        "RANDOM": random_freshness(web, polite.frequency),
        "MERGE": best * merge,
        "DELAYED": best * delayed,
    }
    residual = kkt_residual(web, bandwidth, polite)
    return [
        {
            "policy": name,
            "bandwidth_share": share,
            "bandwidth": bandwidth,
            "freshness": score,
            "kkt_residual": residual if name.startswith("OPT_POLITE") else None,
        }
        for name, score in scores.items()
    ]


def _cut_to_ceilings(web: PagesByHost, frequency: Floats) -> Floats:
    """Scale down the hosts that exceed their ceiling."""
    host = web.host_of_page()
    spent = np.bincount(host, frequency, web.hosts)
    scale = np.minimum(1.0, web.ceiling / np.maximum(spent, 1e-300))
    return np.asarray(frequency * scale[host])


def random_freshness(web: PagesByHost, frequency: Floats) -> float:
    """Return the exact mean freshness of drawing pages ∝ f at each slot of their host.

    Args:
        frequency: visits per second of each page of the web.
    """
    host = web.host_of_page()
    spent = np.bincount(host, frequency, web.hosts)
    total = 0.0
    for first in range(0, len(host), _BLOCK):
        part = slice(first, first + _BLOCK)
        used = np.maximum(spent[host[part]], 1e-300)
        p = frequency[part] / used
        # Time in slots of the host, each 1/spent long.
        total += float(random_slot_freshness(web.change_rate[part] / used, p, 1.0).sum())
    return total / len(host)


def _spacing_ratios(web: PagesByHost, frequency: Floats, seed: int) -> tuple[float, float]:
    """Return the freshness of MERGE and of DELAYED relative to equal spacing."""
    rng = np.random.default_rng([seed, 7])
    sizes = np.diff(web.offsets)
    # Hosts are drawn in proportion to their pages, so that the plain mean weights every page
    # equally.
    drawn = rng.choice(web.hosts, _SAMPLED_HOSTS, p=sizes / sizes.sum())
    fixed = merge = delayed = 0.0
    for host in drawn.tolist():
        own = np.arange(web.offsets[host], web.offsets[host + 1])
        spent = float(frequency[own].sum())
        chosen = np.sort(rng.choice(own, min(_SAMPLED_PAGES, len(own)), replace=False))
        chosen = chosen[frequency[chosen] > 0]
        rate, f = web.change_rate[chosen], frequency[chosen]
        if len(f) == 0:
            continue
        # A sample of the pages keeps their frequencies; the host's idle share is kept too.
        delay_s = float(web.ceiling[host] ** -1) * spent / float(f.sum())
        scores = merge_and_delayed(chosen, rate, f, delay_s)
        fixed += float(mean_freshness(Order.FIXED, rate, f).mean())
        merge, delayed = merge + scores[0], delayed + scores[1]
    return (merge / fixed, delayed / fixed) if fixed else (1.0, 1.0)


def merge_and_delayed(
    pages: NDArray[np.int64], rate: Floats, f: Floats, delay_s: float
) -> tuple[float, float]:
    """Return the expected mean freshness of MERGE and of DELAYED on one host.

    Args:
        pages: their keys, ascending; they decide the phases.
        rate: changes per second of each page. f: its visits per second, > 0.
        delay_s: time between two slots; MERGE has as many slots as visits.
    """
    # Long enough for several visits to nearly every page.
    span = min(_ROUNDS / float(np.quantile(f, 0.05)), _VISITS_MOST / float(f.sum()))
    merge, delayed = MergePolicy(), DelayedPolicy()
    for policy in (merge, delayed):
        policy.load(pages)
        policy.set_frequencies(pages, f)
    merged, merged_at = _visits(merge, span, 1.0 / float(f.sum()))
    moved, moved_at = _visits(delayed, span, delay_s)
    return (
        _freshness_of_visits(np.searchsorted(pages, merged), merged_at, rate, f),
        _freshness_of_visits(np.searchsorted(pages, moved), moved_at, rate, f),
    )


def _visits(
    policy: MergePolicy | DelayedPolicy, span_s: float, slot_s: float
) -> tuple[NDArray[np.int64], Floats]:
    """Return the pages that a policy visits and the times, at equally spaced slots."""
    pages, times = [], []
    slot = 0
    while (at := slot * slot_s) < span_s:
        slot += 1
        page = policy.select(at)
        if page is not None:
            policy.record_visit(page, at, None)
            pages.append(page)
            times.append(at)
        elif isinstance(policy, DelayedPolicy):  # no slot before the next due time is used
            slot = max(slot, math.ceil(min(policy.next_due_at(), span_s) / slot_s))
    return np.array(pages, np.int64), np.array(times)


def _freshness_of_visits(page: NDArray[np.int64], at: Floats, rate: Floats, f: Floats) -> float:
    """Return the mean freshness given the visits.

    Only the time between a page's first and last visit counts; a page visited less than twice is
    scored as equally spaced.
    """
    order = np.lexsort((at, page))
    page, at = page[order], at[order]
    same = page[1:] == page[:-1]
    gap, owner = np.diff(at)[same], page[1:][same]
    fresh = np.bincount(owner, -np.expm1(-rate[owner] * gap) / rate[owner], len(rate))
    total = np.bincount(owner, gap, len(rate))
    even = mean_freshness(Order.FIXED, rate, f)
    with np.errstate(invalid="ignore"):
        return float(np.where(total > 0, fresh / total, even).mean())
