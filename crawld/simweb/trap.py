"""Crawler traps: endless sets of pages.

Each trap has its own path prefix and links only deeper into itself; the site's home page links to
its entry. Nothing is stored: a page follows from its URL and the number of the request.
"""

from __future__ import annotations

from enum import StrEnum

from crawld.simweb.graph import VOCABULARY
from crawld.simweb.message import SimRequest
from crawld.simweb.stateless_random import draw

_LAST_YEAR = 9999


class Trap(StrEnum):
    """Kinds of traps; the value is the first segment of their paths."""

    CALENDAR = "calendar"
    SESSION = "session"
    REPETITION = "again"
    DEPTH = "deep"
    FACETS = "facets"

    @property
    def entry_path(self) -> str:
        """The path that the home page links to."""
        return {
            Trap.CALENDAR: "/calendar/2026/1",
            Trap.SESSION: "/session/0",
            Trap.FACETS: "/facets/?a=0",
        }.get(self, f"/{self.value}/")


_BY_SEGMENT = {trap.value: trap for trap in Trap}


def trap_of(path: str) -> Trap | None:
    """Return the trap that a path belongs to; None if it belongs to none."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return _BY_SEGMENT.get(first)


def trap_page(trap: Trap, request: SimRequest) -> bytes | None:
    """Return the HTML of a page in a trap; None if the path has no page there."""
    links = {
        Trap.CALENDAR: _calendar,
        Trap.SESSION: _session,
        Trap.REPETITION: _repetition,
        Trap.DEPTH: _depth,
        Trap.FACETS: _facets,
    }[trap](request)
    if not links:
        return None
    # Of a filter its own name is shown, not those of the others.
    anchors = " ".join(f'<a href="{link}">{link.rpartition(";")[2]}</a>' for link in links)
    title = f"{trap.value} {request.path}"
    return f"<!DOCTYPE html><title>{title}</title><h1>{title}</h1><p>{anchors}</p>".encode()


def _calendar(request: SimRequest) -> list[str]:
    parts = request.path.split("/")[2:]
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        return []
    year, month = int(parts[0][:6]), int(parts[1][:4])
    if not (1 <= month <= 12 and 1 <= year <= _LAST_YEAR):
        return []
    months = year * 12 + month - 1
    return [f"/calendar/{m // 12}/{m % 12 + 1}" for m in (months - 1, months + 1)]


def _session(request: SimRequest) -> list[str]:
    return [f"/session/{k}?sid={draw(request.serial, k):016x}" for k in range(3)]


def _facets(request: SimRequest) -> list[str]:
    """Return the query with one more of twenty filters, each of which has two values."""
    chosen = request.target.partition("?")[2].split("&")
    names = {each[0] for each in chosen if each}
    free = [letter for letter in "abcdefghijklmnopqrst" if letter not in names][:2]
    return [
        "/facets/?" + "&amp;".join(sorted([*chosen, f"{letter}={value}"]))
        for letter in free
        for value in range(2)
    ]


def _repetition(request: SimRequest) -> list[str]:
    return ["again/", "./again/"] if request.path.endswith("/") else []


def _depth(request: SimRequest) -> list[str]:
    seed = sum(request.path.encode()) + len(request.path)
    return [f"{VOCABULARY[draw(seed, k) % 1024]}/" for k in range(3)]
