"""Feeds of changes: /changes.atom and /changes.json, of everything or of a filter.

A program may ask for a feed many times a second. What was sent last is kept for each filter; while
there is no new event, an answer costs one look at the newest id. A new feed is made apart, where
all who wait for it share the result.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from html import escape
from typing import Final, NamedTuple

import apsw

from crawld.core.content.tree_memory import comparison_bytes
from crawld.core.event import EventKind, event_urn
from crawld.core.words import EVENT_WORDS
from crawld.marks import NO_MARKS, Marks
from crawld.store.mirror import events
from crawld.store.mirror.events import ChangeEvent
from crawld.web import security
from crawld.web.address import mirror_path, readable_url
from crawld.web.change_excerpt import Excerpts
from crawld.web.change_filter import ChangeFilter, ChangeFilterError, read_filter
from crawld.web.feed_format import (
    ATOM,
    JSON_FEED,
    ChangeFeed,
    FeedEntry,
    atom,
    json_feed,
    time_stamp,
)
from crawld.web.large_pages import LargePages
from crawld.web.look import shown_look
from crawld.web.pages import brief, error_page
from crawld.web.reply import (
    Postponed,
    Rendered,
    Reply,
    Request,
    etag_matches,
    header,
    headers,
    http_date,
)
from crawld.workers import check_wanted

ATOM_PATH: Final = "/changes.atom"
JSON_PATH: Final = "/changes.json"
CHANGES_PATH: Final = "/changes"

ENTRIES: Final = 30
"""Events on one page of a feed."""

FRESH_S: Final = 0.5
"""How long a feed is sent without a look for new events: a change is in it within a second."""

MAX_KEPT_S: Final = 5.0
"""After this time copies and pages that were removed are looked for, too."""

FEEDS: Final = 256
"""Feeds whose last state is kept."""

MAX_DIFF_BYTES: Final = 1_000_000
"""Two copies that are larger together are not compared for a feed."""

_WRITERS: Final = {ATOM_PATH: (ATOM, atom), JSON_PATH: (JSON_FEED, json_feed)}


class _Sent(NamedTuple):
    """What was sent last for a filter.

    Attributes:
        newest_id: newest event of the mirror then.
        listed_at: when its events were read, Unix seconds.
        modified_at: when it got this content, whole Unix seconds; later contents have later ones.
    """

    newest_id: int
    listed_at: float
    etag: str
    modified_at: int


class Feeds:
    """The feeds of one mirror.

    Args:
        clock: returns Unix seconds.
        large: keeps and shares what was rendered.
        marks: notes which page is compared.
        public_url: returns the address that links begin with; None: that of the request.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        large: LargePages,
        marks: Marks = NO_MARKS,
        public_url: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._public_url = public_url
        self._clock = clock
        self._large = large
        self._excerpts = Excerpts(marks)
        self._sent: OrderedDict[str, _Sent] = OrderedDict()
        self._lease_bytes = large.most(comparison_bytes(MAX_DIFF_BYTES))
        share = self._lease_bytes / comparison_bytes(MAX_DIFF_BYTES)
        self._most_bytes = int(share * MAX_DIFF_BYTES)

    def reply(
        self,
        connection: apsw.Connection,
        request: Request,
        path: str,
        parameters: Mapping[str, str],
        *,
        may_postpone: bool,
    ) -> Reply | Postponed:
        """Return the feed that a request names, or that it must be made apart."""
        try:
            asked = read_filter(parameters)
        except ChangeFilterError as error:
            return error_page(400, "No such feed", str(error))
        base = self._public_url() or request.headers["base"]
        key = f"{path} {base} {asked.query(asked.before)}"
        # Another reader's may have been made since this one was postponed.
        if (kept := self._kept(connection, request, key)) is not None:
            return kept
        if may_postpone:
            return self._postponed(request, key)
        return self._made(connection, request, key, (path, base, asked))

    def _kept(self, connection: apsw.Connection, request: Request, key: str) -> Reply | None:
        sent = self._sent.get(key)
        if sent is None:
            return None
        age_s = self._clock() - sent.listed_at
        if not 0.0 <= age_s < MAX_KEPT_S:
            return None
        if age_s >= FRESH_S and events.newest_id(connection) != sent.newest_id:
            return None
        if _is_unchanged(request, sent):
            return Reply(304, b"", _headers(sent))
        rendered = self._large.find(sent.etag)
        return None if rendered is None else self._reply(request, key, rendered)

    def _postponed(self, request: Request, key: str) -> Postponed:
        def finish(rendered: Rendered) -> Reply:
            return self._reply(request, key, rendered)

        return Postponed(key, finish, self._lease_bytes)

    def _reply(self, request: Request, key: str, rendered: Rendered) -> Reply:
        sent = self._sent.get(key) or _Sent(0, 0.0, rendered.etag, int(self._clock()))
        if sent.etag == rendered.etag and _is_unchanged(request, sent):
            return Reply(304, b"", _headers(sent), rendered)
        lines = [*_headers(sent), header("content-type", rendered.content_type)]
        return Reply(200, rendered.body, lines, rendered)

    def _made(
        self,
        connection: apsw.Connection,
        request: Request,
        key: str,
        place: tuple[str, str, ChangeFilter],
    ) -> Reply:
        path, base, asked = place
        now = self._clock()
        newest_id = events.newest_id(connection)
        found = events.list_newest(connection, asked.wanted, asked.before, ENTRIES)
        excerpts = []
        for each in found.events:
            check_wanted()
            excerpts.append(self._excerpts.of(connection, each, now, self._most_bytes))
        mirror_id = events.mirror_id(connection)
        entries = [
            _entry(each, text, base, mirror_id)
            for each, text in zip(found.events, excerpts, strict=True)
        ]
        older = None if found.ended else found.last_id
        kind, write = _WRITERS[path]
        body = write(_feed((path, base, asked), mirror_id, entries, older))
        etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
        self._note(key, newest_id, now, etag)
        return self._reply(request, key, Rendered(etag, f"{kind}; charset=utf-8", body))

    def _note(self, key: str, newest_id: int, now: float, etag: str) -> None:
        before = self._sent.pop(key, None)
        modified_at = int(now)
        if before is not None:
            same = before.etag == etag
            modified_at = before.modified_at if same else max(modified_at, before.modified_at + 1)
        self._sent[key] = _Sent(newest_id, now, etag, modified_at)
        while len(self._sent) > FEEDS:
            self._sent.popitem(last=False)


