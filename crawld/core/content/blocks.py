"""What a reader sees of a page, as a list of blocks: paragraphs, headings, items, rows.

The parsed tree is written out once by Lexbor and cut at its tags by one regular expression: that
is several times faster than walking nodes from Python, and safe, because written-out HTML has
every tag closed, every attribute quoted, and `<` and `>` escaped everywhere else.

In: visible text; the level of headings, items, rows, preformatted lines and quotes; targets of
links (without session ids, tokens and fragments) and sources of images (without their query, which
is there to defeat caches). A changed target or image is thus a real edit. Table cells are parts of
their row, which gives numbers the words they belong to. `aria-hidden` content is visible and stays.
Out: comments, scripts, styles, templates, noscript, embedded content, form field values (CSRF
tokens and nonces live there), all attributes but those named, and what `hidden` or an inline style
(`display: none`, `visibility: hidden`) hides.

Each block has a *place*: a 32-bit chain of tag names, ids and classes from the body down. Tokens
with digits are left out of it, so that places survive numbering, and no order takes part, so that
they survive insertions.

Invariants: order is document order; no block is empty; no recursion; a body that is no markup is
cut into lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from crawld.core.content.html import ParsedPage

MAX_BLOCKS = 50_000
"""Blocks of one page; what follows goes into the last of them."""

TARGET_START, TARGET_END = "\x02", "\x03"
_TARGET = re.compile("\x02[^\x03]*\x03")


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one page, column by column.

    Attributes:
        texts: comparable text of each block: its kind, its words, and link and image targets
            between `TARGET_START` and `TARGET_END` where they stand. `&`, `<`, `>` are escaped.
        places: where each block stands, by structure (same length).
    """

    texts: tuple[str, ...]
    places: tuple[int, ...]

    def hashes(self) -> NDArray[np.uint64]:
        """Return the xxh3-64 of every block's text and place, in order."""
        pairs = zip(self.texts, self.places, strict=True)
        return np.array(
            [xxh3_64_intdigest(text.encode("utf-8", "replace"), place) for text, place in pairs],
            dtype=np.uint64,
        )

    def visible_text(self) -> str:
        """Return what a reader sees, a line a block."""
        text = _TARGET.sub("", "\n".join(self.texts))
        if "&" in text:
            text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        return text


_KINDS = {f"h{level}": f"h{level}: " for level in range(1, 7)} | {
    **dict.fromkeys(("li", "dt", "dd", "option"), "* "),
    "tr": "| ",
    "pre": "pre: ",
    "blockquote": "> ",
}
_BLOCK_TAGS = (
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"),
    *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "legend", "li", "main", "menu"),
    *("nav", "ol", "optgroup", "option", "p", "pre", "search", "section", "select", "summary"),
    *("table", "tbody", "tfoot", "thead", "tr", "ul"),
)
_SKIPPED_TAGS = (*("template", "svg", "object", "canvas", "audio", "video", "datalist", "map"),)
_VOID_TAGS = frozenset({"img", "input", "br", "hr", "wbr", "embed", "source", "track", "col"})

_OPEN, _CLOSE, _LINK, _IMAGE, _SPACE, _CELL, _SKIP = range(1, 8)
_ROLES = {
    **dict.fromkeys(_BLOCK_TAGS, _OPEN),
    **{f"/{name}": _CLOSE for name in _BLOCK_TAGS},
    **dict.fromkeys(_SKIPPED_TAGS, _SKIP),
    **dict.fromkeys(("td", "th"), _CELL),
    **dict.fromkeys(("br", "hr"), _SPACE),
    "a": _LINK,
    "img": _IMAGE,
}

# Comments, and elements whose content is written out as it is, stray signs and all.
_RAW = re.compile(
    r"<!--.*?-->|<(script|style|noscript|iframe|noembed|noframes)[ >].*?</\1>", re.DOTALL
)
_HIDDEN = re.compile(
    r'(?:^| )hidden="|style="[^"]*(?:display\s*:\s*none|visibility\s*:\s*hidden)', re.IGNORECASE
)
_IDENTITY = re.compile(r'(?:^| )(?:id|class)="([^"]*)"')
_SOURCE = re.compile(r'(?:^| )src="([^"]*)"')
_SESSION_PATH = re.compile(
    r"(?<!&amp);(?:jsessionid|phpsessid|sid|sessionid)=[^?#]*", re.IGNORECASE
)
_SESSION_PARAMETER = re.compile(
    r"(?<=[?&;])(?:(?:phpsessid|jsessionid|sid|session_?id|s?token|\w*csrf\w*|authenticity_token|"
    r"_?\w*nonce|utm_\w+|gclid|fbclid|_|ts|timestamp|cb|cachebuster|rnd|rand|random)=[^&#]*|"
    r"[\w.-]+=[0-9a-f]{24,}(?=&|#|$))(?:&amp;|&|$)?",
    re.IGNORECASE,
)


def blocks_of(page: ParsedPage) -> Blocks:
    """Return the blocks of a parsed page, its title first."""
    outline = _Outline()
    if page.title:
        outline.add("title: " + page.title, 0)
    body = page.tree.body
    _outline_markup(outline, (body.html if body is not None else None) or "")
    return outline.blocks()


def lines_of(text: str) -> Blocks:
    """Return the blocks of a text without markup: its lines, blank ones left out."""
    lines = [line for raw in text.splitlines() if (line := " ".join(raw.split()))]
    if len(lines) > MAX_BLOCKS:
        lines[MAX_BLOCKS - 1 :] = [" ".join(lines[MAX_BLOCKS - 1 :])]
    return Blocks(tuple(lines), (0,) * len(lines))


