"""Visible text of a page as a list of blocks: paragraphs, headings, items, rows.

Lexbor serializes the parsed tree once, and the result is cut at its tags (`tags.split_markup`):
that is several times faster than walking nodes from Python.

Included: visible text; the level of headings, items, rows, preformatted lines and quotes; targets
of links (without session ids, tokens and fragments) and sources of images (without their query,
which only defeats caches). A changed target or image is therefore a real edit. Table cells are part
of their row, which keeps numbers with the words they belong to. `aria-hidden` content is visible
and stays.
Excluded: comments, scripts, styles, templates, noscript, embedded content, form field values (they
hold CSRF tokens and nonces), all other attributes, and what `hidden` or an inline style (`display:
none`, `visibility: hidden`) hides.

Each block has a *place*: a 32-bit hash chain of tag names, ids and classes from the body down.
Tokens with digits and the order of elements are ignored, so that places survive renumbering and
insertions.

Invariants: order is document order; no block is empty; no recursion; a body without markup is cut
into lines.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from xxhash import xxh3_64_intdigest

from crawld.core.content.tags import (
    TARGET_END,
    TARGET_START,
    Mark,
    resolve_entities,
    split_markup,
    without_targets,
)
from crawld.core.value_type import value_type

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from selectolax.lexbor import LexborHTMLParser

MAX_TAG_LENGTH = 2048
"""Characters read of one tag; a cache of tags of any length has no limit in bytes."""

MAX_BLOCKS = 50_000
"""Blocks of one page; the rest is joined to the last of them."""


@value_type
class Blocks:
    """The blocks of one page, as columns of equal length.

    Attributes:
        texts: comparable text of each block: its kind, its words, and link and image targets
            between `TARGET_START` and `TARGET_END` where they occur. `&`, `<`, `>` are escaped.
        places: structural position of each block.
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
        """Return the visible text, one line for each block."""
        return resolve_entities(without_targets("\n".join(self.texts)))


_PRE = "pre: "
_KINDS = {f"h{level}": f"h{level}: " for level in range(1, 7)} | {
    **dict.fromkeys(("li", "dt", "dd", "option"), "* "),
    "tr": "| ",
    "pre": _PRE,
    "blockquote": "> ",
}
# The markup is Lexbor's own: every value is quoted, so each quote is closed and read once.
_IDENTITY = re.compile(r'(?:^| )(?:id|class)="([^"]*)"')
# A page has a thousand marks: the names of the module are the fastest to look up.
_OPEN, _CLOSE, _IMAGE = Mark.OPEN, Mark.CLOSE, Mark.IMAGE
_SOURCE = re.compile(r' src="([^"]*)"')
_HREF = re.compile(r' href="([^"]*)"')
_SESSION_PATH = re.compile(
    r"(?<!&amp);(?:jsessionid|phpsessid|sid|sessionid)=[^?#]*", re.IGNORECASE
)
_PARAMETER = re.compile(r"(?<=[?&;])([\w.-]++)=")
_VALUE_END = re.compile(r"[&#]|$")
_TOKEN_VALUE = re.compile(r"[0-9a-f]{24,}+(?=[&#]|$)", re.IGNORECASE)
_SESSION_NAMES = frozenset(
    {
        *("phpsessid", "jsessionid", "sid", "sessionid", "session_id", "token", "stoken"),
        *("authenticity_token", "gclid", "fbclid", "_", "ts", "timestamp", "cb", "cachebuster"),
        *("rnd", "rand", "random"),
    }
)


def blocks_of(tree: LexborHTMLParser, title: str) -> Blocks:
    """Return the blocks of a parsed page, its title first."""
    outline = _Outline()
    if title:
        outline.add("title: " + _without_marks(title), 0)
    body = tree.body
    _outline_markup(outline, (body.html if body is not None else None) or "")
    return outline.blocks()


def lines_of(text: str) -> Blocks:
    """Return the non-blank lines of a text without markup, as blocks."""
    lines = [line for raw in _without_marks(text).splitlines() if (line := " ".join(raw.split()))]
    if len(lines) > MAX_BLOCKS:
        lines[MAX_BLOCKS - 1 :] = [" ".join(lines[MAX_BLOCKS - 1 :])]
    return Blocks(tuple(lines), (0,) * len(lines))


def escaped(text: str) -> str:
    """Return plain text, white space folded, as it is written in a block."""
    return html.escape(" ".join(_without_marks(text).split()), quote=False)


def plain_blocks(lines: Iterable[tuple[str, str]]) -> Blocks:
    """Return the blocks of a document without markup.

    Args:
        lines: text of each block, `escaped`, and the name of its place in the document.
    """
    outline = _Outline()
    for text, place in lines:
        if text:
            outline.add(text, crc32(place.encode("utf-8", "replace")))
    return outline.blocks()


