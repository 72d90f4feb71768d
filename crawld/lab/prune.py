"""Measures the effect of pruning: one web crawled with and without it, at the same budget.

The web comes from `simweb/replica_web.py`, with a given share of replicated hosts. The replica
search runs as in the daemon, without the truth. In each group the host with most pages is kept, and
the pages of the others rest (are not visited) if the kept host has the path. The budget, visits a
day over all hosts, is spread evenly; pages change at random (Poisson) at rates drawn once per page
of the original site.

Freshness is over *names*: every host and path that was fetched. A resting name shows the kept
host's copy; if the texts of both were compared and differ (a stale or an altered copy), it counts
as never fresh, even though the newer text may be better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawld.core.replica.features import HostFeatures
from crawld.core.replica.groups import connected_groups
from crawld.core.replica.hosts import NO_SIGNATURE, Ids, pair_hosts
from crawld.core.revisit.freshness import Order, mean_freshness
from crawld.core.units import DAY_S
from crawld.lab.replica_capacity import ReplicaCapacity, replica_capacity
from crawld.lab.replicas import judged_candidates, run_trial
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import ReplicaWeb

MEDIAN_INTERVAL_DAYS = 20.0
INTERVAL_SIGMA = 1.3


@dataclass(frozen=True, slots=True)
class PruningResult:
    """One crawl with pruning compared with the same crawl without.

    Attributes:
        replicated: share of the hosts in groups of replicas.
        wrongly: pruned hosts that are not replicas of their kept host.
        pages: names fetched. resting: those that rest.
        only_there: names of pruned hosts that are still visited, since the kept host lacks them.
        other_text: resting names whose text differed when compared.
        saved: share of the visits saved at the same freshness of the kept names.
        before: mean freshness of all names without pruning.
        after: the same with pruning, at the same budget.
        kept_after: mean freshness of the names that do not rest.
        lent: capacity that the pruned hosts add if each host is requested as often as before.
    """

    hosts: int
    replicated: float
    pruned: int
    wrongly: int
    pages: int
    resting: int
    only_there: int
    other_text: int
    saved: float
    before: float
    after: float
    kept_after: float
    lent: ReplicaCapacity


def compare_pruning(
    *, hosts: int, replicated: float, visits_per_page_day: float, seed: int
) -> PruningResult:
    """Return the effect of pruning on one web.

    Args:
        replicated: share of them in groups of replicas.
        visits_per_page_day: the budget, over the pages of all hosts.
    """
    trial = run_trial(scale_web(STANDARD, hosts, replicated), seed)
    one, other = pair_hosts(trial.sets.candidates.keys[judged_candidates(trial)[0]])
    return _outcome(trial.web, one, other, visits_per_page_day / DAY_S, seed)


def _outcome(web: ReplicaWeb, one: Ids, other: Ids, frequency: float, seed: int) -> PruningResult:
    measure = HostFeatures.of(web.hosts)
    pages = measure.pages
    canonical = np.arange(len(pages))
    for group in connected_groups(zip(one.tolist(), other.tolist(), strict=True)):
        members = list(group)
        canonical[members] = members[int(np.argmax(pages[members]))]
    host = measure.page >> 32
    pruned = canonical[host] != host
    there = (measure.page & 0xFFFFFFFF) | (canonical[host] << 32)
    place = np.minimum(np.searchsorted(measure.page, there), len(measure.page) - 1)
    rests = pruned & (measure.page[place] == there)
    shown, was = measure.signature[place], measure.signature
    other_text = rests & (shown != NO_SIGNATURE) & (was != NO_SIGNATURE) & (shown != was)
    rate = _rates(web, measure.page, seed)
    count = len(measure.page)
    f_after = frequency * count / (count - int(rests.sum()))
    before = mean_freshness(Order.FIXED, rate, np.full(count, frequency))
    after = mean_freshness(Order.FIXED, rate, np.full(count, f_after))
    wrong = [
        at
        for at in np.flatnonzero(canonical != np.arange(len(canonical))).tolist()
        if web.group[at] < 0 or web.group[at] != web.group[canonical[at]]
    ]
    return PruningResult(
        hosts=len(pages),
        replicated=float((web.group >= 0).mean()),
        pruned=int((canonical != np.arange(len(canonical))).sum()),
        wrongly=len(wrong),
        pages=count,
        resting=int(rests.sum()),
        only_there=int((pruned & ~rests).sum()),
        other_text=int(other_text.sum()),
        saved=float(rests.mean()),
        before=float(before.mean()),
        after=float(np.where(other_text, 0.0, after).mean()),
        kept_after=float(after[~rests].mean()),
        lent=replica_capacity(
            host,
            canonical,
            rests=rests,
            other_text=other_text,
            rate=rate,
            visits_per_host_s=frequency * count / len(pages),
        ),
    )


def _rates(web: ReplicaWeb, page: Ids, seed: int) -> np.ndarray:
    """Return the change rate of each name: that of the page of the original, by its path."""
    rng = np.random.default_rng([seed, 99])
    paths = rng.lognormal(
        np.log(MEDIAN_INTERVAL_DAYS * DAY_S), INTERVAL_SIGMA, int((page & 0xFFFFFFFF).max()) + 1
    )
    own = rng.lognormal(0.0, 0.3, len(web.hosts))
    group = np.where(web.group >= 0, web.group % len(own), np.arange(len(own)))
    rates: np.ndarray = 1.0 / (paths[page & 0xFFFFFFFF] * own[group[page >> 32]])
    return rates
