"""Reads streams of server-sent events and the page changes in Wikimedia's streams.

`EventReader` turns bytes into events by the rules of the HTML standard. It holds at most one event,
of limited size; a longer event is dropped.

`read_change` reads one event. It supports two schemas: `mediawiki/recentchange`, and
`mediawiki/page/change`, which has one event per page instead of one per step. It ignores events
without a visible change of a page: categorizations, log entries that do not change the text, and
canaries, the events with which Wikimedia monitors its own stream.

After a break the stream is resumed with the id of its last event. A server that no longer has that
event starts later; `GapDetector` detects this from the times of the events.

Few events of a wiki farm concern the mirrored wikis. `host_filter` rejects the others by their
bytes: parsing the JSON of all events would cost four times as much as the stream itself.

Source: HTML Living Standard, section 9.2 (server-sent events); Wikimedia EventStreams
(wikitech.wikimedia.org/wiki/Event_Platform/EventStreams_HTTP_Service).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.sources.json_text import read_json
from crawld.sources.listed_page import read_date
from crawld.sources.mediawiki_rows import text_of

MAX_EVENT_BYTES = 256 * 1024
"""Limit of the data of one event; those of Wikimedia take one or two kilobytes."""

MAX_ID_BYTES = 8 * 1024
"""Limit of an id, which is stored and sent in a header; Wikimedia's ids name several topics."""

MAX_RETRY_S = 3_600.0

CANARY_DOMAIN = "canary"

GAP_S = 60.0
"""A stream that resumes at most this long after its last event has no gap, seconds."""

RHYTHM = 8
"""Number of pauses between events needed to know the rhythm of a stream."""

PAUSES = 5.0
"""A stream that resumes after more than this many times its longest pause has a gap. In a
memoryless stream this is a false alarm once in a hundred thousand breaks.
"""

_MARK = b"\xef\xbb\xbf"
"""The UTF-8 byte order mark, with which a stream may begin."""

_ID = re.compile(rb"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?").fullmatch
"""An id that can be sent back in a header; other ids could never resume the stream."""

_TEXT_TOUCHING = frozenset({"delete", "move", "import", "merge", "upload"})
"""Log types whose entries visibly change the page."""


class StreamEvent(NamedTuple):
    """One event of a stream.

    Attributes:
        data: its data lines, joined.
        kind: its event type; `message` by default.
        last_id: the last id of the stream after this event, empty if there was none.
    """

    data: bytes
    kind: str
    last_id: str


class EventReader:
    """Parses a stream of server-sent events.

    Attributes:
        last_id: id from which to resume the stream after a break.
        retry_s: wait after a break requested by the server; None if not given.
        dropped: number of events that were too long.
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry_s: float | None = None
        self.dropped = 0
        self._held = b""
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._begun = False
        self._after_cr = False
        self._data: list[bytes] = []
        self._size = 0
        self._kind = ""
        self._id = last_id
        self._skipping = False

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that end in the next piece of the stream."""
        if not self._begun:
            piece = self._held + piece
            if _MARK.startswith(piece):
                self._held = piece if piece != _MARK else b""
                self._begun = piece == _MARK
                return
            self._begun, self._held = True, b""
            piece = piece.removeprefix(_MARK)
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = piece.endswith(b"\r")
        lines = piece.splitlines(keepends=True)
        rest = b"" if not lines or lines[-1].endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._parts:
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts.clear()
            self._parts_bytes = 0
        if rest:
            self._hold(rest)
        for line in lines:
            event = self._line(line.rstrip(b"\r\n"))
            if event is not None:
                yield event

    def _hold(self, rest: bytes) -> None:
        """Keep a part of an unfinished line; of an overlong line only the start."""
        # Joined at the end of the line: a line may arrive in ten thousand pieces.
        self._parts.append(rest)
        self._parts_bytes += len(rest)
        if self._parts_bytes > MAX_EVENT_BYTES:
            self._skipping = True
            start = b"".join(self._parts[:64])[:64]
            self._parts = [start]
            self._parts_bytes = len(start)

    def _line(self, line: bytes) -> StreamEvent | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._size += len(value) + 1
            if self._size > MAX_EVENT_BYTES:
                self._skipping = True
                self._data.clear()
            else:
                self._data.append(value)
        elif field == b"event":
            self._kind = value[:100].decode("utf-8", "replace")
        elif field == b"id" and len(value) <= MAX_ID_BYTES and (not value or _ID(value)):
            self._id = value.decode("latin-1")  # sent back byte by byte
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_s = min(int(value) / 1000.0, MAX_RETRY_S)
        return None

    def _dispatch(self) -> StreamEvent | None:
        # An id takes effect at the end of its event: an incomplete event is read again after a
        # break.
        self.last_id = self._id
        data, kind, skipped = self._data, self._kind, self._skipping
        self._data, self._kind, self._size, self._skipping = [], "", 0, False
        if skipped:
            self.dropped += 1
            return None
        return StreamEvent(b"\n".join(data), kind or "message", self.last_id) if data else None