class _Outline:
    """Collects at most `MAX_BLOCKS` blocks."""

    __slots__ = ("_places", "_rest", "_texts")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._places: list[int] = []
        self._rest: list[str] = []

    def add(self, text: str, place: int) -> None:
        if len(self._texts) < MAX_BLOCKS:
            self._texts.append(text)
            self._places.append(place)
        else:
            self._rest.append(text)

    def add_run(self, run: str, kind: str, place: int) -> None:
        """Add the text between two marks; preformatted text is a block a line."""
        run = run.replace("&nbsp;", " ").strip()
        # Each line of preformatted text is a block.
        for line in run.split("\n") if kind == _PRE else (run,):
            text = line
            if "\n" in line or "  " in line or "\t" in line:
                text = " ".join(line.split())
            if text := text.strip("| "):
                self.add(kind + text, place)

    def blocks(self) -> Blocks:
        if self._rest:
            self._texts[-1] = " ".join([self._texts[-1], *self._rest])
        return Blocks(tuple(self._texts), tuple(self._places))


def _without_marks(text: str) -> str:
    """Return a text without the characters that enclose targets: a page cannot forge one."""
    if TARGET_START in text or TARGET_END in text:
        return text.replace(TARGET_START, "").replace(TARGET_END, "")
    return text


def _outline_markup(outline: _Outline, markup: str) -> None:
    """Add the blocks of serialized markup, element by element as they open and close."""
    found = split_markup(_without_marks(markup))
    texts, tags = iter(found.texts), iter(found.tags)
    run = next(texts)
    kind, place = "", 0
    above: list[tuple[str, int]] = []
    for mark, text in zip(found.marks, texts, strict=True):
        if mark > _CLOSE:
            source = _SOURCE.search(next(tags)) if mark == _IMAGE else _HREF.search(next(tags))
            if source:
                run += image_target(source[1]) if mark == _IMAGE else link_target(source[1])
            run += text
            continue
        # Most runs between two tags are a line end.
        if run and not run.isspace():
            outline.add_run(run, kind, place)
        run = text
        if mark == _OPEN:
            above.append((kind, place))
            opened, step = _opened(next(tags)[:MAX_TAG_LENGTH])
            kind = opened or (_PRE if kind == _PRE else "")
            place = crc32(step, place)
        elif above:
            kind, place = above.pop()
    if run and not run.isspace():
        outline.add_run(run, kind, place)


def link_target(href: str) -> str:
    """Return the comparable form of a link target; "" for a script or a link within the page.

    >>> link_target("/a;jsessionid=1F?id=3&amp;sid=77#top").strip(TARGET_START + TARGET_END)
    '/a?id=3'
    """
    if "#" in href:
        href = href[: href.index("#")]
    if ";" in href or "?" in href:
        href = _without_session_parameters(_SESSION_PATH.sub("", href))
        href = href.removesuffix("&amp;").rstrip("?&")
    if not href or href[:11].lower() == "javascript:":
        return ""
    return f"{TARGET_START}{href}{TARGET_END}"


def _without_session_parameters(href: str) -> str:
    """Return a target without its session ids and tokens; each character is read at most twice."""
    kept: list[str] = []
    start = end = 0
    while match := _PARAMETER.search(href, end):
        end = match.end()
        if _is_session_name(match[1].lower()) or _TOKEN_VALUE.match(href, end):
            kept.append(href[start : match.start()])
            found = _VALUE_END.search(href, end)
            end = len(href) if found is None else found.start()
            if href.startswith("&", end):
                end += 5 if href.startswith("&amp;", end) else 1
            start = end
    return "".join([*kept, href[start:]]) if kept else href


def _is_session_name(name: str) -> bool:
    if name in _SESSION_NAMES:
        return True
    telling = "csrf" in name or name.endswith("nonce") or (name.startswith("utm_") and name[4:])
    return bool(telling) and not ("." in name or "-" in name)


def image_target(source: str) -> str:
    """Return the comparable form of an image source: its path, or the hash of an inline image."""
    if not source:
        return ""
    if source[:5].lower() == "data:":
        source = f"data:{xxh3_64_intdigest(source.encode('utf-8', 'replace')):x}"
    return f"{TARGET_START}{_SESSION_PATH.sub('', source.partition('?')[0])}{TARGET_END}"


@lru_cache(maxsize=8192)
def _opened(tag: str) -> tuple[str, bytes]:
    """Return the block kind of a start tag, and its contribution to the places below it."""
    name, _, attributes = tag.partition(" ")
    tokens = [token for value in _IDENTITY.findall(attributes) for token in value.split()]
    stable = sorted({token for token in tokens if not any(c.isdigit() for c in token)})
    return _KINDS.get(name, ""), " ".join([name, *stable]).encode("utf-8", "replace")
