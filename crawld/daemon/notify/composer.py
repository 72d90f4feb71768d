"""Reads events and what their changes say, and makes messages of them.

Copies are read in short reads and compared by the analyser, like those of visits: off the event
loop, within the memory for analyses, and one at a time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import apsw
import structlog

from crawld.config.notify import NotifyConfig
from crawld.core.content.analysis import read_blocks
from crawld.core.content.media import media_type
from crawld.core.content.page_diff import diff_pages
from crawld.core.event import EventKind
from crawld.core.notify.change_text import ChangeText, change_text
from crawld.daemon.analyser import weight_of
from crawld.daemon.crawl.context import BackgroundWork
from crawld.daemon.notify.message import NotifyMessage, message_key, reported
from crawld.daemon.pacing import Pace
from crawld.errors import is_store_failure
from crawld.store.changes import volatile
from crawld.store.frontier import removal
from crawld.store.mirror import events
from crawld.store.mirror.events import ChangeEvent
from crawld.store.versions import version
from crawld.store.versions.version import StoredCopy, VersionRow

log = structlog.get_logger(__name__)

MAX_DESCRIBED: Final = 20
"""Changes of a message whose text is shown; the others are told without it."""

MAX_COMPARED_BYTES: Final = 4 * 1024 * 1024
"""Size of two copies together that are compared for a message."""

REST_FACTOR: Final = 1.0
"""Rest after each comparison, as a multiple of its time: at most half of a core."""


class _Copies(NamedTuple):
    """Two copies of a page to compare, and the learned rules about its noise."""

    old: StoredCopy
    new: StoredCopy
    rules: tuple[bytes, ...]


class Composer(BackgroundWork):
    """Makes messages."""

    async def compose(self, rule: NotifyConfig, event_ids: list[int]) -> NotifyMessage | None:
        """Return the message with these events; None if none of them is kept any more."""
        mirror_id, found = await self._database.read(_read_events, event_ids)
        if not found:
            return None
        public_url = self._config().web.public_url
        told = []
        described = 0
        for event in found:
            change = None
            if described < MAX_DESCRIBED and _has_copies(event):
                described += 1
                change = await self.change_of(event)
            told.append(reported(event, mirror_id, public_url, change))
        key = message_key(mirror_id, rule.name, event_ids)
        return NotifyMessage(key, rule.name, mirror_id, tuple(told), rule.timezone)

    async def test_message(self, rule: NotifyConfig) -> NotifyMessage:
        """Return a message that reports nothing."""
        mirror_id = await self._database.read(events.mirror_id)
        key = f"urn:crawld:{mirror_id}:{rule.name}:test-{self._clock.now():.0f}"
        text = f"This is a test of the rule {rule.name}: messages of crawld arrive here."
        return NotifyMessage(key, rule.name, mirror_id, (), rule.timezone, text)

    async def change_of(self, event: ChangeEvent) -> ChangeText | None:
        """Return what a change says; None: not a change, withheld, too large, or not kept."""
        if not _has_copies(event):
            return None
        pace = Pace(REST_FACTOR)
        try:
            copies = await self._database.read(_read_copies, event)
            if copies is None:
                return None
            found = await self._analyser.read(
                _compare,
                copies,
                url=event.url,
                bodies=(copies.old.body, copies.new.body),
                weight=weight_of(media_type(copies.new.content_type)),
            )
        except Exception as error:  # one page must not stop the messages about all others
            if is_store_failure(error):
                raise
            log.exception("change_unreadable", url=event.url)
            return None
        await pace.rest()
        return found


def _has_copies(event: ChangeEvent) -> bool:
    changed = event.kind in (EventKind.CHANGED, EventKind.BACK)
    return changed and event.version_id is not None and event.before_id is not None


def _read_events(
    connection: apsw.Connection, event_ids: list[int]
) -> tuple[str, list[ChangeEvent]]:
    found = (events.get(connection, event_id) for event_id in event_ids)
    return events.mirror_id(connection), [each for each in found if each is not None]


def _read_copies(connection: apsw.Connection, event: ChangeEvent) -> _Copies | None:
    assert event.before_id is not None
    assert event.version_id is not None
    old, new = (version.get(connection, each) for each in (event.before_id, event.version_id))
    if old is None or new is None or old.size_bytes + new.size_bytes > MAX_COMPARED_BYTES:
        return None
    if removal.is_withheld(connection, event.page_id):
        return None
    return _Copies(
        _copy(connection, old),
        _copy(connection, new),
        tuple(volatile.rules_for(connection, event.page_id)),
    )


def _copy(connection: apsw.Connection, row: VersionRow) -> StoredCopy:
    return version.read_copy(connection, row.version_id) or StoredCopy(b"", None)


def _compare(copies: _Copies) -> ChangeText:
    before, after = read_blocks(*copies.old), read_blocks(*copies.new)
    return change_text(diff_pages(before, after, copies.rules).hunks)
