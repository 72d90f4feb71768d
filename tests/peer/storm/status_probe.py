"""What the daemon says about the freshness of its copies, and what is true at that time.

Both count what a reader can open and takes for a page as it is now: not a copy that is marked as
deleted or moved, and no redirect, since it shows another copy, which is counted already.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.peer.storm.watch import Watch
from tests.peer.storm.world import World


@dataclass(frozen=True, slots=True)
class StatusProbe:
    """One answer of the daemon about one site.

    Attributes:
        truth: share of the copies that it shows which equal what the wiki shows.
        low, high: interval of the measured freshness.
        modelled: by the change model; None: not said.
    """

    at: float
    site: str
    truth: float
    freshness: float | None
    low: float
    high: float
    modelled: float | None


def probe_status(world: World, watch: Watch, at: float) -> list[StatusProbe]:
    """Ask the daemon, and compare with what was read just now; empty if it does not answer."""
    status = world.ask("/status")
    if status is None:
        return []
    found = []
    rows = [row for row in status["freshness"] if row["host"] is None]
    for row in rows:
        truth = _truth(world, watch, row["site"])
        if truth is not None:
            answer = (row["freshness"], row["low"], row["high"], row["modelled"])
            found.append(StatusProbe(at, row["site"], truth, *answer))
    return found


def _truth(world: World, watch: Watch, site: str) -> float | None:
    listed = world.ask(f"/pages?site={site}&state=visited&limit=1000")
    return None if listed is None else true_freshness(watch, {each["url"] for each in listed})


def true_freshness(watch: Watch, urls: set[str]) -> float | None:
    """Return the share of the copies at some URLs that are right; None if no copy is shown."""
    right = [
        each.is_right for each in watch.by_title.values() if each.url in urls and each.is_shown
    ]
    return sum(right) / len(right) if right else None