def _is_unchanged(request: Request, sent: _Sent) -> bool:
    condition = request.headers.get("if-none-match")
    if condition is not None:
        return etag_matches(sent.etag, condition)
    since = request.headers.get("if-modified-since")
    try:
        return since is not None and parsedate_to_datetime(since).timestamp() == sent.modified_at
    except (ValueError, OverflowError):
        return False


def _headers(sent: _Sent) -> list[tuple[bytes, bytes]]:
    lines = headers(
        ("etag", sent.etag),
        ("last-modified", http_date(sent.modified_at)),
        ("cache-control", "no-cache"),
    )
    return [*lines, *security.OWN_DATA]


def _feed(
    place: tuple[str, str, ChangeFilter],
    mirror_id: str,
    entries: list[FeedEntry],
    older: int | None,
) -> ChangeFeed:
    path, base, asked = place
    link = base + path
    name = "feed"
    if asked.parameters:
        digest = hashlib.blake2b(asked.query().encode(), digest_size=8).hexdigest()
        name = f"feed-{digest}"
    wanted = asked.wanted
    topics = [wanted.site, wanted.url and readable_url(wanted.url), wanted.query]
    title = " · ".join([f"Changes of {shown_look().title or 'the mirror'}", *filter(None, topics)])
    return ChangeFeed(
        feed_id=f"urn:crawld:{mirror_id}:{name}",
        title=brief(title),
        page_link=base + CHANGES_PATH + asked.query(),
        link=link + asked.query(asked.before),
        first_link=link + asked.query(),
        next_link=None if older is None else link + asked.query(older),
        entries=entries,
    )


def difference_path(event: ChangeEvent) -> str | None:
    """Return the path of the whole difference of a change, None if its copies are not kept."""
    if event.before_id is None or event.version_id is None:
        return None
    return f"/diff/{event.before_id}..{event.version_id}{mirror_path(event.url)}"


def size_of_change(event: ChangeEvent) -> str:
    """Return the size of a change for people; empty if it was not measured.

    A small one is not none.
    """
    if event.difference is None:
        return ""
    share = 100 * event.difference
    return f"{share:.0f} %" if share >= 9.95 else f"{share:.1f} %" if share >= 0.05 else "< 0.1 %"


def _entry(event: ChangeEvent, text: str | None, base: str, mirror_id: str) -> FeedEntry:
    path = difference_path(event)
    link = None if path is None else base + path
    title = brief(event.title or readable_url(event.url))
    details = {
        "event_id": event.event_id,
        "kind": event.kind.value,
        "site": event.site,
        "difference": event.difference,
        "difference_url": link,
        "target_url": event.target_url,
    }
    return FeedEntry(
        entry_id=event_urn(mirror_id, event.event_id),
        kind=event.kind,
        site=event.site,
        title=f"{EVENT_WORDS[event.kind]}: {title}",
        at=event.at,
        page_link=base + mirror_path(event.url),
        original=event.url,
        difference_link=link,
        content=_content(event, text, base, link),
        details=details,
    )


def _content(event: ChangeEvent, text: str | None, base: str, link: str | None) -> str:
    original = f'<a href="{escape(event.url)}">{escape(readable_url(event.url))}</a>'
    seen = time_stamp(event.at)
    size = size_of_change(event)
    share = f"{size} of the text. " if size else ""
    lines = {
        EventKind.NEW: f"First copy of {original}, {seen}.",
        EventKind.CHANGED: f"{original} changed: {share}Seen {seen}.",
        EventKind.MOVED: f"{original} moved{_to(event, base)}, {seen}.",
        EventKind.GONE: f"{original} is gone, {seen}.",
        EventKind.BACK: f"{original} is back, {seen}. {share}",
    }
    parts = [f"<p>{lines[event.kind].strip()}</p>"]
    if text is not None:
        parts.append(text or "<p>No visible text has changed.</p>")
    if link is not None:
        parts.append(f'<p><a href="{escape(link)}">The whole difference</a></p>')
    return "".join(parts)


def _to(event: ChangeEvent, base: str) -> str:
    if event.target_url is None:
        return ""
    there = escape(base + mirror_path(event.target_url))
    return f' to <a href="{there}">{escape(readable_url(event.target_url))}</a>'
