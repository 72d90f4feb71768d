"""What happens in a universe, before it runs: to hosts, names, the disk, the clock and the daemon.

All times are seconds since the start of the universe. `draw.py` draws a plan from a seed, and
`scenario.py` writes and reads it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Final, Protocol, TypeVar

from crawld.core.units import DAY_S
from crawld.simweb.site import ValidatorBehavior

START_AT: Final = 1_767_225_600.0
"""The Unix time at which every universe begins: 2026-01-01."""

ANSWER_BYTES: Final = 200_000
"""More than any answer has."""


class FaultKind(StrEnum):
    """What a host does instead of its answer.

    RESET breaks the connection, RESET_AT_BYTE does so within the answer; STALL never answers,
    STALL_MID_BODY and CLOSE_MID_BODY stop half-way; DRIP sends little by little; BUSY answers 503,
    TOO_MANY 429 with Retry-After; BROKEN answers 500. LENGTH, GZIP and JUNK lie about the body.
    HALF_CLOSE ends the server's direction after a whole answer, HALF_CLOSE_MID_BODY half-way, and
    the connection stays. LOOP redirects to itself, SOFT_404 has an error page with 200 for
    everything unknown. REFUSED and SILENT meet the connection: it is refused, or never completed.
    """

    RESET = "reset"
    RESET_AT_BYTE = "reset-at-byte"
    STALL = "stall"
    STALL_MID_BODY = "stall-mid-body"
    CLOSE_MID_BODY = "close-mid-body"
    HALF_CLOSE = "half-close"
    HALF_CLOSE_MID_BODY = "half-close-mid-body"
    DRIP = "drip"
    BUSY = "busy"
    TOO_MANY = "too-many"
    BROKEN = "broken"
    LENGTH = "length"
    GZIP = "gzip"
    JUNK = "junk"
    LOOP = "loop"
    SOFT_404 = "soft-404"
    REFUSED = "refused"
    SILENT = "silent"


class EndKind(StrEnum):
    """How a life of the daemon ends.

    STOP is clean; a KILL leaves the file as it was; a POWER_CUT drops or tears what was not synced.
    """

    STOP = "stop"
    KILL = "kill"
    POWER_CUT = "power-cut"


class DiskFault(StrEnum):
    """A full disk refuses what makes a file longer; a failing one a share of writes and syncs."""

    FULL = "full"
    FAILING = "failing"


class NameFault(StrEnum):
    """How a lookup fails: no such name, a name server that fails, or none that answers."""

    NXDOMAIN = "nxdomain"
    TEMPORARY = "temporary"
    TIMEOUT = "timeout"


class PageFateKind(StrEnum):
    """What happens to a page: it is deleted, moved to another URL, or back at its own."""

    DELETED = "deleted"
    MOVED = "moved"
    RESTORED = "restored"


class _Dated(Protocol):
    @property
    def from_s(self) -> float: ...


D = TypeVar("D", bound=_Dated)


def in_force(editions: Sequence[D], at_s: float) -> D:
    """Return the last edition that begins at or before a time; the first begins at 0."""
    return editions[bisect_right([each.from_s for each in editions], at_s) - 1]


@dataclass(frozen=True, slots=True)
class RobotsEdition:
    """A robots.txt as the host has it from a time on.

    Attributes:
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
class NameEdition:
    """What name servers say of a host from a time on: an address, or a fault."""

    from_s: float
    address: str
    fault: NameFault | None = None


@dataclass(frozen=True, slots=True)
class FaultPeriod:
    """A period in which a share of a host's requests (or connections) meet a fault.

    Attributes:
        retry_after_s: what a busy server says; a whole number of seconds.
        names_date: it says so by a date of its clock.
    """

    kind: FaultKind
    from_s: float
    until_s: float
    share: float
    retry_after_s: int
    names_date: bool = False


@dataclass(frozen=True, slots=True)
class PageFate:
    """Something happens to a page, by its number."""

    kind: PageFateKind
    page: int
    from_s: float


