"""Reading streams of server-sent events, and what Wikimedia's say of pages.

`EventReader` takes bytes as they come and gives events, by the rules of the HTML standard. It holds
at most one event, which has a bound: of a longer one the end is awaited and nothing kept.

`read_change` takes the data of one event. Two schemas are known: `mediawiki/recentchange`, and
`mediawiki/page/change`, which names a page once where the former names each of its steps. What is
no change of a page that a reader sees is None: categorisations, log entries that touch no text,
and canaries, the events by which Wikimedia watches its own stream.

Where a stream goes on after a break is said by the id of its last event, handed back as it came. A
stream that cannot go back that far starts where it can: `GapDetector` sees it from the events'
instants.

Of a farm's events few are of the wikis held. `host_filter` tells the others by their bytes: reading
the JSON of all of them would cost four times as much as the stream itself.

Source: HTML Living Standard, section 9.2 (server-sent events); Wikimedia EventStreams
(wikitech.wikimedia.org/wiki/Event_Platform/EventStreams_HTTP_Service).
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.sources.listed_page import read_date

MAX_EVENT_BYTES = 256 * 1024
"""The data of one event; those of Wikimedia take one or two kilobytes."""

MAX_ID_BYTES = 8 * 1024
"""An id is written into the file and into a header; Wikimedia's name some topics each."""

MAX_RETRY_S = 3_600.0

CANARY_DOMAIN = "canary"

GAP_S = 60.0
"""A stream that goes on sooner after where it ended has left nothing out."""

RHYTHM = 8
"""Pauses between events from which the rhythm of a stream is known."""

PAUSES = 5.0
"""A stream that goes on after more than so many times its longest pause has left something out: by
chance that comes once in a hundred thousand breaks of a stream without memory."""

_MARK = b"\xef\xbb\xbf"
"""A stream may begin with the mark of UTF-8."""

_ID = re.compile(rb"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?").fullmatch
"""An id that can be sent back in a header; with another one the stream could never be resumed."""

_TEXT_TOUCHING = frozenset({"delete", "move", "import", "merge", "upload"})
"""Logs whose entries change what a reader of the page sees."""


class StreamEvent(NamedTuple):
    """One event of a stream.

    Attributes:
        data: its lines, joined.
        kind: what the stream calls it; `message` without a name.
        last_id: the id in force after it, empty before the first.
    """

    data: bytes
    kind: str
    last_id: str


class EventReader:
    """A stream being read.

    Attributes:
        last_id: where the stream goes on after a break.
        retry_s: how long it asks to be left alone after a break, None if it says nothing.
        dropped: events too long to be kept.
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry_s: float | None = None
        self.dropped = 0
        self._held = b""
        self._begun = False
        self._after_cr = False
        self._data: list[bytes] = []
        self._size = 0
        self._kind = ""
        self._id = last_id
        self._skipping = False

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Yield the events that end in one more piece."""
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
        lines = (self._held + piece).splitlines(keepends=True)
        self._held = b""
        if lines and not lines[-1].endswith((b"\n", b"\r")):
            self._hold(lines.pop())
        for line in lines:
            event = self._line(line.rstrip(b"\r\n"))
            if event is not None:
                yield event

    def _hold(self, rest: bytes) -> None:
        """Keep a line that has not ended yet, as far as it could still matter."""
        if len(rest) > MAX_EVENT_BYTES:
            self._skipping = True
            rest = rest[:64]
        self._held = rest

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
            self._id = value.decode("latin-1")  # goes back byte by byte
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_s = min(int(value) / 1000.0, MAX_RETRY_S)
        return None

    def _dispatch(self) -> StreamEvent | None:
        # An id counts with the end of its event: half an event is read again after a break.
        self.last_id = self._id
        data, kind, skipped = self._data, self._kind, self._skipping
        self._data, self._kind, self._size, self._skipping = [], "", 0, False
        if skipped:
            self.dropped += 1
            return None
        return StreamEvent(b"\n".join(data), kind or "message", self.last_id) if data else None


class PageChange(NamedTuple):
    """A change of a page as a stream tells it.

    Attributes:
        wiki: the wiki's name in its farm, as `enwiki`; empty where it is not said.
        title: of the page, spelt as the wiki spells it.
        url: canonical URL of the page, None where it is not said.
        at: when it changed, Unix seconds; None where it is not said.
        revision: number of the revision that came of it, None without one.
        kind: `edit`, `new`, or what a log calls it.
        origin: scheme and host of the wiki, empty where it is not said.
    """

    wiki: str
    title: str
    url: str | None
    at: float | None
    revision: int | None
    kind: str
    origin: str


