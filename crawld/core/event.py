"""Events: real changes of pages, as readers of feeds and receivers of notifications see them.

A visit is an event if it shows a page in another condition than the last event of that page did.
Noise, failures and blocked visits are none.
"""

from __future__ import annotations

from enum import StrEnum

from crawld.core.page import Outcome


class EventKind(StrEnum):
    """What happened to a page."""

    NEW = "new"
    CHANGED = "changed"
    MOVED = "moved"
    GONE = "gone"
    BACK = "back"


ABSENT = frozenset({EventKind.MOVED, EventKind.GONE})
"""Kinds after which a page is not at its URL."""


def event_kind(
    outcome: Outcome, *, had_copy: bool, absent: EventKind | None, retired: bool
) -> EventKind | None:
    """Return what a visit shows that the last event of its page did not; None: nothing.

    Args:
        had_copy: whether a copy of the page was ever made.
        absent: what the last event said, if the page was away; None: it was there.
        retired: whether the page is retired after the visit. A soft 404 is a guess until then.

    >>> event_kind(Outcome.GONE, had_copy=True, absent=None, retired=False)
    <EventKind.GONE: 'gone'>
    """
    match outcome:
        case Outcome.CHANGED | Outcome.UNCHANGED | Outcome.NOT_MODIFIED if absent is not None:
            return EventKind.BACK
        case Outcome.CHANGED:
            return EventKind.CHANGED if had_copy else EventKind.NEW
        case Outcome.MOVED if had_copy and absent is not EventKind.MOVED:
            return EventKind.MOVED
        case Outcome.GONE | Outcome.SOFT_GONE if had_copy and absent is None:
            certain = retired or outcome is Outcome.GONE
            return EventKind.GONE if certain else None
    return None


def event_urn(mirror_id: str, event_id: int) -> str:
    """Return the name of an event that no other event of any mirror has.

    >>> event_urn("5f2a", 7)
    'urn:crawld:5f2a:7'
    """
    return f"urn:crawld:{mirror_id}:{event_id}"
