"""What happens in a universe: hosts, rules that change, faults and ends of the daemon, by seed.

Each seed draws its own subset of the faults (swarm testing), since a fault that is always there
hides what only its absence shows.

Source: Groce, Zhang, Eide, Chen, Regehr 2012, "Swarm Testing", ISSTA.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

DAY_S: Final = 86_400.0
HOST_DELAYS_S: Final = (5.0, 15.0, 60.0)
FORBIDDEN: Final = ("", "", "/wiki/B", "/wiki/S", "/wiki/T")
"""Prefixes that editions of robots.txt disallow; each covers some pages, an empty one none."""


class FaultKind(StrEnum):
    """What a server does instead of its answer.

    RESET breaks the connection, STALL never answers, STALL_MID_BODY stops half-way, BUSY answers
    503 with Retry-After.
    """

    RESET = "reset"
    STALL = "stall"
    STALL_MID_BODY = "stall-mid-body"
    BUSY = "busy"


class EndKind(StrEnum):
    """How a life of the daemon ends: a clean stop, or a kill after which the file is as it was."""

    STOP = "stop"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class RobotsEdition:
    """A robots.txt as the host has it from a time on.

    Attributes:
        from_s: seconds since the start.
        forbidden: the prefix of paths that it disallows; empty: none.
        crawl_delay_s: None: it names none.
    """

    from_s: float
    forbidden: str
    crawl_delay_s: float | None

    def text(self) -> str:
        """Return the file."""
        lines = ["User-agent: *", f"Disallow: {self.forbidden}"]
        if self.crawl_delay_s is not None:
            lines.append(f"Crawl-delay: {self.crawl_delay_s:g}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class FaultPeriod:
    """A period (seconds since the start) in which a share of a host's requests meet a fault.

    Attributes:
        retry_after_s: what a busy server says; a whole number of seconds.
    """

    kind: FaultKind
    from_s: float
    until_s: float
    share: float
    retry_after_s: int


@dataclass(frozen=True, slots=True)
class HostPlan:
    """One host, which is one site; its robots.txt editions are in order and begin at 0."""

    name: str
    address: str
    pages: int
    site_seed: int
    robots: tuple[RobotsEdition, ...]
    faults: tuple[FaultPeriod, ...]

    def robots_at(self, at_s: float) -> RobotsEdition:
        """Return the edition of a time."""
        starts = [edition.from_s for edition in self.robots]
        return self.robots[bisect_right(starts, at_s) - 1]

    def faults_at(self, at_s: float) -> list[FaultPeriod]:
        """Return the periods that a time lies in."""
        return [fault for fault in self.faults if fault.from_s <= at_s < fault.until_s]


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """The end of a life at `at_s`; the next life begins `down_s` after it has ended."""

    kind: EndKind
    at_s: float
    down_s: float


@dataclass(frozen=True, slots=True)
class UniversePlan:
    """A whole universe, before it runs."""

    seed: int
    days: float
    host_delay_s: float
    hosts: tuple[HostPlan, ...]
    ends: tuple[LifeEnd, ...]

    @property
    def duration_s(self) -> float:
        """Seconds from the start to the last stop."""
        return self.days * DAY_S

    @classmethod
    def drawn(cls, seed: int, days: float) -> UniversePlan:
        """Return the plan of a seed."""
        rng = random.Random(seed)
        duration_s = days * DAY_S
        kinds = [kind for kind in FaultKind if rng.random() < 0.5]
        delay_s = rng.choice(HOST_DELAYS_S)
        hosts = tuple(
            _draw_host(rng, number, duration_s, kinds) for number in range(rng.randint(1, 4))
        )
        return cls(seed, days, delay_s, hosts, _draw_ends(rng, duration_s))


def _draw_host(
    rng: random.Random, number: int, duration_s: float, kinds: list[FaultKind]
) -> HostPlan:
    changes_s = sorted(rng.uniform(0.0, duration_s) for _ in range(rng.choice((0, 0, 1, 3))))
    robots = tuple(
        RobotsEdition(from_s, rng.choice(FORBIDDEN), rng.choice((None, None, 10.0, 90.0)))
        for from_s in (0.0, *changes_s)
    )
    faults = tuple(_draw_fault(rng, kind, duration_s) for kind in kinds for _ in range(2))
    # Some hosts share an address.
    address = f"93.184.216.{rng.choice((number, 0)) + 10}"
    return HostPlan(
        f"site{number}.test", address, rng.randint(3, 60), rng.getrandbits(32), robots, faults
    )


def _draw_fault(rng: random.Random, kind: FaultKind, duration_s: float) -> FaultPeriod:
    from_s = rng.uniform(0.0, duration_s)
    until_s = from_s + rng.uniform(0.0, duration_s / 4)
    return FaultPeriod(kind, from_s, until_s, rng.uniform(0.1, 1.0), rng.choice((20, 120, 900)))


def _draw_ends(rng: random.Random, duration_s: float) -> tuple[LifeEnd, ...]:
    """Draw one clean stop and one kill, in either order."""
    kinds = [EndKind.STOP, EndKind.KILL]
    rng.shuffle(kinds)
    places = sorted(rng.uniform(0.1, 0.9) * duration_s for _ in kinds)
    return tuple(
        LifeEnd(kind, at_s, rng.choice((0.0, 1.0, 100.0)))
        for kind, at_s in zip(kinds, places, strict=True)
    )