def parse_event(data: bytes) -> tuple[Mapping[str, object], float | None] | None:
    """Return what an event says and when it was made, canaries included; None: it is no event."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    return said, _instant(said)


def read_change(said: Mapping[str, object]) -> PageChange | None:
    """Return the change an event tells of, None where it is of none that a reader sees."""
    meta = _table(said, "meta")
    if meta.get("domain") == CANARY_DOMAIN:
        return None
    if "page_change_kind" in said:
        return _page_change(said, meta)
    return _recent_change(said, meta)


def _recent_change(said: Mapping[str, object], meta: Mapping[str, object]) -> PageChange | None:
    kind, title = _text(said, "type"), _text(said, "title")
    if kind == "log":
        kind = _text(said, "log_type")
        if kind not in _TEXT_TOUCHING:
            return None
    elif kind not in ("edit", "new"):
        return None
    if not title:
        return None
    revision = _table(said, "revision").get("new")
    return PageChange(
        _text(said, "wiki"),
        title,
        _url(_text(said, "title_url") or _text(meta, "uri")),
        _instant(said),
        revision if isinstance(revision, int) else None,
        kind,
        _text(said, "server_url"),
    )


def _page_change(said: Mapping[str, object], meta: Mapping[str, object]) -> PageChange | None:
    page, revision = _table(said, "page"), _table(said, "revision").get("rev_id")
    title, kind = _text(page, "page_title"), _text(said, "page_change_kind")
    if not title or kind == "visibility_change":
        return None
    url = _url(_text(meta, "uri"))
    return PageChange(
        _text(said, "wiki_id"),
        title.replace("_", " "),
        url,
        _instant(said),
        revision if isinstance(revision, int) else None,
        kind,
        "",
    )


def renamed_titles(said: Mapping[str, object]) -> tuple[str, str] | None:
    """Return old and new title where an event tells of a move, None where it tells of none."""
    if _text(said, "log_type") == "move":
        target = _text(_table(said, "log_params"), "target")
        return (_text(said, "title"), target) if target else None
    if _text(said, "page_change_kind") == "move":
        before = _table(_table(said, "prior_state"), "page")
        old = _text(before, "page_title").replace("_", " ")
        new = _text(_table(said, "page"), "page_title").replace("_", " ")
        return (old, new) if old and new else None
    return None


def host_filter(hosts: Iterable[str]) -> Callable[[bytes], object]:
    """Return a quick test whether the data of an event may name a page of some hosts.

    >>> may_name = names_host(["a.test", "b.test"])
    >>> bool(may_name(b'{"title_url": "https://b.test/x"}')), bool(may_name(b'{"wiki": "c"}'))
    (True, False)
    """
    names = sorted(hosts)
    # An international name may be written in letters of its own.
    if any("xn--" in name for name in names):
        return lambda data: True
    return re.compile(b"|".join(re.escape(name.encode()) for name in names), re.IGNORECASE).search


class GapDetector:
    """Whether a stream that goes on after a break has left something out.

    A stream that cannot go back as far as it was asked to begins where it can: later than where it
    ended, by much more than the pauses it makes. A quiet stream makes long ones, so that its rhythm
    is learnt first, over several connections where one does not last.
    """

    def __init__(self) -> None:
        self._pauses: deque[float] = deque(maxlen=RHYTHM)
        self._last_at: float | None = None
        self._from: float | None = None
        self._goes_on_at: float | None = None

    def start(self, asked_from: float | None) -> None:
        """Begin another connection.

        Args:
            asked_from: instant up to which all was told before, None where nothing was.
        """
        self._from, self._last_at, self._goes_on_at = asked_from, None, None

    @property
    def since(self) -> float | None:
        """Up to when all was told before, while it is open whether the stream goes on there."""
        return self._from

    def observe(self, at: float) -> tuple[float, float] | None:
        """Take the instant of an event; return the time left out once it is clear that some was."""
        if self._last_at is not None:
            self._pauses.append(abs(at - self._last_at))
        self._last_at = at
        if self._from is None:
            return None
        if self._goes_on_at is None:
            self._goes_on_at = at
        away_s = self._goes_on_at - self._from
        if away_s > GAP_S and len(self._pauses) < RHYTHM:
            return None
        gap = (self._from, self._goes_on_at)
        self._from = None
        return gap if away_s > max(GAP_S, PAUSES * max(self._pauses, default=0.0)) else None


def _instant(said: Mapping[str, object]) -> float | None:
    stamp = said.get("timestamp")
    if isinstance(stamp, int | float) and not isinstance(stamp, bool) and 0 < stamp < 1e11:
        return float(stamp)
    for written in (_text(said, "dt"), _text(_table(said, "meta"), "dt")):
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


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""
