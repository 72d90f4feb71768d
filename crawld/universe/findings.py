"""The violations that an auditor has found."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from crawld.universe.event_log import EventLog


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: which, when (seconds since the start), and what happened."""

    invariant: str
    at: float
    what: str


class Findings:
    """The violations so far, each an event of the log.

    Attributes:
        violations: in the order in which they were found.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.violations: list[Violation] = []

    def add(self, invariant: str, at_s: float, what: str) -> None:
        """Note a broken promise."""
        self._log.add("violation", invariant, what)
        self.violations.append(Violation(invariant, at_s, what))

    def as_json(self) -> list[dict[str, object]]:
        """Return the violations."""
        return [asdict(violation) for violation in self.violations]
