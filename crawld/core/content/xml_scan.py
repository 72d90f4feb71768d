"""Scans XML that may be broken, in linear time: start tags, end tags and text.

Feeds are often not well-formed: a bare `&`, an entity of HTML, an unclosed `<br>`. Parsers that
mend them need time quadratic in the nesting, and in the attributes of a tag. This scanner reads
each character once or twice. It declares and expands no entity, and checks nothing: names need not
match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_TAG_LENGTH = 16_384
"""Characters of a start tag that are read; a link may be some thousand long."""

MAX_ATTRIBUTES = 64
"""Attributes of a start tag that are read."""

MAX_TAGS = 400_000
"""Tags of a document that are read, a second of work; 2,000 entries of a feed have 60,000."""

# Linear: each part is possessive, or one class followed by a character that it excludes.
_NAME = re.compile(r"[A-Za-z_][\w:.-]{0,100}+", re.ASCII).match
_SECTIONS = {"<![CDATA[": "]]>", "<!--": "-->", "<?": "?>"}
_BEGIN = re.compile(r"[A-Za-z_/!]", re.ASCII).match
_ATTRIBUTE = re.compile(r"""([\w:.-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""", re.ASCII).finditer


class MarkupPiece(NamedTuple):
    """A piece of a document.

    Attributes:
        name: local name in lower case, without prefix; empty for text.
        kind: `start`, `end`, `empty` (`<a/>`) or `text`.
        text: the text as written, or the attributes as written.
        plain: whether the text is CDATA, without entities.
    """

    name: str
    kind: str
    text: str
    plain: bool = False


def scan(text: str) -> Iterator[MarkupPiece]:
    """Yield the pieces of a document; comments, declarations and instructions are left out."""
    position, tags = 0, 0
    while tags < MAX_TAGS:
        begin = text.find("<", position)
        if begin < 0:
            return
        if begin > position:
            yield MarkupPiece("", "text", text[position:begin])
        opened = next((mark for mark in _SECTIONS if text.startswith(mark, begin)), None)
        if opened is not None:
            close = _SECTIONS[opened]
            end = text.find(close, begin + len(opened))
            if end < 0:
                return
            if close == "]]>":
                yield MarkupPiece("", "text", text[begin + len(opened) : end], plain=True)
            position = end + len(close)
        elif not _BEGIN(text, begin + 1):
            position = begin + 1  # a bare bracket
            tags += 1
        else:
            end = text.find(">", begin + 1)
            if end < 0:
                return
            tags += 1
            position = _end_of_tag(text, begin, end) + 1
            tag = _tag(text, begin, position - 1)
            if tag is not None:
                yield tag


def _end_of_tag(text: str, begin: int, end: int) -> int:
    """Return the place of the `>` that closes a tag: one inside quotes does not."""
    most = begin + MAX_TAG_LENGTH
    written = text[begin:end]
    for quote in "\"'":
        # Only an odd number of quotes can hide a bracket; such tags are rare, and short.
        if written.count(quote) % 2:
            # A value holds no other tag, so an apostrophe hides none.
            tag = text.find("<", end, most)
            limit = tag if tag >= 0 else most
            closing = text.find(quote, end, limit)
            after = text.find(">", closing, limit) if closing >= 0 else -1
            return after if after >= 0 else end
    return end


def _tag(text: str, begin: int, end: int) -> MarkupPiece | None:
    closes = text.startswith("/", begin + 1)
    name = _NAME(text, begin + 1 + closes, end)
    if name is None:
        return None
    local = name[0].rpartition(":")[2].lower()
    if closes:
        return MarkupPiece(local, "end", "")
    kind = "empty" if text.startswith("/", end - 1) else "start"
    return MarkupPiece(local, kind, text[name.end() : min(end, begin + MAX_TAG_LENGTH)])


def attributes(written: str) -> dict[str, str]:
    """Return the attributes of a tag by name in lower case, prefix included; the first counts."""
    found: dict[str, str] = {}
    for match in _ATTRIBUTE(written):
        value = match[2] if match[2] is not None else match[3]
        found.setdefault(match[1].lower(), value)
        if len(found) >= MAX_ATTRIBUTES:
            break
    return found
