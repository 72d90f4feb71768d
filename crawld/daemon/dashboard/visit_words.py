"""Outcomes of visits in words, and the class that colours them in charts."""

from __future__ import annotations

from typing import Final

from crawld.core.page import Outcome

_MARKS: Final[dict[Outcome, tuple[str, str]]] = {
    Outcome.CHANGED: ("changed", "changed"),
    Outcome.UNCHANGED: ("same", "unchanged"),
    Outcome.NOT_MODIFIED: ("same", "not modified"),
    Outcome.MOVED: ("moved", "moved"),
    Outcome.GONE: ("moved", "not found"),
    Outcome.SOFT_GONE: ("moved", "not found (answered 200)"),
    Outcome.BLOCKED: ("failed", "blocked"),
    Outcome.FAILED: ("failed", "failed"),
}

KIND_NAMES: Final = {
    "changed": "changed",
    "same": "unchanged",
    "moved": "moved or not found",
    "failed": "failed or blocked",
    "other": "robots.txt, poll or API",
}
"""What the classes mean."""


def mark_of(outcome: Outcome) -> tuple[str, str]:
    """Return the class and the words of an outcome."""
    return _MARKS.get(outcome, ("other", str(outcome).replace("_", " ")))
