"""Draw the plan of a universe from a seed.

Each seed draws its own subset of the features and faults, and their sizes (swarm testing): a fault
that is always there hides what only its absence shows, and two faults at once hide each other.

Source: Groce, Zhang, Eide, Chen, Regehr 2012, "Swarm Testing", ISSTA.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Final

from crawld.core.units import DAY_S
from crawld.simweb.site import ValidatorBehavior
from crawld.store.engine.migrate import migrations
from crawld.universe.lone_plans import lone_kind
from crawld.universe.plan import (
    ClockStep,
    ControlRequest,
    DiskFault,
    DiskPeriod,
    EndKind,
    FaultKind,
    FaultPeriod,
    GroupPlan,
    HostPlan,
    LifeEnd,
    NameEdition,
    NameFault,
    PageFate,
    PageFateKind,
    RobotsEdition,
    UniversePlan,
)

HOST_DELAYS_S: Final = (5.0, 15.0, 60.0, 300.0)
MOST_SLOTS: Final = 700
"""Slots of a host in a universe, so that a long one takes as long as a short one."""

STEADY_CHANGES_PER_DAY: Final = 0.15
"""Of the middle page of a steady site. Its 1,000 pages then have 240 changes a day, as many as
1,000 articles of the English Wikipedia from its first two years had in 2007 (239 a day)."""

LARGE_DELAY_S: Final = 15.0
LARGE_BYTES: Final = 120_000
"""At so short a delay, pages of this size reach the lowest limit of bytes that there can be."""

LONGEST_COMMIT_S: Final = 0.3
"""Nearly all visits are committed so soon after their answer."""

CAMPAIGN_DAYS: Final = (0.02, 0.02, 0.02, 0.02, 0.1, 0.1, 1.2)
"""Days of the seeds of a campaign: rules of a day need more than one."""

LEAST_GAP_DAYS: Final = 0.1
"""Days of a universe that is long enough for the outage of a wiki, and what follows."""

FORBIDDEN: Final = ("", "", "/wiki/B", "/wiki/S", "/wiki/T")
"""Prefixes that editions of robots.txt disallow; each covers some pages, an empty one none."""

PRIVATE: Final = ("127.0.0.1", "10.0.0.7", "169.254.169.254", "::1")
"""Addresses that a name rebinds to; nothing may be sent there."""

JOBS: Final = ("allocate", "estimate", "audit", "retention", "search", "replicas", "hints", "dust")

STEPS_S: Final = (-DAY_S, -3_600.0, -2.0, 2.0, 3_600.0, DAY_S)


def campaign_days(seed: int) -> float:
    """Return how many days the universe of a seed lasts in a campaign."""
    if (alone := lone_kind(seed)) is not None:
        return alone.days
    return random.Random(f"days of {seed}").choice(CAMPAIGN_DAYS)


def draw_plan(seed: int, days: float) -> UniversePlan:
    """Return the plan of a seed."""
    if (alone := lone_kind(seed, days)) is not None:
        return alone.plan(seed, days)
    rng = random.Random(seed)
    delays_s = [each for each in HOST_DELAYS_S if days * DAY_S / each <= MOST_SLOTS]
    delay_s = rng.choice(delays_s or HOST_DELAYS_S[-1:])
    drawing = _Drawing(rng, days * DAY_S, delay_s)
    return UniversePlan(
        seed,
        days,
        delay_s,
        _with_gaps(drawing.hosts(), random.Random(f"gaps of {seed}"), days),
        drawing.ends(),
        disk=drawing.disk(),
        steps=drawing.steps(),
        requests=drawing.requests(delay_s),
        old_schema=rng.randint(1, len(migrations()) - 1) if rng.random() < 0.2 else 0,
        min_revisit_s=0.0 if drawing.is_busy else rng.choice((0.0, 60.0, 600.0, 3_600.0)),
        prune=rng.random() < 0.5,
        keep_versions=rng.choice((None, None, 1, 2)),
        quiet_minutes=drawing.quiet_minutes(),
        max_requests_per_s=drawing.max_requests_per_s(delay_s),
        max_bytes_per_s=drawing.max_bytes_per_s(),
        group=drawing.group(delay_s),
    )


def steady_plan(
    seed: int, days: float, *, sites: int, pages: int, host_delay_s: float
) -> UniversePlan:
    """Return a plan in which pages change and nothing fails: one life of a mirror.

    Args:
        sites: hosts, each with its own address.
        pages: pages of each.
    """
    rng = random.Random(seed)
    hosts = tuple(
        HostPlan(
            f"site{number}.test",
            (NameEdition(0.0, f"93.184.{216 + number // 250}.{number % 250 + 1}"),),
            pages,
            rng.getrandbits(32),
            (RobotsEdition(0.0, "", None),),
            (),
            change_seed=rng.getrandbits(32),
            changes_per_day=STEADY_CHANGES_PER_DAY,
            sitemap=True,
        )
        for number in range(sites)
    )
    return UniversePlan(seed, days, host_delay_s, hosts, ())


def _with_gaps(
    hosts: tuple[HostPlan, ...], rng: random.Random, days: float
) -> tuple[HostPlan, ...]:
    """Let some wikis forget their changes while they cannot be reached."""
    if days < LEAST_GAP_DAYS:
        return hosts
    return tuple(_with_gap(host, rng, days * DAY_S) if host.wiki else host for host in hosts)


def _with_gap(host: HostPlan, rng: random.Random, duration_s: float) -> HostPlan:
    if rng.random() < 0.5:
        return host
    from_s, lasts_s = rng.uniform(0.2, 0.5) * duration_s, rng.uniform(0.05, 0.3) * duration_s
    outage = FaultPeriod(FaultKind.REFUSED, from_s, from_s + lasts_s, 1.0, 0)
    return replace(host, faults=(*host.faults, outage), keeps_changes_s=lasts_s / 2)


class _Drawing:
    """Draws the parts of one plan; each part first draws whether it is there.

    Attributes:
        is_busy: whether its hosts have few pages, which all change every few minutes.
    """

    def __init__(self, rng: random.Random, duration_s: float, delay_s: float) -> None:
        self._rng = rng
        self._duration_s = duration_s
        self._closings: list[FaultPeriod] = []
        # What only a healthy host shows is not seen if all hosts have some fault.
        is_healthy = rng.random() < 0.2
        self._kinds = [kind for kind in FaultKind if not is_healthy and rng.random() < 0.25]
        self._has_names = rng.random() < 0.3
        self._has_events = rng.random() < 0.4
        self._has_liars = rng.random() < 0.3
        self._has_replicas = rng.random() < 0.25
        self._has_noise = rng.random() < 0.2
        self._has_wikis = rng.random() < 0.25
        self._has_feeds = rng.random() < 0.25
        self.is_busy = rng.random() < 0.25
        self._has_large = delay_s <= LARGE_DELAY_S and rng.random() < 0.3

    def _time_s(self) -> float:
        return self._rng.uniform(0.0, self._duration_s)

    def _times_s(self, most: int) -> list[float]:
        return sorted(self._time_s() for _ in range(self._rng.randint(0, most)))

    def hosts(self) -> tuple[HostPlan, ...]:
        """Draw the hosts; the second may be a replica of the first."""
        hosts = [self._with_sources(self._host(n)) for n in range(self._rng.randint(1, 5))]
        if self._has_replicas and len(hosts) > 1:
            first, second = hosts[:2]
            change_seed = first.change_seed if self._rng.random() < 0.6 else second.change_seed
            hosts[1] = HostPlan(
                second.name,
                second.names,
                first.pages,
                first.site_seed,
                second.robots,
                second.faults,
                change_seed=change_seed,
                changes_per_day=first.changes_per_day,
                events=second.events,
                page_bytes=first.page_bytes,
            )
        return tuple(hosts)

    def _host(self, number: int) -> HostPlan:
        rng = self._rng
        pages = rng.choice((1, rng.randint(2, 6), rng.randint(3, 60), rng.randint(60, 150)))
        if self.is_busy:
            pages = min(pages, 6)
        robots = tuple(
            RobotsEdition(from_s, rng.choice(FORBIDDEN), rng.choice((None, None, 10.0, 90.0)))
            for from_s in (0.0, *self._times_s(rng.choice((0, 0, 1, 3))))
        )
        faults = tuple(self._fault(kind) for kind in self._kinds for _ in range(rng.randint(0, 2)))
        return HostPlan(
            f"site{number}.test",
            self._names(number),
            pages,
            rng.getrandbits(32),
            robots,
            faults,
            change_seed=rng.getrandbits(32),
            changes_per_day=500.0 if self.is_busy else rng.choice((0.1, 2.0, 50.0, 500.0)),
            events=self._events(pages) if self._has_events and pages > 1 else (),
            etag=self._validator(),
            last_modified=self._validator(),
            sitemap=rng.random() < 0.4,
            compress=rng.random() < 0.3,
            page_bytes=rng.choice((3_000, LARGE_BYTES)) if self._has_large else 3_000,
            noise=self._has_noise and rng.random() < 0.7,
        )

    def _with_sources(self, host: HostPlan) -> HostPlan:
        """Draw what tells of changes: a feed, a stream of events, or the API of a MediaWiki."""
        if self._has_wikis and self._rng.random() < 0.6:
            kept = tuple(each for each in host.events if each.kind is not PageFateKind.MOVED)
            return replace(host, wiki=True, compress=False, events=kept)
        feed, stream = (self._has_feeds and self._rng.random() < 0.5 for _ in range(2))
        return replace(host, feed=feed, stream=stream)

    def _validator(self) -> ValidatorBehavior:
        if self._has_liars:
            return self._rng.choice(list(ValidatorBehavior))
        return self._rng.choice((ValidatorBehavior.RIGHT, ValidatorBehavior.ABSENT))

    def _names(self, number: int) -> tuple[NameEdition, ...]:
        """Draw the answers of name servers; some hosts share an address."""
        rng = self._rng
        address = f"93.184.216.{rng.choice((number, 0)) + 10}"
        editions = [NameEdition(0.0, address)]
        for from_s in self._times_s(3) if self._has_names else ():
            other = f"93.184.216.{rng.randint(10, 30)}"
            editions.append(
                rng.choice(
                    (
                        NameEdition(from_s, other),
                        NameEdition(from_s, rng.choice(PRIVATE)),
                        NameEdition(from_s, address, rng.choice(list(NameFault))),
                        NameEdition(from_s, address),
                    )
                )
            )
        return tuple(editions)

    def _fault(self, kind: FaultKind) -> FaultPeriod:
        rng, from_s = self._rng, self._time_s()
        until_s = from_s + rng.uniform(0.0, self._duration_s / 4)
        share, retry_after_s = rng.uniform(0.1, 1.0), rng.choice((20, 120, 900))
        drawn = FaultPeriod(kind, from_s, until_s, share, retry_after_s, rng.random() < 0.5)
        if kind in (FaultKind.BUSY, FaultKind.TOO_MANY):
            self._closings.append(drawn)
        return drawn

    def _events(self, pages: int) -> tuple[PageFate, ...]:
        rng = self._rng
        return tuple(
            PageFate(rng.choice(list(PageFateKind)), rng.randrange(1, pages), from_s)
            for from_s in self._times_s(max(2, pages // 3))
        )

    def ends(self) -> tuple[LifeEnd, ...]:
        """Draw the ends of lives before the last."""
        rng = self._rng
        times_s = sorted(
            rng.uniform(0.02, 0.98) * self._duration_s for _ in range(rng.choice((0, 1, 2, 4)))
        )
        return tuple(self._end(at_s) for at_s in times_s)

    def _end(self, at_s: float) -> LifeEnd:
        rng = self._rng
        kind, down_s = rng.choice(list(EndKind)), rng.choice((0.0, 1.0, 100.0))
        if rng.random() < 0.3:
            later_s = rng.uniform(0.0, LONGEST_COMMIT_S)
            return LifeEnd(kind, at_s, down_s, answers=rng.randint(1, 5), later_s=later_s)
        operations = rng.choice((0, rng.randint(1, 8), rng.randint(1, 200)))
        return LifeEnd(kind, at_s, down_s, operations=operations)

    def disk(self) -> tuple[DiskPeriod, ...]:
        """Draw periods of a faulty disk."""
        rng = self._rng
        if rng.random() < 0.7:
            return ()
        periods = []
        for from_s in self._times_s(3):
            until_s = from_s + rng.choice((1.0, 30.0, 600.0))
            periods.append(DiskPeriod(rng.choice(list(DiskFault)), from_s, until_s))
        return tuple(periods)

    def steps(self) -> tuple[ClockStep, ...]:
        """Draw jumps of the wall clock; some while hosts are closed by a Retry-After."""
        rng = self._rng
        times_s = self._times_s(3) if rng.random() < 0.25 else []
        if times_s and self._closings:
            closed = rng.choice(self._closings)
            last_s = min(closed.until_s + closed.retry_after_s, self._duration_s)
            times_s = sorted((*times_s, rng.uniform(closed.from_s, last_s)))
        return tuple(ClockStep(at_s, rng.choice(STEPS_S)) for at_s in times_s)

    def quiet_minutes(self) -> tuple[int, int] | None:
        """Draw quiet hours of the first day; every universe begins at midnight."""
        if self._rng.random() < 0.8:
            return None
        first_day_s = min(self._duration_s, DAY_S)
        begin = int(self._rng.uniform(0.1, 0.7) * first_day_s / 60.0)
        return begin, begin + max(2, int(self._rng.uniform(0.1, 0.2) * first_day_s / 60.0))

    def max_requests_per_s(self, delay_s: float) -> float | None:
        """Draw a total rate: that of one to three hosts."""
        return None if self._rng.random() < 0.75 else self._rng.choice((1.0, 2.0, 3.0)) / delay_s

    def max_bytes_per_s(self) -> int | None:
        """Draw a total rate, which only large pages reach."""
        return 10_000 if self._has_large and self._rng.random() < 0.5 else None

    def group(self, delay_s: float) -> GroupPlan | None:
        """Draw a group of the first hosts, which are not always there."""
        rng = self._rng
        if rng.random() < 0.8:
            return None
        hosts = tuple(f"site{number}.test" for number in range(rng.randint(1, 3)))
        rate = rng.choice((None, 0.5, 1.0, 2.0))
        delays_s = (None, delay_s / 2, delay_s * 3)
        return GroupPlan(hosts, rate and rate / delay_s, rng.choice(delays_s))

    def requests(self, delay_s: float) -> tuple[ControlRequest, ...]:
        """Draw requests of an operator."""
        times_s = self._times_s(8) if self._rng.random() < 0.5 else []
        return tuple(self._request(at_s, delay_s) for at_s in times_s)

    def _request(self, at_s: float, delay_s: float) -> ControlRequest:
        rng = self._rng
        host = f"site{rng.randint(0, 4)}.test"
        everything = json.dumps({})
        queries = ("/status", "/audits", "/sites", "/hosts", "/pages", "/jobs", "/replicas")
        return rng.choice(
            (
                ControlRequest(at_s, "GET", rng.choice(queries)),
                ControlRequest(at_s, "GET", f"/why?url=http://{host}/"),
                ControlRequest(at_s, "POST", "/reload", host_delay_s=rng.choice((5.0, 30.0))),
                ControlRequest(at_s, "POST", "/pause", everything),
                ControlRequest(at_s, "POST", "/resume", everything),
                ControlRequest(at_s, "POST", "/drain"),
                ControlRequest(at_s, "POST", "/pin", json.dumps({"url": f"http://{host}/"})),
                ControlRequest(at_s, "POST", f"/hosts/{host}/forgive"),
                ControlRequest(at_s, "POST", f"/jobs/{rng.choice(JOBS)}/run"),
                ControlRequest(at_s, "POST", "/add", json.dumps({"urls": [f"http://{host}/new"]})),
            )
        )