class PageChange(NamedTuple):
    """A change of a page, as a stream reports it.

    Attributes:
        wiki: the wiki's name in its farm, such as `enwiki`; empty if not given.
        title: of the page, in the wiki's spelling.
        url: canonical URL of the page, None if not given.
        at: when it changed, Unix seconds; None if not given.
        revision: number of the new revision, None without one.
        kind: `edit`, `new`, or the type of a log entry.
        origin: scheme and host of the wiki, empty if not given.
    """

    wiki: str
    title: str
    url: str | None
    at: float | None
    revision: int | None
    kind: str
    origin: str


def parse_event(data: bytes) -> tuple[Mapping[str, object], float | None] | None:
    """Return an event's JSON object and its time in Unix seconds; None if it is not an object."""
    try:
        fields = read_json(data)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None
    return fields, _event_time(fields)


def read_change(fields: Mapping[str, object]) -> PageChange | None:
    """Return the change that an event reports, None if it has no visible change of a page."""
    meta = _table(fields, "meta")
    if meta.get("domain") == CANARY_DOMAIN:
        return None
    if "page_change_kind" in fields:
        return _page_change(fields, meta)
    return _recent_change(fields, meta)


def _recent_change(fields: Mapping[str, object], meta: Mapping[str, object]) -> PageChange | None:
    kind, title = text_of(fields, "type"), text_of(fields, "title")
    if kind == "log":
        kind = text_of(fields, "log_type")
        if kind not in _TEXT_TOUCHING:
            return None
    elif kind not in ("edit", "new"):
        return None
    if not title:
        return None
    revision = _table(fields, "revision").get("new")
    return PageChange(
        text_of(fields, "wiki"),
        title,
        _url(text_of(fields, "title_url") or text_of(meta, "uri")),
        _event_time(fields),
        revision if isinstance(revision, int) else None,
        kind,
        text_of(fields, "server_url"),
    )


def _page_change(fields: Mapping[str, object], meta: Mapping[str, object]) -> PageChange | None:
    page, revision = _table(fields, "page"), _table(fields, "revision").get("rev_id")
    title, kind = text_of(page, "page_title"), text_of(fields, "page_change_kind")
    if not title or kind == "visibility_change":
        return None
    return PageChange(
        text_of(fields, "wiki_id"),
        title.replace("_", " "),
        _url(text_of(meta, "uri")),
        _event_time(fields),
        revision if isinstance(revision, int) else None,
        kind,
        "",
    )


def renamed_titles(fields: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the old and new title if an event reports a move, else None."""
    if text_of(fields, "log_type") == "move":
        target = text_of(_table(fields, "log_params"), "target")
        return (text_of(fields, "title"), target) if target else None
    if text_of(fields, "page_change_kind") == "move":
        before = _table(_table(fields, "prior_state"), "page")
        old = text_of(before, "page_title").replace("_", " ")
        new = text_of(_table(fields, "page"), "page_title").replace("_", " ")
        return (old, new) if old and new else None
    return None


def host_filter(hosts: Iterable[str]) -> Callable[[bytes], object]:
    """Return a fast test of whether the data of an event may name a page of some hosts.

    >>> may_name = host_filter(["a.test", "b.test"])
    >>> bool(may_name(b'{"title_url": "https://b.test/x"}')), bool(may_name(b'{"wiki": "c"}'))
    (True, False)
    """
    names = sorted(hosts)
    # An internationalized name may be written in Unicode.
    if any("xn--" in name for name in names):
        return lambda data: True
    return re.compile(b"|".join(re.escape(name.encode()) for name in names), re.IGNORECASE).search


class GapDetector:
    """Detects whether a stream that resumed after a break skipped events.

    A stream that cannot resume at the requested event starts later than it ended, by much more than
    its usual pauses. A quiet stream has long pauses, so its rhythm is learned first, if necessary
    over several connections.

    Attributes:
        since: time up to which everything was received, until it is known whether there is a gap.
    """

    def __init__(self) -> None:
        self._pauses: deque[float] = deque(maxlen=RHYTHM)
        self._last_at: float | None = None
        self.since: float | None = None
        self._resumed_at: float | None = None

    def start(self, received_until: float | None) -> None:
        """Start another connection.

        `received_until`: Unix seconds up to which everything was received; None if nothing was.
        """
        self.since, self._last_at, self._resumed_at = received_until, None, None

    def observe(self, at: float) -> tuple[float, float] | None:
        """Record the time of an event; return (start, end) of the gap once it is known to exist."""
        if self._last_at is not None:
            self._pauses.append(abs(at - self._last_at))
        self._last_at = at
        if self.since is None:
            return None
        if self._resumed_at is None:
            self._resumed_at = at
        away_s = self._resumed_at - self.since
        if away_s > GAP_S and len(self._pauses) < RHYTHM:
            return None
        gap = (self.since, self._resumed_at)
        self.since = None
        return gap if away_s > max(GAP_S, PAUSES * max(self._pauses, default=0.0)) else None


def _event_time(fields: Mapping[str, object]) -> float | None:
    stamp = fields.get("timestamp")
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and 0 < stamp < 1e11:
        return float(stamp)
    for written in (text_of(fields, "dt"), text_of(_table(fields, "meta"), "dt")):
        span = read_date(written) if written else None
        if span is not None:
            return span.first
    return None


def _url(written: str) -> str | None:
    try:
        return canonicalize(written) if written else None
    except InvalidUrlError:
        return None


def _table(row: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = row.get(key)
    return value if isinstance(value, dict) else {}
