"""Plans for some of the seeds in which one thing is alone, since others would hide it.

A wiki that forgets its changes during an outage: among many faults nobody can say when its mirror
must show them again. Two hosts of one owner with the same pages, which change apart: a verdict on a
replica takes hours without faults. A site of many pages that nothing disturbs: audits measure the
freshness of a host that always answers, and what is counted for each visit gets large.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from crawld.core.units import DAY_S
from crawld.simweb.site import ValidatorBehavior
from crawld.universe.plan import (
    EndKind,
    FaultKind,
    FaultPeriod,
    HostPlan,
    LifeEnd,
    NameEdition,
    RobotsEdition,
    UniversePlan,
)

WIKI_DELAY_S = REPLICA_DELAY_S = 60.0
SITE_DELAYS_S: Final = (10.0, 15.0, 20.0)


def wiki_plan(seed: int, days: float) -> UniversePlan:
    """Return a plan of one wiki that forgets what changes in the first half of an outage."""
    rng = random.Random(seed)
    duration_s, pages = days * DAY_S, rng.randint(80, 150)
    from_s, lasts_s = rng.uniform(0.35, 0.5) * duration_s, rng.uniform(0.08, 0.15) * duration_s
    kind = rng.choice((FaultKind.REFUSED, FaultKind.SILENT, FaultKind.BROKEN, FaultKind.RESET))
    host = HostPlan(
        "wiki.test",
        (NameEdition(0.0, "93.184.216.10"),),
        pages,
        rng.getrandbits(32),
        (RobotsEdition(0.0, "", None),),
        (FaultPeriod(kind, from_s, from_s + lasts_s, 1.0, 0),),
        change_seed=rng.getrandbits(32),
        changes_per_day=rng.uniform(0.3, 0.9),
        wiki=True,
        keeps_changes_s=lasts_s / 2.0,
    )
    ends = _one_end(rng, 0.1, 0.6, duration_s)
    revisit_s = rng.choice((0.0, 600.0))
    return UniversePlan(seed, days, WIKI_DELAY_S, (host,), ends, min_revisit_s=revisit_s)


def replica_plan(seed: int, days: float) -> UniversePlan:
    """Return a plan of a host and its mirror, whose pages change at their own times."""
    rng = random.Random(seed)
    pages, site_seed, sitemap = rng.randint(25, 50), rng.getrandbits(32), rng.random() < 0.5
    hosts = tuple(
        HostPlan(
            name,
            (NameEdition(0.0, f"93.184.216.{10 + number}"),),
            pages,
            site_seed,
            (RobotsEdition(0.0, "", None),),
            (),
            change_seed=rng.getrandbits(32),
            changes_per_day=rng.uniform(0.4, 0.9),
            sitemap=sitemap,
        )
        for number, name in enumerate(("site0.test", "mirror.site0.test"))
    )
    ends = _one_end(rng, 0.2, 0.8, days * DAY_S)
    revisit_s = rng.choice((0.0, 600.0))
    return UniversePlan(
        seed, days, REPLICA_DELAY_S, hosts, ends, min_revisit_s=revisit_s, prune=True
    )


def site_plan(seed: int, days: float) -> UniversePlan:
    """Return a plan of one site of 40 to 200 pages that change some or many times a day."""
    rng = random.Random(seed)
    source = rng.choice(("sitemap", "feed", "stream", ""))
    honest = (ValidatorBehavior.RIGHT, ValidatorBehavior.ABSENT)
    host = HostPlan(
        "site.test",
        (NameEdition(0.0, "93.184.216.10"),),
        rng.randint(40, 200),
        rng.getrandbits(32),
        (RobotsEdition(0.0, "", None),),
        (),
        change_seed=rng.getrandbits(32),
        changes_per_day=rng.choice((0.5, 2.0, 8.0, 20.0)),
        etag=rng.choice(honest),
        last_modified=rng.choice(honest),
        noise=rng.random() < 0.25,
        sitemap=source == "sitemap",
        feed=source == "feed",
        stream=source == "stream",
    )
    ends = _one_end(rng, 0.2, 0.8, days * DAY_S)
    revisit_s = rng.choice((0.0, 600.0, 3_600.0))
    return UniversePlan(
        seed, days, rng.choice(SITE_DELAYS_S), (host,), ends, min_revisit_s=revisit_s
    )


def _one_end(
    rng: random.Random, first: float, last: float, duration_s: float
) -> tuple[LifeEnd, ...]:
    """Return an end of a life between two shares of the duration, for a third of the plans."""
    return tuple(
        LifeEnd(rng.choice(list(EndKind)), rng.uniform(first, last) * duration_s, 1.0)
        for _ in range(rng.choice((0, 0, 1)))
    )


class LoneKind(NamedTuple):
    """A kind of plan.

    Attributes:
        name: of the draw of its seeds.
        share: of the seeds.
        days: that it takes to show what it is for.
        plan: makes the plan of a seed and a number of days.
    """

    name: str
    share: float
    days: float
    plan: Callable[[int, float], UniversePlan]


WIKI: Final = LoneKind("lone wiki", 0.05, 0.4, wiki_plan)
REPLICA: Final = LoneKind("lone replica", 0.04, 0.4, replica_plan)
SITE: Final = LoneKind("lone site", 0.04, 0.6, site_plan)


def lone_kind(seed: int, days: float = math.inf) -> LoneKind | None:
    """Return the kind of a seed that so many days are enough for; None: it has none."""
    drawn = (
        kind
        for kind in (WIKI, REPLICA, SITE)
        if random.Random(f"{kind.name} of {seed}").random() < kind.share and kind.days <= days
    )
    return next(drawn, None)
