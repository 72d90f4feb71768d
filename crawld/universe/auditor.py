"""The auditor: knows what the servers saw, and holds it against the promises.

It shares no rule with the daemon. A daemon that was killed may have forgotten the answers of its
last moments (`LOST_S`), so rules that rest on them are not held against it; delays are, always.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final

import trio

from crawld.core.politeness import ADDRESS_SHARE, MAX_BACKOFF_DELAY_S
from crawld.core.turn_order import LEAST_SHARE
from crawld.core.units import DAY_S
from crawld.simweb.message import SimRequest
from crawld.universe.beliefs import Memory, Told
from crawld.universe.change_audit import Truth
from crawld.universe.event_log import EventLog
from crawld.universe.file_audit import LOST_S, NO_HOSTS, FileAudit
from crawld.universe.file_rows import own_url
from crawld.universe.findings import Findings
from crawld.universe.freshness_audit import FreshnessAudit
from crawld.universe.idle_audit import IdleAudit
from crawld.universe.plan import START_AT, FaultPeriod, HostPlan, RobotsEdition, UniversePlan
from crawld.universe.rate_audit import RateAudit
from crawld.universe.simulated_host import CONNECTING, DOCUMENTS, SentAnswer
from crawld.universe.wiki_audit import check_wikis

ROBOTS_LIFE_S: Final = DAY_S
"""RFC 9309, section 2.4."""

DISK_TAIL_S: Final = 120.0
"""So long after a fault of the disk, the daemon may still log errors that it caused."""

LONGEST_CRAWL_DELAY_S: Final = 90.0

TURN_S: Final = 15.0
"""A turn that began before quiet hours may send its request so much later."""

UNDER_WAY_S: Final = 60.0
"""A request is under way for so long at most."""

TOLERANCE_S: Final = 1e-6

WAL_BYTES: Final = 80 * 1024 * 1024
"""The writer shortens a log of 64 MiB; a group of commits is never longer than the rest."""

LINES: Final = 100
LINES_A_REQUEST: Final = 4
LINES_AN_HOUR: Final = 60
"""What a life may log: so many lines, for each request, and in each hour."""

TEMPORARY: Final = ("-wal", "-shm", "-journal", ".tmp", ".part", ".marks")
"""Ends of the names of files that a clean stop removes."""

SOFT_404_PROBE: Final = "/crawld-"
"""In the path of what was never there: the answer, if it is a text after all, is no page."""

STARVED_S: Final = 600.0
STARVED_TURNS: Final = 3.0
"""A host with which nothing is wrong has a request in this time and that of so many turns."""


class _HostFacts:
    """What the auditor knows about one host.

    Attributes:
        trouble_s: when something last went wrong with it, or was wrong by plan.
    """

    def __init__(self) -> None:
        self.last_at_s: float | None = None
        self.robots: Memory[RobotsEdition] = Memory()
        self.robots_asked_s = self.robots_younger_s = 0.0
        self.closed_until_s = Memory(Told(0.0, 0.0))
        self.trouble_s = -math.inf


class Auditor:
    """Watches every request of a universe; a `Witness` of its hosts.

    Attributes:
        found: the violations.
        requests: number of requests so far.
        file: checks the file between two lives.
        freshness: checks the freshness that the daemon states.
        measured: checks the freshness that its random visits have measured.
    """

    def __init__(
        self, plan: UniversePlan, log: EventLog, hosts: Mapping[str, Truth] = NO_HOSTS
    ) -> None:
        """Begin to watch.

        Args:
            hosts: what is true of their pages, by name; may be filled later.
        """
        self._plan = plan
        self._log = log
        self.found = Findings(log)
        self._truths = hosts
        self.file = FileAudit(plan, self.found, hosts)
        self.freshness = FreshnessAudit(plan, self.found, hosts)
        self.measured = self.file.measured
        self._idle = IdleAudit(plan, self.found)
        self._answers_left, self._then = 0, _nothing
        self.requests = 0
        self._delay_s = self._delay_before_s = plan.host_delay_s
        self._delay_since_s = 0.0
        self._hosts: defaultdict[str, _HostFacts] = defaultdict(_HostFacts)
        self._last_of_address: dict[str, tuple[float, str]] = {}
        rates = plan.max_requests_per_s, plan.max_bytes_per_s
        whole = RateAudit("total_rate", self.found, *rates, self._held_up)
        group = plan.group
        shared = (
            None if group is None else RateAudit("group_rate", self.found, group.max_requests_per_s)
        )
        self._rates = {
            host.name: [whole, shared] if shared and group and host.name in group.hosts else [whole]
            for host in plan.hosts
        }
        self._idle_since_s = 0.0
        self._stalled_s = math.inf
        self._stall_began_s = self._stall_ended_s = -math.inf
        self._is_paused = False
        self._lines = self._requests_before = 0
        self._born_s = 0.0

    # --- at the servers ----------------------------------------------------------------------

    def request_arrived(self, plan: HostPlan, request: SimRequest, address: str) -> None:
        """Check a request against the delays, the closings and robots.txt."""
        at_s, facts = request.at - START_AT, self._hosts[plan.name]
        self.requests += 1
        self._log.add("request", plan.name, request.target, address)
        self.file.asked(plan.name, request.target)
        where = f"{plan.name}{request.target}"
        self._check_delays(address, plan.name, facts, at_s, where)
        self._check_idle(plan.name, facts, at_s)
        opens_s = min(facts.closed_until_s.values())
        if at_s < opens_s - TOLERANCE_S:
            self.found.add("retry_after", at_s, f"{where}: closed until {opens_s:.3f}")
        self._check_hours(at_s, where)
        for rate in self._rates[plan.name]:
            rate.asked(at_s, where)
        if request.target == "/robots.txt":
            facts.robots_asked_s, facts.robots_younger_s = at_s, 0.0
        else:
            self._check_robots(facts, at_s, where, request.target)
        facts.last_at_s = at_s
        self._last_of_address[address] = at_s, plan.name

    def _check_delays(
        self, address: str, host: str, facts: _HostFacts, at_s: float, where: str
    ) -> None:
        last_s, (before_s, other) = facts.last_at_s, self._last_of_address.get(address, (None, ""))
        delays_s = [robots.crawl_delay_s or 0.0 for robots in facts.robots.values()]
        if last_s is not None:
            delay_s = max(self._least_delay_s(host, last_s, before_s), min(delays_s, default=0.0))
            if (gap_s := at_s - last_s) < delay_s - TOLERANCE_S:
                self.found.add("host_delay", at_s, f"{where}: {gap_s:.3f} s, not {delay_s:g}")
        if before_s is not None:
            least_s = self._least_delay_s(other, last_s, before_s) / ADDRESS_SHARE
            if (gap_s := at_s - before_s) < least_s - TOLERANCE_S:
                self.found.add("address_delay", at_s, f"{where}: {gap_s:.3f} s at {address}")

    def _check_idle(self, host: str, facts: _HostFacts, at_s: float) -> None:
        """Check how long a host that may be asked was not."""
        delays_s = [robots.crawl_delay_s or 0.0 for robots in facts.robots.values()]
        delay_s = max(self._delay_s, self._delay_before_s, *delays_s)
        since_s = math.inf if self._is_paused else self._idle_since_s
        self._idle.asked(host, at_s, delay_s=delay_s, idle_since_s=since_s)

    def _least_delay_s(self, host: str, *since_s: float | None) -> float:
        """Return the delay of a host in force, or before it since some earlier time."""
        group = self._plan.group
        if group is not None and host in group.hosts and group.host_delay_s is not None:
            return group.host_delay_s
        if any(each is not None and each <= self._delay_since_s for each in since_s):
            return min(self._delay_s, self._delay_before_s)
        return self._delay_s

    def _check_hours(self, at_s: float, where: str) -> None:
        quiet_s = self._plan.quiet_since_s(at_s)
        if quiet_s is not None and quiet_s > TURN_S:
            self.found.add("quiet_hours", at_s, f"{where}: {quiet_s:.3f} s after their begin")

    def _check_robots(self, facts: _HostFacts, at_s: float, where: str, target: str) -> None:
        beliefs = facts.robots.beliefs
        if not beliefs:
            self.found.add("robots_unknown", at_s, f"{where}: robots.txt was never answered")
        elif all(_forbids(told.value, target) for told in beliefs):
            self.found.add("robots_forbids", at_s, where)
        elif at_s - max(beliefs[-1].at_s, facts.robots_asked_s) > (
            ROBOTS_LIFE_S + facts.robots_younger_s
        ):
            what = f"{where}: robots.txt was not asked for within a day"
            self.found.add("robots_expired", at_s, what)

    def answer_sent(self, plan: HostPlan, request: SimRequest, answer: SentAnswer) -> None:
        """Note what the daemon was told."""
        at_s, facts = request.at - START_AT, self._hosts[plan.name]
        self._log.add("answer", plan.name, request.target, answer.status)
        for rate in self._rates[plan.name]:
            rate.answered(trio.current_time(), answer.wire_bytes)
        if answer.retry_after_s is not None:
            facts.closed_until_s.tell(trio.current_time(), at_s + answer.retry_after_s)
        if request.target == "/robots.txt":
            if answer.status == 200:
                facts.robots.tell(at_s, answer.robots)
        elif not request.target.startswith(DOCUMENTS):
            is_whole = answer.status in (200, 304) and answer.page is not None
            self._idle.answered(plan.name, request.target, at_s, is_whole=is_whole)
        is_document = request.target.startswith(DOCUMENTS) or SOFT_404_PROBE in request.target
        if answer.status in (200, 304) and not is_document:
            is_kept = self.file.answered(plan, request.target, at_s, answer)
            if is_kept and answer.page is not None:
                for each in (self.freshness, self.measured):
                    each.served(plan.name, answer.page, answer.revision, at_s)
            self._count_answer()
        if answer.status not in (200, 304):
            facts.trouble_s = at_s

    def after_answers(self, count: int, then: Callable[[], None]) -> None:
        """Call a function once, when the last of so many pages was sent."""
        self._answers_left, self._then = count, then

    def _count_answer(self) -> None:
        self._answers_left -= 1
        if self._answers_left == 0:
            self._then()

    def set_aside(self, url: str) -> None:
        """Note that the daemon asks for a page again once its host was probed for soft 404s."""
        self.file.set_aside(url)
        host, _, path = own_url(url).removeprefix("http://").partition("/")
        self.freshness.set_aside(host, f"/{path}")

    def fence_crossed(self, address: str) -> None:
        """Note a connection to an address that is not public."""
        self.found.add("address_fence", trio.current_time(), f"a connection to {address}")

    # --- what the operator does --------------------------------------------------------------

    def delay_set(self, host_delay_s: float) -> None:
        """Note that another delay is in force."""
        if host_delay_s != self._delay_s:
            self._delay_before_s, self._delay_s = self._delay_s, host_delay_s
            self._delay_since_s = trio.current_time()

    def pause_set(self, *, is_paused: bool) -> None:
        """Note that everything is paused or resumed."""
        self._is_paused = is_paused
        self._idle_since_s = trio.current_time()

    def forgiven(self, host: str) -> None:
        """Note that the operator ended the back-off of a host."""
        self._hosts[host].closed_until_s.tell(trio.current_time(), 0.0)

    def control_answered(self, target: str, status: int, *, is_stopping: bool = False) -> None:
        """Check the status of an answer of the control socket.

        Args:
            is_stopping: whether the daemon stops: it may refuse what needs its file.
        """
        at_s = trio.current_time()
        self._log.add("control", target, status)
        is_refused = is_stopping and status == 503
        if status >= 500 and not is_refused and not self._disk_excuses(at_s):
            self.found.add("control_failed", at_s, f"{target}: {status}")

    # --- lives -------------------------------------------------------------------------------

    def life_began(self) -> None:
        """Take into account that a new process computes the closings from the wall clock."""
        self.pause_set(is_paused=False)
        self.measured.life_began(trio.current_time())
        self._lines, self._requests_before, self._born_s = 0, self.requests, trio.current_time()
        for rate in chain.from_iterable(self._rates.values()):
            rate.life_began()
        for facts in self._hosts.values():
            # A new process has the clock only: if it was set back, robots.txt is younger by it.
            asked_s = facts.robots_asked_s
            steps = [each for each in self._plan.steps if asked_s <= each.at_s <= self._born_s]
            facts.robots_younger_s = sum(max(-each.by_s, 0.0) for each in steps)
            told_s = facts.closed_until_s.beliefs[-1].at_s
            if any(told_s <= step.at_s <= trio.current_time() for step in self._plan.steps):
                facts.closed_until_s.doubt(0.0)

    def life_ended(self, at_s: float) -> None:
        """Take into account that the daemon has forgotten what it had not yet committed.

        Answers of the last `LOST_S` seconds need not be in the file; nor those since the disk has
        refused all commits, as the daemon has said.
        """
        self._check_lines()
        self._idle.forget()
        self.measured.life_ended(at_s)
        since_s = min(at_s, self._stalled_s) - LOST_S
        self._stalled_s = math.inf
        self.file.forget(since_s)
        for facts in self._hosts.values():
            facts.robots.forget(since_s)
            facts.closed_until_s.forget(since_s)

    def universe_ended(self, at_s: float) -> None:
        """Check at the end of a universe what is true of all of it."""
        self.freshness.check(at_s)
        self.measured.check(at_s)
        check_wikis(self._plan, self.found, self._truths, self.freshness.held_at, at_s)

    def check_starved(self, at_s: float) -> None:
        """Check at the end of a life that each host had its requests while nothing was wrong."""
        for host in self._plan.hosts:
            self._check_idle(host.name, self._hosts[host.name], at_s)
        if self._is_paused or self._plan.disk or self._plan.quiet_minutes is not None:
            return
        longest_s = max(self._plan.min_revisit_s, self._delay_s, LONGEST_CRAWL_DELAY_S)
        most_s = STARVED_S + STARVED_TURNS * longest_s
        if (rate := self._plan.lowest_rate()) is not None:
            # Where pages change seldom, or too often to be followed, a host has a small share.
            most_s = max(most_s, STARVED_S + len(self._plan.hosts) / (rate * LEAST_SHARE))
        for host in self._plan.hosts:
            facts = self._hosts[host.name]
            bad_s = [fault.until_s for fault in self._faults_met(host) if fault.from_s <= at_s]
            bad_s += [each.from_s for each in host.robots if each.from_s <= at_s]
            bad_s += [each.from_s for each in host.names if each.from_s <= at_s]
            trouble_s = min(at_s, max([facts.trouble_s, *bad_s], default=0.0))
            well_s = trouble_s + (MAX_BACKOFF_DELAY_S if trouble_s > 0 else 0.0)
            closed_s = max(facts.closed_until_s.values())
            since_s = max(self._idle_since_s, well_s, closed_s, facts.last_at_s or 0.0)
            if host.is_reachable(at_s) and at_s - since_s > most_s:
                what = f"{host.name} had no request since {since_s:.0f}"
                self.found.add("host_starved", at_s, what)

    def _held_up(self, from_s: float, until_s: float) -> int:
        """Return of how many hosts a request may have failed between two times."""
        return sum(
            any(
                fault.from_s <= until_s and from_s <= fault.until_s + UNDER_WAY_S
                for fault in self._faults_met(host)
            )
            for host in self._plan.hosts
        )

    def _faults_met(self, host: HostPlan) -> list[FaultPeriod]:
        """Return its own faults, and those of connections to its addresses: others share them."""
        addresses = {each.address for each in host.names}
        beside = [
            fault
            for other in self._plan.hosts
            if addresses & {each.address for each in other.names}
            for fault in other.faults
            if fault.kind in CONNECTING
        ]
        return [*host.faults, *beside]

    def note_logged(self, level: str, event: str) -> None:
        """Note a line that the daemon has logged: only a faulty disk excuses an error."""
        self._lines += level != "debug"
        at_s = trio.current_time()
        if event == "store_stalled" and self._disk_excuses(at_s):
            # What came in a stall that has just ended waits for the commit that is refused now.
            waited = at_s - self._stall_ended_s <= LOST_S
            self._stalled_s = self._stall_began_s if waited else at_s
            self._stall_began_s = at_s
        elif event == "store_recovered":
            self._stalled_s, self._stall_ended_s = math.inf, at_s
        if level in ("error", "critical") and not self._disk_excuses(at_s):
            self.found.add("error_logged", at_s, event)

    def daemon_failed(self, error: str) -> None:
        """Note that the daemon ended by an exception; only a faulty disk excuses one."""
        at_s = trio.current_time()
        self._log.add("failed", error)
        if not self._disk_excuses(at_s):
            self.found.add("daemon_failed", at_s, error)

    def left_open(self, connections: int, files: int, names: Iterable[str] = ()) -> None:
        """Check what is open after a clean stop, and the names of the files beside the mirror's."""
        left = [name for name in names if name.endswith(TEMPORARY)]
        if connections or files or left:
            what = f"{connections} connections, {files} files, {' '.join(left)}"
            self.found.add("left_open", trio.current_time(), what)

    def log_grew(self, wal_bytes: int) -> None:
        """Check the longest log of SQLite in a life; a faulty disk excuses any."""
        if wal_bytes > WAL_BYTES and not self._plan.disk:
            self.found.add("wal_long", trio.current_time(), f"{wal_bytes} bytes")

    def _check_lines(self) -> None:
        """Check how much a life has logged; a faulty disk excuses much."""
        hours = (trio.current_time() - self._born_s) / 3_600.0
        most = LINES + LINES_A_REQUEST * (self.requests - self._requests_before)
        if self._lines > most + LINES_AN_HOUR * hours and not self._plan.disk:
            what = f"{self._lines} lines in {hours:.2f} h"
            self.found.add("log_floods", trio.current_time(), what)

    def _disk_excuses(self, at_s: float) -> bool:
        return any(each.from_s <= at_s <= each.until_s + DISK_TAIL_S for each in self._plan.disk)


def _nothing() -> None:
    pass


def _forbids(robots: RobotsEdition, target: str) -> bool:
    return robots.forbidden != "" and target.startswith(robots.forbidden)
