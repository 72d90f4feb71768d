"""The outcomes of hostile cases, as the control socket of the daemon tells them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from crawld.bench.crawld_process import DaemonProcess
from crawld.bench.hostile_world import HEALTHY_HOST, HostileWorld, Limits
from crawld.simweb.hostile.case import HostileCase

OUT_OF_MEMORY = "failed:memory"
"""A visit that waited too long for its share of the memory; with a small budget any may."""

_PAGE = 10_000
_ROBOTS_EVERY_S = 3.0


@dataclass
class CaseOutcome:
    """The visits to the page of one case.

    Attributes:
        outcomes: as in `HostileCase.outcomes`, in order of the visits.
        seconds: from the first request to the first outcome.
    """

    case: HostileCase
    outcomes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def acceptable(self, deadline_s: float) -> bool:
        """Return whether there are outcomes, all are right, and the first came in time."""
        known = self.case.outcomes | {OUT_OF_MEMORY}
        return (
            bool(self.outcomes) and known.issuperset(self.outcomes) and self.seconds <= deadline_s
        )

    def __str__(self) -> str:
        told = ", ".join(dict.fromkeys(self.outcomes)) or "no outcome"
        return f"{self.case.family} {self.case.name}: {told} after {self.seconds:.1f} s"


class Outcomes:
    """What became of each case so far.

    Attributes:
        found: by the name of the case.
        stored: URLs of hostile pages with a stored copy.
        healthy: URLs of the healthy host that were stored.
    """

    def __init__(self, world: HostileWorld, limits: Limits) -> None:
        self._world = world
        self._limits = limits
        self._after = 0
        self._robots_s = 0.0
        self._first_at: dict[str, float] = {}
        self.found: dict[str, CaseOutcome] = {}
        self.stored: list[str] = []
        self.healthy: list[str] = []

    def update(self, daemon: DaemonProcess, pending: Iterable[HostileCase]) -> list[HostileCase]:
        """Read new visits; return the pending cases that have no outcome yet."""
        cases = {self._world.url(case): case for case in pending}
        for case in cases.values():
            self.found.setdefault(case.name, CaseOutcome(case))
        by_url = {self._world.url(each.case): each for each in self.found.values()}
        for visit in self._new_visits(daemon):
            url, outcome = str(visit["url"]), str(visit["outcome"])
            if outcome == "changed":
                self._note_stored(url, by_url)
            if url in by_url:
                self._note(by_url[url], visit)
        if time.monotonic() - self._robots_s > _ROBOTS_EVERY_S:
            self._read_robots(daemon, list(cases.values()))
            self._robots_s = time.monotonic()
        return [case for case in cases.values() if not self.found[case.name].outcomes]

    def failed(self) -> list[CaseOutcome]:
        """Return the cases without an acceptable outcome within their deadline."""
        return [
            each
            for each in self.found.values()
            if not each.acceptable(self._limits.deadline_s(each.case))
        ]

    def count(self, outcome: str) -> int:
        """Return the number of cases with an outcome."""
        return sum(outcome in each.outcomes for each in self.found.values())

    def as_dict(self) -> dict[str, object]:
        """Return `cases` and `failed` of the result."""
        return {
            "cases": {
                name: {
                    "family": each.case.family,
                    "outcomes": list(dict.fromkeys(each.outcomes)),
                    "seconds": round(each.seconds, 3),
                }
                for name, each in self.found.items()
            },
            "failed": [each.case.name for each in self.failed()],
        }

    def _new_visits(self, daemon: DaemonProcess) -> list[dict[str, object]]:
        found = daemon.get(f"/log?after={self._after}&limit={_PAGE}")
        visits: list[dict[str, object]] = found if isinstance(found, list) else []
        if visits:
            self._after = int(str(visits[-1]["visit_id"]))
        return visits

    def _note_stored(self, url: str, by_url: dict[str, CaseOutcome]) -> None:
        if urlsplit(url).hostname == HEALTHY_HOST:
            self.healthy.append(url)
        elif url in by_url:
            self.stored.append(url)

    def _note(self, found: CaseOutcome, visit: dict[str, object]) -> None:
        failure = visit["failure"]
        outcome = f"{visit['outcome']}:{failure}" if failure else str(visit["outcome"])
        if not found.outcomes:
            ended_at = float(str(visit["visited_at"]))
            found.seconds = max(ended_at - self._began_at(found.case), 0.0)
        found.outcomes.append(outcome)

    def _read_robots(self, daemon: DaemonProcess, cases: list[HostileCase]) -> None:
        """Note the hosts whose robots.txt keeps the crawler away."""
        for case in cases:
            found = self.found[case.name]
            if found.outcomes or "robots" not in case.outcomes:
                continue
            host = daemon.get(f"/hosts/{case.host}")
            if isinstance(host, dict) and any(each["verdict"] for each in host["robots"]):
                found.outcomes.append("robots")

    def _began_at(self, case: HostileCase) -> float:
        """Return the time of the first request to the host of a case."""
        if case.host not in self._first_at:
            ledger = self._world.ledger()
            rows = (ledger.row(index) for index in range(len(ledger)))
            for row in rows:
                self._first_at.setdefault(row.host, row.at)
        return self._first_at.get(case.host, time.time())
