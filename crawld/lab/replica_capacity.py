"""Measures the capacity that idle replicas add to the hosts they copy.

Every host may be requested the same number of times a day. A replica is idle if all its pages rest
(are not visited); if none of their texts differed, it may serve for its kept host. As in the daemon
(`daemon/crawl/replica_fetch.py`), a page fetched from a replica must be fetched from its own host
next, so that at most every other visit of a page uses a replica; and each visit to the page's own
host that differs costs the replica one check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crawld.core.replica.hosts import Ids
from crawld.core.revisit.freshness import Order, mean_freshness

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReplicaCapacity:
    """The capacity that idle replicas add.

    Attributes:
        idle: number of usable replicas.
        helped: number of pages of the hosts that they copy.
        faster: visits of those pages with replicas, divided by visits without.
        alone: mean freshness of those pages without replicas.
        together: the same with replicas.
    """

    idle: int
    helped: int
    faster: float
    alone: float
    together: float


def replica_capacity(
    host: Ids,
    canonical: Ids,
    *,
    rests: Flags,
    other_text: Flags,
    rate: Floats,
    visits_per_host_s: float,
) -> ReplicaCapacity:
    """Return the capacity that idle replicas add.

    Args:
        host: (n,) the host of each page.
        canonical: (hosts,) the kept host of each; itself if it is not a replica.
        rests: (n,) whether the page is on a replica and rests.
        other_text: (n,) whether its text differed from that of the kept page.
        rate: (n,) changes per second.
    """
    count = len(canonical)
    own = _count(host, count)
    resting = _count(host[rests], count)
    altered = _count(host[other_text], count)
    is_copy = canonical != np.arange(count)
    idle = np.flatnonzero(is_copy & (resting == own) & (altered == 0) & (own > 0))
    copies = _count(canonical[idle], count)
    # Of several replicas the one with most pages limits the share of visits that can use one.
    shared = np.zeros(count)
    np.maximum.at(shared, canonical[idle], own[idle].astype(float))
    helped = (copies[host] > 0) & ~rests
    kept = _count(host[~rests], count)
    alone_f = visits_per_host_s / kept[host[helped]]
    changed = np.zeros(count)
    np.add.at(changed, host[helped], -np.expm1(-rate[helped] / alone_f))
    wide = np.maximum(kept, 1)
    part = np.minimum(shared / wide, 1.0)
    most = part / (2.0 - part)
    lent = np.minimum(copies / (1.0 + changed / wide), most)
    together_f = alone_f * (1.0 + lent[host[helped]])
    alone = mean_freshness(Order.FIXED, rate[helped], alone_f)
    together = mean_freshness(Order.FIXED, rate[helped], together_f)
    pages = int(helped.sum())
    return ReplicaCapacity(
        idle=len(idle),
        helped=pages,
        faster=float((together_f / alone_f).mean()) if pages else 1.0,
        alone=float(alone.mean()) if pages else 1.0,
        together=float(together.mean()) if pages else 1.0,
    )


def _count(of: Ids, count: int) -> npt.NDArray[Any]:
    return np.bincount(of, minlength=count)
