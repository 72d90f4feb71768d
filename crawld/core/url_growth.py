"""Recognises sets of URLs that grow without new content: traps that no single URL shows.

URLs of a host are counted by their pattern (`pattern_of`). Each first copy of a page costs its
pattern one unit of a budget; one with new text earns some back. So a pattern of which fewer than
one page in twenty has new text runs out: further links to it are refused, which ends parameter
explosions, faceted search, calendars, and paths that repeat themselves. Hosts of one domain are a
pattern, too (wildcard subdomains). A pattern with new text never ends, however many pages it has,
and one that has ended begins again with the next new text: one link a day is still followed.

Text is new if no page of the pattern that is remembered had it between two tags; digits and the
page's own path do not count. On a page that shows more digits than letters all numbers count as one
text: a table of measurements is new, the days of a month are soon known. Random text counts as new:
a lost page is worse than some wasted visits.

Memory is bounded: patterns of all hosts, and of one; what is used least is dropped. A host with
too many patterns counts its others as one.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

import xxhash

from crawld.core.units import DAY_S
from crawld.core.url import registrable_domain

FREE_PAGES: Final = 8
"""First pages of a pattern, whose text is not examined: most patterns have no more."""

START_BUDGET: Final = 60
"""Pages without new text after which a new pattern ends."""

GAIN: Final = 20
"""What a page with new text earns: one in twenty is enough."""

FULL_BUDGET: Final = 400
"""The most that a pattern can save."""

SAMPLE: Final = 16
"""With a full budget, one page of so many is examined, for all of them."""

PROBE_S: Final = DAY_S
"""How often a link of a pattern that has ended is followed."""

MAX_PATTERNS: Final = 1_024
"""Patterns of all hosts: 16 MB with the text of each."""

MAX_HOST_PATTERNS: Final = 64

OTHERS: Final = "(others)"
"""The pattern of all URLs of a host that has too many."""

_NEW_CHARACTERS: Final = 16
_NEW_SHARE: Final = 0.01
_SLOTS: Final = 4_096
_MAX_TEXT_BYTES: Final = 131_072
_MAX_PIECES: Final = 3_000
_MIN_PIECE: Final = 4
_MAX_DIRECTORIES: Final = 3
_MAX_PATTERN: Final = 200

_DIGITS: Final = re.compile(r"[0-9]+")
_NO_TEXT: Final = bytes(range(0x21)) + b"0123456789.,:;-/()[]"


def pattern_of(target: str) -> str:
    """Return the pattern of a path and query: what its server probably makes of one form.

    Numbers count as equal, and so do values of parameters and the last parts of paths.

    >>> pattern_of("/shop/list.php?colour=red"), pattern_of("/shop/list.php?size=3&colour=red")
    ('/shop/list.php?colour', '/shop/list.php?...')
    >>> pattern_of("/calendar/2031/12"), pattern_of("/wiki/Web_crawler")
    ('/calendar/#/#', '/wiki/*')
    >>> pattern_of("/a/b/a/b/page.html")
    '/a/(repeated)/*'
    """
    path, mark, query = target.partition("?")
    *directories, last = path.split("/")[1:]
    names = [each for each in (*directories, last) if len(each) > 3 or not each.isdigit()]
    directories = [_DIGITS.sub("#", each) for each in directories]
    if len(set(names)) < len(names):
        directories = [*directories[:1], "(repeated)"]
    elif len(directories) > _MAX_DIRECTORIES:
        directories = [*directories[:_MAX_DIRECTORIES], "**"]
    if mark:
        last = _DIGITS.sub("#", last)
        first, more, _ = query.partition("&")
        last += "?" + ("..." if more else _DIGITS.sub("#", first.partition("=")[0]))
    elif last:
        last = "#" if last.isdigit() else "*"
    return "/".join(["", *directories, last])[:_MAX_PATTERN]


class TextPiece(NamedTuple):
    """A text between two tags: its hash, 32 bits above 0, and its length without digits."""

    hash: int
    length: int


def text_pieces(body: bytes, target: str) -> list[TextPiece]:
    """Return the texts of a page of HTML, without scripts, styles, and the page's own path.

    Args:
        body: its leading part is read, at most `_MAX_TEXT_BYTES`, up to `_MAX_PIECES` tags.
        target: path and query of its URL.
    """
    own = _plain(unquote_to_bytes(target).lower())
    found, numbers = [], []
    for piece in body[:_MAX_TEXT_BYTES].lower().split(b"<", _MAX_PIECES)[:_MAX_PIECES]:
        tag, _, text = piece.partition(b">")
        # Between most tags there is only a line end.
        if not text or text.isspace() or tag.startswith((b"script", b"style")):
            continue
        plain = _plain(text)
        if not plain:
            numbers.append(text.strip())
        elif len(plain) >= _MIN_PIECE and plain not in own and not _repeats(plain, own):
            found.append(TextPiece(xxhash.xxh32_intdigest(plain) or 1, len(plain)))
    # Years stand alone in calendars.
    data = b" ".join([each for each in numbers if each and not (len(each) == 4 and each.isdigit())])
    if len(data) > sum(each.length for each in found):
        found.append(TextPiece(xxhash.xxh32_intdigest(data) or 1, len(data)))
    return found or file_pieces(body)


def _repeats(plain: bytes, own: bytes) -> bool:
    return len(own) >= _MIN_PIECE and own in plain


def file_pieces(body: bytes) -> list[TextPiece]:
    """Return a body as one piece: that of a file, or of a page without text."""
    return [TextPiece(xxhash.xxh32_intdigest(body) or 1, _NEW_CHARACTERS)]


def _plain(text: bytes) -> bytes:
    return text.translate(None, _NO_TEXT)


class KnownText:
    """Remembers pieces of text; a new piece may take the place of an old one."""

    __slots__ = ("_slots",)

    def __init__(self, stored: bytes = b"") -> None:
        """Remember nothing, or what was stored."""
        self._slots = array("I", stored or bytes(4 * _SLOTS))

    def add(self, pieces: list[TextPiece]) -> bool:
        """Remember the pieces of a page; return whether they had new text."""
        slots, new, total = self._slots, 0, 0
        for hashed, length in pieces:
            total += length
            slot = hashed % _SLOTS
            if slots[slot] != hashed:
                slots[slot] = hashed
                new += length
        return new >= max(_NEW_CHARACTERS, _NEW_SHARE * total)

    def stored(self) -> bytes:
        """Return what the constructor reads, 16 KiB."""
        return self._slots.tobytes()


@dataclass(slots=True)
class UrlPattern:
    """URLs of one form.

    Attributes:
        host: the host, or `*.example.org`, whose pages are the first pages of hosts.
        pattern: see `pattern_of`.
        pages: first copies of its pages.
        fresh: those of them with new text, as far as they were examined.
        budget: pages without new text until it ends; 0: it has ended.
        refused: links refused since.
        probed_at: when a link was last followed in spite of that, Unix seconds.
        known: text of its pages; None: it has had `FREE_PAGES` at most.
    """

    host: str
    pattern: str
    pages: int = 0
    fresh: int = 0
    budget: int = START_BUDGET
    refused: int = 0
    probed_at: float = 0.0
    known: KnownText | None = field(default=None, repr=False)

    @property
    def has_ended(self) -> bool:
        """Whether it grows no more."""
        return self.budget <= 0

    @property
    def is_counted(self) -> bool:
        """Whether it has so many pages that they are examined."""
        return self.known is not None

    def visited(self, read: Callable[[], list[TextPiece]]) -> None:
        """Count the first copy of a page; `read` returns its text, where it is needed."""
        self.pages += 1
        if self.known is None:
            if self.pages <= FREE_PAGES:
                return
            self.known = KnownText()
        weight = 1
        if self.budget >= FULL_BUDGET:
            if self.pages % SAMPLE:
                return
            weight = SAMPLE
        if self.known.add(read()):
            self.fresh += 1
            self.budget = min(self.budget + GAIN, FULL_BUDGET)
        else:
            self.budget = max(self.budget - weight, 0)


class UrlGrowth:
    """Counts the patterns of all hosts."""

    def __init__(self, known_hosts: Container[str] = ()) -> None:
        """Count nothing yet; `known_hosts` has the hosts whose pages are in the file."""
        self._known_hosts = known_hosts
        # The most recently used last, of hosts and of the patterns of each.
        self._hosts: OrderedDict[str, OrderedDict[str, UrlPattern]] = OrderedDict()
        self._count = 0
        self._ended: set[str] = set()
        self._changed: dict[tuple[str, str], UrlPattern | None] = {}

    def restore(self, patterns: Iterable[UrlPattern]) -> None:
        """Go on with stored patterns."""
        for each in patterns:
            self._hosts.setdefault(each.host, OrderedDict())[each.pattern] = each
            self._count += 1
            self._note(each)

    def visited(self, host: str, target: str, read: Callable[[], list[TextPiece]]) -> None:
        """Count the first copy of a page.

        Args:
            host: its host; `target`: path and query of its URL.
            read: returns its text, where it is needed.
        """
        if host not in self._hosts and (domain := wildcard(host)) is not None:
            self._visit(domain, "/", read)
        self._visit(host, pattern_of(target), read)

    def _visit(self, host: str, pattern: str, read: Callable[[], list[TextPiece]]) -> None:
        counted = self._use(host, pattern) or self._add(host, pattern)
        before, had_ended = counted.budget, counted.has_ended
        counted.visited(read)
        if counted.budget != before:
            # A pattern that has proved itself may begin again at a restart.
            stored = counted if counted.budget < FULL_BUDGET else None
            self._changed[host, counted.pattern] = stored
        if counted.has_ended is not had_ended:
            self._note(counted)

    def ended(self, host: str, target: str) -> UrlPattern | None:
        """Return the pattern of a URL if it has ended."""
        if not self._ended:
            return None
        found = None
        if host in self._ended:
            found = self._use(host, pattern_of(target))
        elif host not in self._known_hosts:
            domain = wildcard(host)
            found = self._use(domain, "/") if domain in self._ended else None
        return found if found is not None and found.has_ended else None

    def refusing(self, host: str, target: str, now: float) -> UrlPattern | None:
        """Return the pattern that refuses a link to a URL, and count that; None: it is followed."""
        found = self.ended(host, target)
        if found is None:
            return None
        self._changed[found.host, found.pattern] = found
        if now - found.probed_at >= PROBE_S:
            is_first, found.probed_at = not found.probed_at, now
            if not is_first:
                return None
        found.refused += 1
        return found

    def of_host(self, host: str) -> list[UrlPattern]:
        """Return the patterns of a host that are counted, those that have ended first."""
        names = [host, *filter(None, [wildcard(host)])]
        found = [each for name in names for each in self._hosts.get(name, {}).values()]
        counted = [each for each in found if each.is_counted]
        return sorted(counted, key=lambda each: (each.budget, -each.pages))

    def take_changed(self) -> dict[tuple[str, str], UrlPattern | None]:
        """Return the patterns that changed since the last call, by host and pattern.

        None: it was dropped.
        """
        changed, self._changed = self._changed, {}
        return changed

    def _use(self, host: str | None, pattern: str) -> UrlPattern | None:
        patterns = self._hosts.get(host) if host is not None else None
        if host is None or patterns is None:
            return None
        self._hosts.move_to_end(host)
        if pattern not in patterns and len(patterns) >= MAX_HOST_PATTERNS:
            pattern = OTHERS
        if pattern in patterns:
            patterns.move_to_end(pattern)
        return patterns.get(pattern)

    def _add(self, host: str, pattern: str) -> UrlPattern:
        while self._count >= MAX_PATTERNS:
            self._drop_one()
        patterns = self._hosts.setdefault(host, OrderedDict())
        if len(patterns) >= MAX_HOST_PATTERNS:
            pattern = OTHERS
        patterns[pattern] = added = UrlPattern(host, pattern)
        self._count += 1
        return added

    def _drop_one(self) -> None:
        """Drop the least recently used pattern of the host that was used least recently."""
        host, patterns = next(iter(self._hosts.items()))
        pattern, dropped = patterns.popitem(last=False)
        self._count -= 1
        if not patterns:
            del self._hosts[host]
        if dropped.is_counted:
            self._changed[host, pattern] = None
        self._note(dropped)

    def _note(self, changed: UrlPattern) -> None:
        """Note whether a host has patterns that have ended."""
        patterns = self._hosts.get(changed.host)
        if patterns is not None and any(each.has_ended for each in patterns.values()):
            self._ended.add(changed.host)
        else:
            self._ended.discard(changed.host)


def wildcard(host: str) -> str | None:
    """Return the name under which hosts of one domain are counted; None for its main hosts."""
    domain = registrable_domain(host)
    return None if host in (domain, f"www.{domain}") else f"*.{domain}"
