"""How many bytes of text Lexbor copies while it builds a tree.

A text after a tag that makes no element (`</q a=b>`, or `<td a=b>` outside of a table) is appended
to the text before the tag. If something took memory in between, the whole text is copied to a new
place, and the old place is lost: 170 KB of `</q a=b>x` took 30 MB, a megabyte 1.2 GB. Text in a
table outside of its cells is appended to the text before the table, whatever lies between.

`TextMerging` follows the tags of a page and adds up these copies, more rather than fewer.
`may_merge_much` finds the pages for which that is necessary.
"""

from __future__ import annotations

import re
from itertools import islice, product
from typing import Final

import numpy as np

from crawld.core.content.open_elements import SINGLE, OpenElements
from crawld.core.content.tag_syntax import RAW
from crawld.core.content.tree_memory import TagScan

MAX_COPIED_BYTES: Final = 16 * 2**20
"""Bytes of text that may be copied: of a thousand manuals, the largest copies half a megabyte."""

SMALL_BYTES: Final = 2**15
"""Smaller pages copy 4 MB at most."""

_CELLS: Final = frozenset({b"td", b"th", b"caption"})
_IGNORED: Final = (
    SINGLE | _CELLS | frozenset(b"col colgroup form frame frameset tbody tfoot thead tr".split())
)
"""Start tags that may make no element."""

_IN_SELECT: Final = frozenset({b"option", b"optgroup"})
_ENDS_SELECT: Final = frozenset({b"select", b"input", b"textarea", b"keygen"})


class TextMerging:
    """Adds up the bytes of text that are copied.

    Attributes:
        copied_bytes: so many so far, at most.
    """

    __slots__ = (
        "_fostered",
        "_is_split",
        "_open",
        "_run",
        "_select",
        "_was_fostered",
        "copied_bytes",
    )

    def __init__(self, found: OpenElements) -> None:
        """Begin with an empty page; `found` follows its elements."""
        self._open = found
        self.copied_bytes = 0
        self._run = 0  # bytes of the text that the next one may be appended to
        self._fostered = 0  # the same of a text that is moved before a table
        self._is_split = False
        self._was_fostered = False
        self._select: bool | None = None  # open: whether its end tag surely closes it

    def add_text(self, size: int, *, is_blank: bool) -> None:
        """Add a text between two tags."""
        certain, fosters = self._open.certain, not is_blank and self._open.fosters()
        before = self._fostered if fosters else self._run
        if not certain:
            before = max(self._fostered, self._run)
        if self._is_split or fosters is not self._was_fostered:
            self.copied_bytes += before
        if fosters or not certain:
            self._fostered += size
        if not fosters or not certain:
            self._run += size
        self._is_split, self._was_fostered = False, fosters

    def add_start(self, name: bytes) -> None:
        """Add a start tag."""
        self._is_split = True
        if self._select is not None:
            if name in _IN_SELECT:
                self._run = 0
            if name in RAW:
                self._select = False
            if name in _ENDS_SELECT and self._select:
                self._select = None
            return
        if name == b"select":
            self._select = True
        elif name == b"table":
            self._fostered += self._run
        elif name in _IGNORED and not (name in _CELLS and self._open.has_table()):
            return
        self._run = 0

    def add_end(self, name: bytes, attributes: bytes) -> None:
        """Add an end tag."""
        if b"=" in attributes or name in (b"p", b"br"):
            self._is_split = True
        if name == b"select" and self._select:
            self._select = None

    def add_comment(self) -> None:
        """Add a comment, or what is read as one."""
        self._is_split = True
        if self._open.certain:
            self._run = 0


_MAYBE_IGNORED, _TABLE, _SELECT, _SELECT_END, _RAW_TEXT, _BETWEEN_CELLS = 1, 2, 4, 8, 16, 32


_BETWEEN: Final = frozenset(
    b"table tr tbody thead tfoot col colgroup input script style template form !-- /tr /td /th "
    b"/tbody /thead /tfoot /col /colgroup /script /style /template /form".split()
)


