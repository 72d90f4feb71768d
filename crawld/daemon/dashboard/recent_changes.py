"""What changed today: the newest events of pages, read again only when there is a newer one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw

from crawld.core.event import EventKind
from crawld.core.units import DAY_S
from crawld.daemon.daemon import Daemon
from crawld.store.mirror import events
from crawld.store.mirror.events import ChangeEvent
from crawld.web.address import mirror_path, readable_url
from crawld.web.feeds import CHANGES_PATH, difference_path, size_of_change
from crawld.web.pages import brief

LOOKED_AT: Final = 100
"""Events that are looked at: while a site is first crawled, most are new pages."""

SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class ShownChange:
    """An event as the overview shows it.

    Attributes:
        title: of the page, cut.
        target: where the change is shown, or the page.
        details: site, and size of the change.
    """

    at: float
    kind: EventKind
    title: str
    target: str
    details: str


@dataclass(frozen=True, slots=True)
class ChangesToday:
    """The newest changes of pages of the last day, and how many new pages are beside them."""

    newest_id: int = -1
    shown: Sequence[ShownChange] = ()
    new_pages: int = 0
    path: str = CHANGES_PATH


async def read_changes(daemon: Daemon, known: ChangesToday) -> ChangesToday:
    """Return the changes: those that are known if there is no newer event."""
    since = daemon.clock.now() - DAY_S
    found = await daemon.database.read_briefly(_read, known, since)
    # What is older than a day goes without a new event, too.
    if any(each.at < since for each in found.shown):
        return ChangesToday(found.newest_id, [each for each in found.shown if each.at >= since])
    return found


def _read(connection: apsw.Connection, known: ChangesToday, since: float) -> ChangesToday:
    newest = events.newest_id(connection)
    if newest == known.newest_id:
        return known
    listed = [
        each for each in events.list_newest(connection, limit=LOOKED_AT).events if each.at >= since
    ]
    changed = [each for each in listed if each.kind is not EventKind.NEW]
    shown = [_shown(each) for each in changed[:SHOWN]]
    return ChangesToday(newest, shown, len(listed) - len(changed))


def _shown(event: ChangeEvent) -> ShownChange:
    size = size_of_change(event)
    return ShownChange(
        at=event.at,
        kind=event.kind,
        title=brief(event.title or readable_url(event.url)),
        target=difference_path(event) or mirror_path(event.url),
        details=f"{event.site}, {size} of the text" if size else event.site,
    )