class _Outline:
    """Collects blocks while tags open and close."""

    __slots__ = ("_kind", "_open", "_place", "_places", "_texts", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._kind, self._place = "", 0
        self._open: list[tuple[str, int]] = []
        self._texts: list[str] = []
        self._places: list[int] = []

    def add(self, text: str, place: int) -> None:
        if len(self._texts) < MAX_BLOCKS:
            self._texts.append(text)
            self._places.append(place)
        else:
            self.pieces.append(text)

    def flush(self) -> None:
        """End the block that is being collected."""
        if not self.pieces or len(self._texts) >= MAX_BLOCKS:
            return
        whole = "".join(self.pieces).replace("&nbsp;", " ").strip()
        self.pieces.clear()
        if not whole:
            return
        # Preformatted text is as many blocks as it has lines.
        for line in whole.split("\n") if self._kind == "pre: " else (whole,):
            text = line
            if "\n" in line or "  " in line or "\t" in line:
                text = " ".join(line.split())
            if text := text.strip("| "):
                self.add(self._kind + text, self._place)

    def open_block(self, name: str, attributes: str) -> None:
        if self.pieces:
            self.flush()
        self._open.append((self._kind, self._place))
        self._kind = _KINDS.get(name, self._kind if self._kind == "pre: " else "")
        self._place = crc32(_place_step(name, attributes), self._place)

    def close_block(self) -> None:
        if self.pieces:
            self.flush()
        if self._open:
            self._kind, self._place = self._open.pop()

    def blocks(self) -> Blocks:
        self.flush()
        if self.pieces:
            self._texts[-1] = " ".join("".join([self._texts[-1], *self.pieces]).split())
        return Blocks(tuple(self._texts), tuple(self._places))


def _outline_markup(outline: _Outline, markup: str) -> None:
    markup = _RAW.sub("", markup)
    hides = "none" in markup or "hidden" in markup
    put, roles = outline.pieces.append, _ROLES
    # In what Lexbor writes out, every "<" left starts a tag and the next ">" ends it.
    pieces = iter(markup.split("<"))
    put(next(pieces))
    for piece in pieces:
        tag, _, text = piece.partition(">")
        name, attributes, role = tag, "", roles.get(tag)
        if role is None and " " in tag:
            name, _, attributes = tag.partition(" ")
            role = roles.get(name)
            if hides and _is_hidden(attributes):
                role = None if name in _VOID_TAGS else _SKIP
        if role is None:
            pass
        elif role == _LINK:
            # Most targets of an encyclopedia's links are notes on the same page: look no further.
            start = tag.find(' href="') + 7
            if start > 6 and tag[start] != "#":
                put(link_target(tag[start : tag.find('"', start)]))
        elif role == _SKIP:
            text = _text_after(pieces, name)
        else:
            _apply(outline, role, name, attributes)
        if text:
            put(text)


def _text_after(pieces: Iterator[str], name: str) -> str:
    """Leave out an element that was just opened, and return the text behind its end tag.

    What is written out is well nested: the element ends where tags of its own name balance.
    """
    depth = 1
    for piece in pieces:
        tag, _, text = piece.partition(">")
        tag = tag.partition(" ")[0]
        depth += (tag == name) - (tag == "/" + name)
        if not depth:
            return text
    return ""


def _apply(outline: _Outline, role: int, name: str, attributes: str) -> None:
    """Do what one tag of a block, an image or a space asks for."""
    if role == _OPEN:
        outline.open_block(name, attributes)
    elif role == _CLOSE:
        outline.close_block()
    elif role == _IMAGE:
        source = _SOURCE.search(attributes)
        outline.pieces.append(image_target(source[1]) if source else "")
    else:
        outline.pieces.append("\n" if role == _SPACE else " | ")


def _is_hidden(attributes: str) -> bool:
    if "none" not in attributes and "hidden" not in attributes:
        return False
    return _HIDDEN.search(attributes) is not None


def link_target(href: str) -> str:
    """Return the comparable form of a link target; "" for what leads nowhere else.

    >>> link_target("/a;jsessionid=1F?id=3&amp;sid=77#top").strip(TARGET_START + TARGET_END)
    '/a?id=3'
    """
    if "#" in href:
        href = href[: href.index("#")]
    if ";" in href or "?" in href:
        href = _SESSION_PARAMETER.sub("", _SESSION_PATH.sub("", href))
        href = href.removesuffix("&amp;").rstrip("?&")
    if not href or href[:11].lower() == "javascript:":
        return ""
    return f"{TARGET_START}{href}{TARGET_END}"


def image_target(source: str) -> str:
    """Return the comparable form of an image source: its path, or the hash of an inline image."""
    if not source:
        return ""
    if source[:5].lower() == "data:":
        source = f"data:{xxh3_64_intdigest(source.encode('utf-8', 'replace')):x}"
    return f"{TARGET_START}{_SESSION_PATH.sub('', source.partition('?')[0])}{TARGET_END}"


@lru_cache(maxsize=8192)
def _place_step(name: str, attributes: str) -> bytes:
    """Return what one open tag adds to the places below it."""
    if not attributes:
        return name.encode()
    tokens = [token for value in _IDENTITY.findall(attributes[:2048]) for token in value.split()]
    steady = sorted({token for token in tokens if not any(c.isdigit() for c in token)})
    return " ".join([name, *steady]).encode("utf-8", "replace")
