"""What idle replicas add: the pages of a host visited at its own pace, and with its copies' turns.

Every host may be asked the same number of times a day, its delay being that of all. A replica whose
pages all rest is idle; where none of them showed another text, it may stand in. As in the daemon
(`daemon/capacity.py`) a page it has shown must be shown by its own host next, so that at most every
other visit of a page is lent; and each own visit that differs costs the replica a visit to check.
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
class LentCapacity:
    """What idle replicas add.

    Attributes:
        idle: replicas that may stand in.
        helped: pages of the hosts they copy.
        faster: visits of those pages with them, in visits without.
        alone: mean freshness of those pages without.
        together: with them.
    """

    idle: int
    helped: int
    faster: float
    alone: float
    together: float


def lent_capacity(
    host: Ids,
    canonical: Ids,
    *,
    rests: Flags,
    other_text: Flags,
    rate: Floats,
    visits_per_host_s: float,
) -> LentCapacity:
    """Return what idle replicas add.

    Args:
        host: (n,) the host of each page.
        canonical: (hosts,) the host kept of each; itself where it is no replica.
        rests: (n,) whether the page rests, being a replica's.
        other_text: (n,) whether it showed another text than the page kept.
        rate: (n,) changes per second.
        visits_per_host_s: visits each host may be asked for in a second.
    """
    count = len(canonical)
    own = _count(host, count)
    resting = _count(host[rests], count)
    altered = _count(host[other_text], count)
    is_copy = canonical != np.arange(count)
    idle = np.flatnonzero(is_copy & (resting == own) & (altered == 0) & (own > 0))
    copies = _count(canonical[idle], count)
    # Of several copies the one with most pages says how many may be lent.
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
    return LentCapacity(
        idle=len(idle),
        helped=pages,
        faster=float((together_f / alone_f).mean()) if pages else 1.0,
        alone=float(alone.mean()) if pages else 1.0,
        together=float(together.mean()) if pages else 1.0,
    )


def _count(of: Ids, count: int) -> npt.NDArray[Any]:
    return np.bincount(of, minlength=count)
