"""Visible text of a page as a list of blocks: paragraphs, headings, items, rows.

Lexbor serializes the parsed tree once, and the result is cut at its tags (`tags.block_runs`): that
is several times faster than walking nodes from Python.

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

from crawld.core.content.tags import block_runs, resolve_entities
from crawld.core.content.targets import without_marks, without_targets
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


def blocks_of(tree: LexborHTMLParser, title: str) -> Blocks:
    """Return the blocks of a parsed page, its title first."""
    outline = _Outline()
    if title:
        outline.add("title: " + without_marks(title), 0)
    body = tree.body
    _outline_markup(outline, (body.html if body is not None else None) or "")
    return outline.blocks()


def lines_of(text: str) -> Blocks:
    """Return the non-blank lines of a text without markup, as blocks."""
    lines = [line for raw in without_marks(text).splitlines() if (line := " ".join(raw.split()))]
    if len(lines) > MAX_BLOCKS:
        lines[MAX_BLOCKS - 1 :] = [" ".join(lines[MAX_BLOCKS - 1 :])]
    return Blocks(tuple(lines), (0,) * len(lines))


def escaped(text: str) -> str:
    """Return plain text, white space folded, as it is written in a block."""
    return html.escape(" ".join(without_marks(text).split()), quote=False)


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


def _outline_markup(outline: _Outline, markup: str) -> None:
    """Add the blocks of serialized markup, element by element as they open and close."""
    kind, place = "", 0
    above: list[tuple[str, int]] = []
    for run, opened in block_runs(markup):
        # Most runs between two tags are a line end.
        if run and not run.isspace():
            outline.add_run(run, kind, place)
        if opened is not None:
            above.append((kind, place))
            own_kind, step = _opened(opened[:MAX_TAG_LENGTH])
            kind = own_kind or (_PRE if kind == _PRE else "")
            place = crc32(step, place)
        elif above:
            kind, place = above.pop()


@lru_cache(maxsize=8192)
def _opened(tag: str) -> tuple[str, bytes]:
    """Return the block kind of a start tag, and its contribution to the places below it."""
    name, _, attributes = tag.partition(" ")
    tokens = [token for value in _IDENTITY.findall(attributes) for token in value.split()]
    stable = sorted({token for token in tokens if not any(c.isdigit() for c in token)})
    return _KINDS.get(name, ""), " ".join([name, *stable]).encode("utf-8", "replace")