@dataclass(frozen=True, slots=True)
class HostPlan:
    """One host, which is one site; its editions are in order and begin at 0.

    Attributes:
        site_seed: of its pages and links; replicas have one.
        change_seed: of its changes; replicas that stay equal have one.
        changes_per_day: of its middle page; rates are log-uniform from a tenth to ten times of it,
            and a quarter of the pages never change.
        etag, last_modified: how its validators behave; all but RIGHT and ABSENT are lies.
        sitemap: whether it has one. compress: whether it sends gzip.
        page_bytes: about the size of a page.
        noise: whether every response differs in what has no meaning.
        feed: whether it has a feed of its newest changes. stream: whether it has a stream of them.
        wiki: whether it is a MediaWiki with an API; then no page moves.
        keeps_changes_s: how long it lists a recent change; None: for ever.
    """

    name: str
    names: tuple[NameEdition, ...]
    pages: int
    site_seed: int
    robots: tuple[RobotsEdition, ...]
    faults: tuple[FaultPeriod, ...]
    change_seed: int = 0
    changes_per_day: float = 10.0
    events: tuple[PageFate, ...] = ()
    etag: ValidatorBehavior = ValidatorBehavior.RIGHT
    last_modified: ValidatorBehavior = ValidatorBehavior.RIGHT
    sitemap: bool = False
    compress: bool = False
    page_bytes: int = 3_000
    noise: bool = False
    feed: bool = False
    stream: bool = False
    wiki: bool = False
    keeps_changes_s: float | None = None

    def robots_at(self, at_s: float) -> RobotsEdition:
        """Return the robots.txt of a time."""
        return in_force(self.robots, at_s)

    def name_at(self, at_s: float) -> NameEdition:
        """Return what name servers say at a time."""
        return in_force(self.names, at_s)

    def is_reachable(self, at_s: float) -> bool:
        """Whether its name leads to a public address at a time."""
        told = self.name_at(at_s)
        return told.fault is None and ip_address(told.address).is_global

    def faults_at(self, at_s: float) -> list[FaultPeriod]:
        """Return the periods that a time lies in."""
        return [fault for fault in self.faults if fault.from_s <= at_s < fault.until_s]

    def page_event(self, page: int, at_s: float) -> PageFateKind | None:
        """Return what has happened to a page last; None: nothing, or it is back."""
        kinds = [each.kind for each in self.events if each.page == page and each.from_s <= at_s]
        return kinds[-1] if kinds and kinds[-1] is not PageFateKind.RESTORED else None

    def is_honest(self) -> bool:
        """Whether its validators tell when a page has changed."""
        honest = (ValidatorBehavior.RIGHT, ValidatorBehavior.ABSENT)
        return self.etag in honest and self.last_modified in honest


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """The end of a life at `at_s`; the next life begins `down_s` after it has ended.

    Attributes:
        operations: it comes after so many more writes, truncations and syncs of the disk: in the
            middle of a commit, a checkpoint or a migration.
        answers: it comes when so many more pages were sent, and their visits are not committed.
        later_s: how long after the last of them.
    """

    kind: EndKind
    at_s: float
    down_s: float
    operations: int = 0
    answers: int = 0
    later_s: float = 0.0


@dataclass(frozen=True, slots=True)
class DiskPeriod:
    """A period in which the disk has a fault."""

    kind: DiskFault
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A jump of the wall clock of the daemon's machine, forward or (negative) back."""

    at_s: float
    by_s: float


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A request to the control socket.

    Attributes:
        body: JSON; empty: none.
        host_delay_s: written into the config file just before; None: as it is.
    """

    at_s: float
    method: str
    target: str
    body: str = ""
    host_delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Hosts that share limits.

    Attributes:
        hosts: their names.
        max_requests_per_s: of all of them.
        host_delay_s: of each, instead of that of all hosts; None: as they have.
    """

    hosts: tuple[str, ...]
    max_requests_per_s: float | None
    host_delay_s: float | None


@dataclass(frozen=True, slots=True)
class UniversePlan:
    """A whole universe.

    Attributes:
        old_schema: number of migrations that the first file has; 0: there is none yet.
        min_revisit_s, prune, keep_versions, max_requests_per_s, max_bytes_per_s: keys of the
            daemon's config.
        quiet_minutes: begin and end of its quiet hours, minutes of the day (UTC).
    """

    seed: int
    days: float
    host_delay_s: float
    hosts: tuple[HostPlan, ...]
    ends: tuple[LifeEnd, ...]
    disk: tuple[DiskPeriod, ...] = ()
    steps: tuple[ClockStep, ...] = ()
    requests: tuple[ControlRequest, ...] = ()
    old_schema: int = 0
    min_revisit_s: float = 3_600.0
    prune: bool = False
    keep_versions: int | None = None
    quiet_minutes: tuple[int, int] | None = None
    max_requests_per_s: float | None = None
    max_bytes_per_s: int | None = None
    group: GroupPlan | None = None

    def lowest_rate(self) -> float | None:
        """Return the fewest requests per second that a limit permits; None: there is no limit."""
        group = None if self.group is None else self.group.max_requests_per_s
        answers = None if self.max_bytes_per_s is None else self.max_bytes_per_s / ANSWER_BYTES
        return min(
            (each for each in (self.max_requests_per_s, group, answers) if each), default=None
        )

    @property
    def duration_s(self) -> float:
        """Seconds from the start to the last stop."""
        return self.days * DAY_S

    def quiet_since_s(self, at_s: float) -> float | None:
        """Return for how many seconds it has been quiet hours by the daemon's clock; None: none."""
        if self.quiet_minutes is None:
            return None
        begin, end = (60.0 * minute for minute in self.quiet_minutes)
        second = self.wall(at_s) % DAY_S
        return second - begin if begin <= second < end else None

    def disk_fault(self, at_s: float) -> DiskFault | None:
        """Return the fault of the disk at a time."""
        return next((each.kind for each in self.disk if each.from_s <= at_s < each.until_s), None)

    def wall(self, at_s: float) -> float:
        """Return the Unix time that the clock of the daemon's machine shows."""
        return START_AT + at_s + sum(step.by_s for step in self.steps if step.at_s <= at_s)
