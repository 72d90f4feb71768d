"""When what happened in a universe: the requests to each host, and what disturbed the daemon."""

from __future__ import annotations

from array import array
from collections import defaultdict
from pathlib import Path
from typing import Final

from crawld.core.units import HOUR_S
from crawld.universe.event_log import Lines
from crawld.universe.plan import EndKind, UniversePlan

MOST_HOSTS: Final = 40
"""Hosts that are drawn; a plan may have thousands."""

_ENDS: Final = frozenset(EndKind)

TICKS: Final = 1_000
"""Places of a row: more requests than an eye can tell apart are one tick."""


class Timeline:
    """A file of events that keeps some of them, and hands all to another file."""

    def __init__(self, file: Lines | None = None) -> None:
        self._file = file
        self._requests_s: defaultdict[str, array[float]] = defaultdict(lambda: array("d"))
        self._ends_s: list[float] = []
        self._violations_s: list[float] = []

    def write(self, line: str) -> None:
        """Note an event: its time, its kind and its facts."""
        if self._file is not None:
            self._file.write(line)
        at_s, kind, fact, *_ = (*line.split(maxsplit=3), "", "")
        if kind == "request":
            self._requests_s[fact].append(float(at_s))
        elif kind == "violation":
            self._violations_s.append(float(at_s))
        elif kind in _ENDS:
            self._ends_s.append(float(at_s))

    def plot(self, plan: UniversePlan, path: Path) -> None:
        """Draw the events as SVG.

        Raises:
            OperatorError: matplotlib is not installed.
        """
        from crawld.lab.plot import EventRow, plot_events

        slot_s = plan.duration_s / TICKS
        rows = [
            EventRow(
                host.name,
                sorted({at_s // slot_s * slot_s / HOUR_S for at_s in self._requests_s[host.name]}),
                [(each.from_s / HOUR_S, each.until_s / HOUR_S) for each in host.faults],
            )
            for host in plan.hosts[:MOST_HOSTS]
        ]
        if plan.disk:
            periods = [(each.from_s / HOUR_S, each.until_s / HOUR_S) for each in plan.disk]
            rows.append(EventRow("disk", [], periods))
        marks_s = {
            "end of a life": self._ends_s,
            "step of the clock": [each.at_s for each in plan.steps],
            "broken promise": self._violations_s,
        }
        plot_events(
            rows,
            path,
            title=f"requests to the hosts of seed {plan.seed}, and their faults",
            x_label="simulated hours",
            until=plan.duration_s / HOUR_S,
            marks={name: [at_s / HOUR_S for at_s in each] for name, each in marks_s.items()},
        )
