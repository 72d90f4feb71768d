"""Blocks of a feed, as a page: its title and description, then title, link and text of each entry.

Dates, identifiers and names of programs are left out, since they change without an edit. Text of
entries may be markup, escaped or not; its tags only end lines.

Source: RSS 0.9x, 1.0 and 2.0; Atom 0.3 and 1.0 (RFC 4287).
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from crawld.core.content.blocks import Blocks, escaped, plain_blocks
from crawld.core.content.targets import link_target
from crawld.core.content.xml_scan import MarkupPiece, attributes, scan

MAX_TITLE_CHARACTERS: Final = 1_000

_ENTRIES = frozenset({"item", "entry"})
_FIELDS = frozenset(
    {
        *("title", "link", "description", "subtitle", "tagline", "summary", "content", "encoded"),
        *("name", "creator", "category"),
    }
)
_LINE_TAGS = frozenset(
    {
        *("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre"),
        *("ul", "ol", "table", "section", "article", "figure", "dt", "dd", "hr"),
    }
)
_HIDDEN_TAGS = frozenset({"script", "style"})


class FeedField(NamedTuple):
    """An element of a feed that people read.

    Attributes:
        name: of the element.
        in_entry: whether it belongs to an entry, not to the feed.
        text: without markup, in lines.
    """

    name: str
    in_entry: bool
    text: str


def feed_blocks(text: str) -> Blocks | None:
    """Return the blocks of a feed; None if there is nothing to read in it."""
    lines = [
        (shown, f"{'entry' if found.in_entry else 'feed'} {found.name}")
        for found in feed_fields(text)
        for line in found.text.split("\n")
        if (shown := _shown(found, escaped(line)))
    ]
    return plain_blocks(lines) if lines else None


def feed_title(text: str) -> str | None:
    """Return the title of a feed, None without one; reads as far as its first entry."""
    for found in feed_fields(text):
        if found.in_entry:
            break
        if found.name == "title":
            return " ".join(found.text.split())[:MAX_TITLE_CHARACTERS] or None
    return None


def _shown(found: FeedField, line: str) -> str:
    if not line or found.name == "link":
        return link_target(line)
    if found.name == "title":
        return f"{'h2' if found.in_entry else 'title'}: {line}"
    return line


def feed_fields(text: str) -> Iterator[FeedField]:
    """Yield what people read in a feed, in order."""
    in_entry = False
    pieces = scan(text)
    for piece in pieces:
        if piece.name in _ENTRIES:
            in_entry = piece.kind == "start"
        elif piece.name not in _FIELDS or piece.kind == "end":
            continue
        elif piece.name in ("link", "category") and piece.text.strip(" /"):
            given = attributes(piece.text)
            value = given.get("href") or given.get("label") or given.get("term") or ""
            yield FeedField(piece.name, in_entry, html.unescape(value))
        elif piece.kind == "start":
            yield FeedField(piece.name, in_entry, _plain(_content(piece.name, pieces)))


def _content(name: str, pieces: Iterator[MarkupPiece]) -> str:
    """Return the content of an element as HTML, up to its end; elements of its name nest."""
    depth = 1
    written: list[str] = []
    for piece in pieces:
        if piece.name == name:
            depth += (piece.kind == "start") - (piece.kind == "end")
            if not depth:
                break
        if piece.kind == "text":
            written.append(piece.text if piece.plain else html.unescape(piece.text))
        elif piece.name in _LINE_TAGS:
            written.append("<br>")
    return "".join(written)


def _plain(markup: str) -> str:
    """Return the text of HTML, a line for each element that begins one."""
    if "<" not in markup:
        return html.unescape(markup)
    return "".join(_pieces_of_text(scan(f"{markup}<br>")))


def _pieces_of_text(pieces: Iterable[MarkupPiece]) -> Iterator[str]:
    hidden = ""
    for piece in pieces:
        if hidden:
            hidden = "" if (piece.name, piece.kind) == (hidden, "end") else hidden
        elif piece.kind == "text":
            yield piece.text if piece.plain else html.unescape(piece.text)
        elif piece.name in _LINE_TAGS:
            yield "\n"
        elif piece.name in _HIDDEN_TAGS and piece.kind == "start":
            hidden = piece.name
