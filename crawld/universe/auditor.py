"""The auditor: knows what the servers saw, and checks it and the file against the promises.

It shares no rule with the daemon. A daemon that was killed may have forgotten the answers of its
last moments (`LOST_S`), so rules that rest on them are not held against it; delays are, always.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from crawld.simweb.message import SimRequest
from crawld.universe.event_log import EventLog
from crawld.universe.plan import HostPlan, RobotsEdition

LOST_S: Final = 2.0
"""A visit is committed this long after its answer at the latest; a kill costs no older one."""

SAME_VISIT_S: Final = 60.0
"""How far the stored time of a visit may be from its request; less than `min_revisit_s`."""

ROBOTS_LIFE_S: Final = 86_400.0
"""RFC 9309, section 2.4."""

TOLERANCE_S: Final = 1e-6

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: which, when (seconds since the start), and what happened."""

    invariant: str
    at: float
    what: str


class _Told(NamedTuple, Generic[T]):
    """What an answer said, and when it was sent (seconds since the start)."""

    at_s: float
    value: T


class _Memory(Generic[T]):
    """What the daemon must know from the answers of a host.

    Attributes:
        beliefs: what it may believe, more than one value after a kill; empty: nothing.
    """

    def __init__(self, *beliefs: _Told[T]) -> None:
        self.beliefs = self._before = list(beliefs)

    def tell(self, at_s: float, value: T) -> None:
        """Note an answer, which replaces the earlier ones."""
        self._before, self.beliefs = self.beliefs, [_Told(at_s, value)]

    def forget(self, since_s: float) -> None:
        """Permit that an answer since then is forgotten."""
        if self.beliefs and self.beliefs[-1].at_s >= since_s:
            self.beliefs = [*self._before, *self.beliefs]

    def values(self) -> list[T]:
        """Return what the daemon may believe."""
        return [told.value for told in self.beliefs]


@dataclass(frozen=True, slots=True)
class _Request:
    at_s: float
    host: str
    target: str


class _HostFacts:
    """What the auditor knows about one host."""

    def __init__(self) -> None:
        self.last_at_s: float | None = None
        self.robots: _Memory[RobotsEdition] = _Memory()
        self.robots_asked_s = 0.0
        self.closed_until_s = _Memory(_Told(0.0, 0.0))