def _kind_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the kinds of a tag by the three bytes after its sign.

    They are a row for each pair of first bytes, and the kinds in each row by the third byte: one
    table of 2**24 takes 6 MB, in a thousand places.
    """
    rows: dict[int, np.ndarray] = {}
    kinds = ((_MAYBE_IGNORED, _IGNORED), (_TABLE, {b"table"}), (_SELECT, {b"select"}))
    ends = ((_SELECT_END, {b"/select"}), (_RAW_TEXT, RAW), (_BETWEEN_CELLS, _BETWEEN))
    for kind, names in (*kinds, *ends):
        for name in names:
            letters = [{each, each ^ 32} if chr(each).isalpha() else {each} for each in name[:3]]
            first, second, third = (*letters, set(b" \t\n\r\f/>"))[:3]
            for high, middle, low in product(first, second, third):
                rows.setdefault(high << 8 | middle, np.zeros(256, dtype=np.uint8))[low] |= kind
    row_of = np.zeros(2**16, dtype=np.uint16)
    row_of[list(rows)] = range(1, len(rows) + 1)
    return row_of, np.array([np.zeros(256, dtype=np.uint8), *rows.values()])


_ROW_OF, _KINDS = _kind_tables()
_VALUE_IN_IGNORED: Final = re.compile(
    rb"<(?:t[dhr]|tbody|tfoot|thead|caption|col|form|frame|html|head|body)[^>=]*+=", re.IGNORECASE
)
_VALUE_IN_END: Final = re.compile(rb"</[a-zA-Z][^>=]*+=")
_FOSTERED_TEXT: Final = re.compile(
    rb"<(?:/?(?:t(?:r|body|head|foot)|col|script|style|template|form)|/t[dh]|table|input|!--)"
    rb"[^>]*+>[ \t\n\r\f]*+[^< \t\n\r\f]",
    re.IGNORECASE,
)
"""Text that follows what may stand between the rows of a table."""


def _kinds_of(words: np.ndarray) -> np.ndarray:
    """Return the kinds of tags, from `TagScan.words`."""
    found: np.ndarray = _KINDS[_ROW_OF[words >> 8 & 0xFFFF], words & 0xFF]
    return found


def may_merge_much(scan: TagScan, size: int) -> bool:
    """Whether a page may copy more text than `MAX_COPIED_BYTES`: then its tags must be followed.

    Most pages have too few tags that may make no element, and no end tag with attributes.
    """
    if size <= SMALL_BYTES:
        return False
    if _VALUE_IN_END.search(scan.body, 0, size):
        return True
    kinds = _kinds_of(scan.words)
    most = MAX_COPIED_BYTES // 2
    few = most // size
    ignored = int(np.count_nonzero(kinds & _MAYBE_IGNORED))
    if ignored > few and _has_more(_VALUE_IN_IGNORED, scan.body, size, few):
        return True
    if _copied_in_selects(scan, kinds, size) > most:
        return True
    if not (kinds & _TABLE).any() or np.count_nonzero(kinds & _BETWEEN_CELLS) <= few:
        return False
    return _has_more(_FOSTERED_TEXT, scan.body, size, few)


def _has_more(pattern: re.Pattern[bytes], body: bytes, size: int, few: int) -> bool:
    found = islice(pattern.finditer(body, 0, size), few + 1)
    return sum(1 for _ in found) > few


def _copied_in_selects(scan: TagScan, kinds: np.ndarray, size: int) -> int:
    """Return how many bytes of text may be copied within select elements."""
    copied = 0
    ends = np.flatnonzero(kinds & _SELECT_END)
    for first in np.flatnonzero(kinds & _SELECT).tolist():
        place = int(np.searchsorted(ends, first))
        last = int(ends[place]) if place < ends.size else kinds.size
        if (kinds[first:last] & _RAW_TEXT).any():
            last = kinds.size
        end = int(scan.starts[last]) if last < kinds.size else size
        copied += (last - first) * (end - int(scan.starts[first]))
        if copied > MAX_COPIED_BYTES:
            break
    return copied
