"""Cuts serialized HTML with many tags at all of them at once; the results are those of `tags.py`.

numpy finds the tags of a whole page, reads their names and removes everything that is not text in
some twenty operations. Only tags that open or close a block, images, and unusual link targets are
looked at one by one, as marks between runs of text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crawld.core.content.tag_roles import (
    BREAK,
    CELL,
    CLOSE,
    HIDDEN,
    IMAGE,
    LINK,
    OPEN,
    RAW,
    RAW_ELEMENTS,
    ROLES,
    SKIP,
    VOID,
)
from crawld.core.content.targets import TARGET_END, TARGET_START, target_of_image, target_of_link
from crawld.core.value_type import value_type

# --- names of tags, eight bytes at a time ------------------------------------------------------

_Words = NDArray[np.uint64]
_Offsets = NDArray[np.int64]

_LOW_BITS, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_BLANKS, _ENDS = _LOW_BITS * np.uint64(ord(" ")), _LOW_BITS * np.uint64(ord(">"))
_ONE, _SEVEN, _EIGHT = np.uint64(1), np.uint64(7), np.uint64(8)
_REST_FACTOR = 0xC2B2AE3D27D4EB4F
_SPREAD_FACTOR = 0x9E3779B97F4A7C15
_TABLE_BITS = 12
_TABLE_SHIFT = np.uint64(64 - _TABLE_BITS)
_NAME_BYTES = 16
"""Bytes compared of a name; the longest name with a role has ten."""

_HREF_IS = np.uint64(int.from_bytes(b' href="', "little"))
_HIDDEN_IS = np.uint64(int.from_bytes(b" hidden=", "little"))
_STYLE_IS = np.uint64(int.from_bytes(b" style=", "little"))
_COMMENT = np.uint64(int.from_bytes(b"!--", "little"))
_RAW_START = re.compile(rb"<([a-z]+)[ >]")


_NO_CONTENT = VOID | set(RAW_ELEMENTS)
"""Elements that hide nothing behind their tag: their content was left out before."""


def _role_table() -> tuple[_Words, NDArray[np.uint8]]:
    """Return a hash table of roles, and the name of each entry."""
    names, roles = np.zeros(2**_TABLE_BITS, np.uint64), np.zeros(2**_TABLE_BITS, np.uint8)
    for name, role in ROLES.items():
        if name.startswith("/") or not role:
            continue
        padded = name.encode().ljust(_NAME_BYTES, b"\0")
        first, rest = (int.from_bytes(padded[at : at + 8], "little") for at in (0, 8))
        code = (first + rest * _REST_FACTOR) % 2**64
        index = code * _SPREAD_FACTOR % 2**64 >> 64 - _TABLE_BITS
        if roles[index]:
            raise AssertionError(f"two names share a place: {name}")
        names[index], roles[index] = code, role
    return names, roles


_TABLE_NAMES, _TABLE_ROLES = _role_table()


def _name_part(words: _Words) -> tuple[_Words, NDArray[np.bool_]]:
    """Return words with the bytes after a name set to 0, and a mask of words without an end."""
    blanks, ends = words ^ _BLANKS, words ^ _ENDS
    # The lowest zero byte is found exactly, those above it may be wrong.
    zeros = (((blanks - _LOW_BITS) & ~blanks) | ((ends - _LOW_BITS) & ~ends)) & _HIGH_BITS
    lowest = zeros & (~zeros + _ONE)
    return words & ((lowest >> _SEVEN) - _ONE), zeros == 0


class _Tags:
    """All tags of a page, as columns, in order.

    Attributes:
        start: offset of the `<`.
        end: offset of the `>`, or of the next tag if there is none.
        stop: start of the text after the tag; for an element left out, after the element.
        role: of `tag_roles.py`; 0: none.
        code: hash of the name, without the slash.
        closing: whether the tag ends an element.
        quotes: offsets of `"`.
    """

    def __init__(self, markup: str) -> None:
        # A NUL becomes the separator of runs.
        encoded = markup.encode("utf-8", "replace")
        self.body, size = bytearray(encoded), len(encoded)
        self.body += bytes(2 * _NAME_BYTES)
        every = np.frombuffer(self.body, np.uint8)
        self.text = every[:size]
        self.words = np.ndarray((size + _NAME_BYTES,), "<u8", self.body, strides=(1,))
        self.start = np.flatnonzero(self.text == ord("<"))
        self.closing = every[self.start + 1] == ord("/")
        at = self.start + 1 + self.closing
        self.code, long = _name_part(self.words[at])
        comment = self.code & np.uint64(0xFFFFFF) == _COMMENT
        if long.any():
            rest, _ = _name_part(self.words[at[long] + 8])
            self.code[long] += rest * np.uint64(_REST_FACTOR)
        index = self.code * np.uint64(_SPREAD_FACTOR) >> _TABLE_SHIFT
        role = _TABLE_ROLES[index] * (_TABLE_NAMES[index] == self.code)
        ends_block = self.closing & (role == OPEN)
        self.role = role * ~self.closing + ends_block * np.uint8(CLOSE)
        self.end = self.stop = np.zeros(self.start.size, np.int64)
        self._leave_out_raw(comment)
        self._end()
        self.quotes = np.flatnonzero(self.text == ord('"'))
        self._leave_out_skipped()

    def tag(self, index: int) -> bytes:
        """Return the content of one tag between `<` and `>`."""
        return bytes(self.body[int(self.start[index]) + 1 : int(self.end[index])])

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        self.start, self.end, self.stop = self.start[kept], self.end[kept], self.stop[kept]
        self.role, self.code, self.closing = self.role[kept], self.code[kept], self.closing[kept]

    def _leave_out_raw(self, comment: NDArray[np.bool_]) -> None:
        found = np.flatnonzero((self.role == RAW) | comment)
        if not found.size:
            return
        kept, past = np.ones(self.start.size, np.bool_), 0
        # The text of `xmp` and `plaintext` is serialized unescaped: it may contain unclosed tags.
        endless: set[bytes] = set()
        for index in found.tolist():
            start = int(self.start[index])
            if start < past:
                continue
            match = _RAW_START.match(self.body, start)
            end = b"-->" if match is None else b"</" + match[1] + b">"
            at = -1 if end in endless else self.body.find(end, start + 4)
            if at < 0:
                endless.add(end)
                continue
            past = at + len(end)
            kept[index + 1 : np.searchsorted(self.start, past)] = False
            self.stop[index] = past
        self.role[found] = 0
        self._keep(kept)

    def _end(self) -> None:
        """Find where tags end."""
        ends = np.flatnonzero(self.text == ord(">"))
        start, following = self.start, np.append(self.start[1:], self.text.size)
        if ends.size != start.size or not ((start < ends) & (ends < following)).all():
            # Stray signs: in raw text, or `>` in a text.
            ends = np.append(ends, self.text.size)
            ends = np.minimum(ends[np.searchsorted(ends, start)], following)
        self.end = ends
        self.stop = np.where(self.stop > 0, self.stop, np.minimum(ends + 1, following))

    def _leave_out_skipped(self) -> None:
        skipped = np.flatnonzero(self.role == SKIP).tolist()
        if hidden := self._hidden():
            skipped = sorted({*skipped, *hidden})
        if not skipped:
            return
        codes, closing = self.code.tolist(), self.closing.tolist()
        kept, past = np.ones(self.start.size, np.bool_), 0
        for index in skipped:
            if index < past:
                continue
            last = _balanced(codes, closing, index)
            self.role[index], past = 0, last + 1
            self.stop[index] = self.stop[last] if last < len(codes) else self.text.size
            kept[index + 1 : past] = False
        self._keep(kept)

    def _hidden(self) -> list[int]:
        """Return the tags that hide their element; void ones lose their role here."""
        before = self.words[np.maximum(self.quotes - 8, 0)]
        places = self.quotes[(before == _HIDDEN_IS) | (before >> _EIGHT == _STYLE_IS)]
        if not places.size:
            return []
        hidden = []
        for index in np.unique(np.searchsorted(self.start, places, side="right") - 1).tolist():
            if index < 0 or HIDDEN.search(tag := self.tag(index).decode()) is None:
                continue
            if tag.partition(" ")[0] in _NO_CONTENT:
                self.role[index] = 0
            else:
                hidden.append(index)
        return hidden


def _balanced(codes: list[int], closing: list[bool], index: int) -> int:
    """Return the index of the tag that ends an element, or the number of tags if there is none.

    Serialized elements are well nested: an element ends where the tags of its name balance.
    """
    depth = 0
    for at in range(index, len(codes)):
        if codes[at] == codes[index]:
            depth += -1 if closing[at] else 1
            if not depth:
                return at
    return len(codes)


@value_type
class _MarkupRuns:
    """Runs of text, and the marks between them.

    Attributes:
        texts: one run more than there are marks; entities are kept.
        marks: the role of the tag after each run but the last.
        tags: name and attributes of every mark but `CLOSE`.
    """

    texts: list[str]
    marks: list[int]
    tags: list[str]


def vector_runs(markup: str) -> Iterator[tuple[str, str | None]]:
    """Do the same as `tags.block_runs`; the markup has no NUL and no sign of targets."""
    found = _split(markup)
    texts, tags = iter(found.texts), iter(found.tags)
    run = next(texts)
    for mark, text in zip(found.marks, texts, strict=True):
        if mark == OPEN:
            yield run, next(tags)
            run = text
        elif mark == CLOSE:
            yield run, None
            run = text
        elif mark == LINK:
            run += target_of_link(next(tags)) + text
        else:
            run += target_of_image(next(tags)) + text
    yield run, None


def _split(markup: str) -> _MarkupRuns:
    """Split the result of `LexborNode.html` at its tags; any other gives an unspecified result."""
    tags = _Tags(markup)
    # Of each tag, [keep_start, keep_end) stays as text; nothing by default.
    keep_start, keep_end = tags.start.copy(), tags.start.copy()
    _set_targets(tags, keep_start, keep_end)
    text, start, role = tags.text, tags.start, tags.role
    cells = np.flatnonzero(role == CELL)
    for offset, sign in enumerate(b" | "):
        text[start[cells] + offset] = sign
    keep_end[cells] += 3
    spaces = np.flatnonzero(role == BREAK)
    text[start[spaces]] = ord("\n")
    marks = np.flatnonzero((role > 0) & (role <= IMAGE))
    roles = role[marks].tolist()
    named = _named(tags, markup, marks)
    text[start[marks]] = 0
    keep_end[marks] += 1
    keep_end[spaces] += 1
    bounds = np.zeros(4 * start.size + 2, np.int64)
    bounds[1:-1:4], bounds[2:-1:4], bounds[3:-1:4] = start, keep_start, keep_end
    bounds[4:-1:4], bounds[-1] = tags.stop, text.size
    stays = np.tile(_STAYS, start.size + 1)[: bounds.size - 1]
    kept = text[np.repeat(stays, np.diff(bounds))]
    return _MarkupRuns(kept.tobytes().decode().split("\0"), roles, named)


def _named(tags: _Tags, markup: str, marks: _Offsets) -> list[str]:
    """Return name and attributes of the tags that do not end an element."""
    marks = marks[tags.role[marks] != CLOSE]
    spans = zip((tags.start[marks] + 1).tolist(), tags.end[marks].tolist(), strict=True)
    if len(markup) == tags.text.size:
        return [markup[start:stop] for start, stop in spans]
    body = bytes(tags.body)
    return [body[start:stop].decode() for start, stop in spans]


_STAYS = np.array([True, False, True, False])
"""Which parts stay: the text before a tag, its first part, the part kept as text, its last part."""


def _set_targets(tags: _Tags, keep_start: _Offsets, keep_end: _Offsets) -> None:
    """Keep the targets of plain links as text; other links become marks."""
    links = np.flatnonzero(tags.role == LINK)
    opening = tags.start[links] + len("<a href=")
    direct = tags.words[tags.start[links] + 2] << _EIGHT == _HREF_IS << _EIGHT
    links, opening = links[direct], opening[direct]
    quotes = np.append(tags.quotes, tags.text.size)
    closing = quotes[np.searchsorted(quotes, opening) + 1]
    letter = tags.text[opening + 1]
    # Most link targets of an encyclopedia are notes on the same page: skip them first.
    nowhere = (letter == ord("#")) | (letter == ord('"')) | (closing >= tags.end[links])
    tags.role[links[nowhere]] = 0
    links, opening, closing = links[~nowhere], opening[~nowhere], closing[~nowhere]
    plain = ~_is_odd(tags.text, opening + 1, closing)
    links, opening, closing = links[plain], opening[plain], closing[plain]
    tags.role[links] = 0
    tags.text[opening], tags.text[closing] = ord(TARGET_START), ord(TARGET_END)
    keep_start[links], keep_end[links] = opening, closing + 1


def _is_odd(text: NDArray[np.uint8], first: _Offsets, end: _Offsets) -> NDArray[np.bool_]:
    """Return which targets need normalization: a fragment, parameters, perhaps a script."""
    if not first.size:
        return np.zeros(0, np.bool_)
    lengths = end - first
    stops = np.cumsum(lengths)
    letters = text[np.repeat(first - stops + lengths, lengths) + np.arange(stops[-1])]
    odd = (letters == ord("#")) | (letters | 4 == ord("?"))  # "?" or ";"
    starts_with_j = text[first] | 32 == ord("j")
    return np.asarray(np.logical_or.reduceat(odd, stops - lengths) | starts_with_j, np.bool_)