class Auditor:
    """Watches every request of a universe; a `Witness` of its hosts.

    Args:
        host_delay_s, address_delay_s: least delays, as the daemon is configured.
        start_at: Unix time of the start of the universe.

    Attributes:
        violations: those found so far.
        requests: number of requests so far.
    """

    def __init__(
        self, host_delay_s: float, address_delay_s: float, start_at: float, log: EventLog
    ) -> None:
        self._host_delay_s = host_delay_s
        self._address_delay_s = address_delay_s
        self._start_at = start_at
        self._log = log
        self.violations: list[Violation] = []
        self.requests = 0
        self._hosts: defaultdict[str, _HostFacts] = defaultdict(_HostFacts)
        self._last_of_address: dict[str, float] = {}
        self._asked: Counter[str] = Counter()
        self._answered: list[_Request] = []

    # --- at the servers ----------------------------------------------------------------------

    def request_arrived(self, plan: HostPlan, request: SimRequest) -> None:
        """Check a request against the delays, the closings and robots.txt."""
        at_s, facts = request.at - self._start_at, self._hosts[plan.name]
        self.requests += 1
        self._log.add("request", plan.name, request.target)
        self._asked[_url(plan.name, request.target)] += 1
        where = f"{plan.name}{request.target}"
        self._check_delays(plan, facts, at_s, where)
        opens_s = min(facts.closed_until_s.values())
        if at_s < opens_s - TOLERANCE_S:
            self._add("retry_after", at_s, f"{where}: closed until {opens_s:.3f}")
        if request.target == "/robots.txt":
            facts.robots_asked_s = at_s
        else:
            self._check_robots(facts, at_s, where, request.target)
        facts.last_at_s = self._last_of_address[plan.address] = at_s

    def _check_delays(self, plan: HostPlan, facts: _HostFacts, at_s: float, where: str) -> None:
        delays_s = [robots.crawl_delay_s or 0.0 for robots in facts.robots.values()]
        delay_s = max(self._host_delay_s, min(delays_s, default=0.0))
        if facts.last_at_s is not None and at_s - facts.last_at_s < delay_s - TOLERANCE_S:
            gap_s = at_s - facts.last_at_s
            self._add("host_delay", at_s, f"{where}: {gap_s:.3f} s after another, not {delay_s:g}")
        before_s = self._last_of_address.get(plan.address)
        if before_s is not None and at_s - before_s < self._address_delay_s - TOLERANCE_S:
            self._add("address_delay", at_s, f"{where}: {at_s - before_s:.3f} s after another")

    def _check_robots(self, facts: _HostFacts, at_s: float, where: str, target: str) -> None:
        beliefs = facts.robots.beliefs
        if not beliefs:
            self._add("robots_unknown", at_s, f"{where}: robots.txt was never answered")
        elif all(_forbids(told.value, target) for told in beliefs):
            self._add("robots_forbids", at_s, where)
        elif at_s - max(beliefs[-1].at_s, facts.robots_asked_s) > ROBOTS_LIFE_S:
            self._add("robots_expired", at_s, f"{where}: robots.txt was not asked for within a day")

    def answer_sent(
        self,
        plan: HostPlan,
        request: SimRequest,
        status: int,
        robots: RobotsEdition,
        retry_after_s: int | None,
    ) -> None:
        """Note what the daemon was told."""
        at_s, facts = request.at - self._start_at, self._hosts[plan.name]
        self._log.add("answer", plan.name, request.target, status)
        if retry_after_s is not None:
            facts.closed_until_s.tell(at_s, at_s + retry_after_s)
        if request.target == "/robots.txt":
            if status == 200:
                facts.robots.tell(at_s, robots)
        elif status in (200, 304):  # not a page that never was: a probe for soft 404s
            self._answered.append(_Request(at_s, plan.name, request.target))

    # --- at the file -------------------------------------------------------------------------

    def life_ended(self, at_s: float) -> None:
        """Take into account that the daemon has forgotten what it had not yet committed.

        Answers of the last `LOST_S` seconds need not be in the file.
        """
        since_s = at_s - LOST_S
        self._answered = [each for each in self._answered if each.at_s < since_s]
        for facts in self._hosts.values():
            facts.robots.forget(since_s)
            facts.closed_until_s.forget(since_s)

    def check_file(
        self, at_s: float, findings: Iterable[str], visits: Mapping[str, list[float]]
    ) -> None:
        """Check a file between two lives.

        Args:
            findings: faults of the file.
            visits: Unix times of the stored visits by URL.
        """
        for finding in findings:
            self._add("file", at_s, finding)
        times = {url: sorted(found) for url, found in visits.items()}
        for each in self._answered:
            visited_at = self._start_at + each.at_s
            if not _has_near(times.get(_url(each.host, each.target), []), visited_at):
                what = f"{each.host}{each.target} was answered at {each.at_s:.3f}"
                self._add("visit_lost", at_s, what)
        for url, found in times.items():
            if len(found) > self._asked[url]:
                self._add("visit_invented", at_s, f"{url}: {len(found)} of {self._asked[url]}")

    def note_error(self, at_s: float, event: str) -> None:
        """Note an error that the daemon has logged: the world has none that it may log."""
        self._add("error_logged", at_s, event)

    def _add(self, invariant: str, at_s: float, what: str) -> None:
        self._log.add("violation", invariant, what)
        self.violations.append(Violation(invariant, at_s, what))

    def as_json(self) -> list[dict[str, object]]:
        """Return the violations."""
        return [asdict(violation) for violation in self.violations]


def _url(host: str, target: str) -> str:
    return f"http://{host}{target}"


def _forbids(robots: RobotsEdition, target: str) -> bool:
    return robots.forbidden != "" and target.startswith(robots.forbidden)


def _has_near(times: list[float], at: float) -> bool:
    place = bisect_left(times, at - SAME_VISIT_S)
    return place < len(times) and times[place] <= at + SAME_VISIT_S
