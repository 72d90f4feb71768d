"""The tags of a page, as arrays: what each is called, and whether it surely ends where it seems to.

Every tag that Lexbor reads begins at a `<`. Some `<` begin no tag, as in comments, scripts and
quotes; to tell them apart takes a tokenizer. So these arrays describe every `<`, up to the next one
(its part), and tell what holds if a tag begins there.

Invariants: linear time; one pass of numpy for each property.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crawld.core.content.open_elements import (
    CLOSING_STARTS,
    FORMATTING,
    HEADINGS,
    WALLS,
)
from crawld.core.content.tag_syntax import RAW, WHOLE_TAG

if TYPE_CHECKING:
    from crawld.core.content.tree_memory import TagScan

NEUTRAL, WALL, RAW_TEXT, CLOSING, ROOT, FIRST_FORMATTING = range(6)
"""Kinds of names: what closes no formatting element and hides no tag; what may ignore tags, or
bounds what an end tag closes; what has raw text; what is special or may close others; `html` and
`body`; and one kind for each formatting element from here on."""

FORMATTING_NAMES = tuple(sorted(FORMATTING))

_PADDING = 16
_NAME_BYTES = 8

_BLANKS = b"\t\n\f\r "
_ONES, _HIGHS, _SPACES = (np.uint64(byte * 0x0101010101010101) for byte in (0x01, 0x80, ord(" ")))


def _kinds() -> dict[bytes, int]:
    kinds = dict.fromkeys(CLOSING_STARTS | HEADINGS, CLOSING)
    kinds |= dict.fromkeys(WALLS, WALL)
    kinds |= dict.fromkeys(RAW - {b"textarea", b"noframes"}, RAW_TEXT)
    kinds |= dict.fromkeys((b"html", b"body"), ROOT)
    kinds |= {name: FIRST_FORMATTING + at for at, name in enumerate(FORMATTING_NAMES)}
    return kinds


def _letters() -> np.ndarray:
    """Return each byte in lower case, and what ends a name as a space."""
    table = np.arange(256, dtype=np.uint8)
    table[65:91] += 32
    table[:32] = 0x7F
    table[[*_BLANKS, *b"/>"]] = ord(" ")
    return table


class _Names:
    """Finds the kind of a name in a table, by its first eight bytes and one multiplication."""

    _BITS = 11

    def __init__(self, kinds: dict[bytes, int]) -> None:
        words = np.frombuffer(
            b"".join(name[:_NAME_BYTES].ljust(_NAME_BYTES, b" ") for name in kinds), dtype="<u8"
        )
        words = words ^ _SPACES
        factor = 0x9E3779B97F4A7C15
        while len(set(self._slots(words, factor).tolist())) < words.size:
            factor = (factor * 0xD1342543DE82EF95 + 2) % 2**64 | 1
        self._factor = factor
        self._words = np.full(2**self._BITS, 2**64 - 1, dtype=np.uint64)
        self._values = np.zeros(2**self._BITS, dtype=np.uint8)
        slots = self._slots(words, factor)
        self._words[slots] = words
        self._values[slots] = list(kinds.values())

    def _slots(self, words: np.ndarray, factor: int) -> np.ndarray:
        found: np.ndarray = (words * np.uint64(factor)) >> np.uint64(64 - self._BITS)
        return found

    def kinds(self, words: np.ndarray) -> np.ndarray:
        """Return the kind of each name; names end with zero bytes."""
        slots = self._slots(words, self._factor)
        found: np.ndarray = self._values[slots] * (self._words[slots] == words)
        return found


_LETTERS = _letters()
_NAMES = _Names(_kinds())
_BEFORE_VALUE = np.zeros(256, dtype=np.uint8)
_BEFORE_VALUE[ord("=")] = 2
_BEFORE_VALUE[[*_BLANKS]] = 1


class MarkupScan:
    """Every `<` of the leading bytes of a page.

    Attributes:
        size: how many bytes.
        starts: offset of each `<`.
        ends: offset of the first `>` after each, the size if there is none.
        kinds: the kind of each name; `NEUTRAL` if no tag begins there.
        closing: whether each begins an end tag.
        is_tag: whether a name follows.
        odd: whether a tag that begins there may end in a later part.
        hiding: whether a later `<` may begin no tag because of this one, or a tag may be ignored.
    """

    def __init__(self, scan: TagScan, size: int) -> None:
        self.body, self.size = scan.body, size
        self._text = np.zeros(size + _PADDING, dtype=np.uint8)
        self._text[:size] = scan.text[:size]
        self.starts = scan.starts
        if size < scan.size:
            self.starts = self.starts[: np.searchsorted(self.starts, size)]
        ends = np.flatnonzero(self._text == ord(">"))
        self.ends = np.append(ends, self.size)[np.searchsorted(ends, self.starts)]
        self._read_names()
        self._find_odd()

    def _read_names(self) -> None:
        text, starts = self._text, self.starts
        first, second = text[starts + 1], text[starts + 2]
        self.closing = first == ord("/")
        words = np.ndarray(shape=(text.size - 7,), dtype="<u8", buffer=text, strides=(1,))[
            starts + 1 + self.closing
        ]
        words = _LETTERS.take(words.view(np.uint8)).view("<u8") ^ _SPACES
        # The lowest zero byte is where the name ends; what follows it is cut off.
        zeros = (words - _ONES) & ~words & _HIGHS
        self._words = words & ((zeros & (~zeros + np.uint64(1))) - np.uint64(1))
        letter = (np.where(self.closing, second, first) | 32) - ord("a") < 26
        self.kinds = _NAMES.kinds(self._words) * letter
        markup = self.closing | (first == ord("!")) | (first == ord("?"))
        self.is_tag = letter
        self.hiding = (markup & ~letter) | (self.kinds == WALL) | (self.kinds == ROOT)
        if (self.kinds == RAW_TEXT).any():
            self._find_raw_text()
        if (first == ord("!")).any():
            self._find_comments(np.flatnonzero(first == ord("!")))

    def _find_raw_text(self) -> None:
        """Find raw text with a `<` in it, and what may be its end."""
        raw = self.kinds == RAW_TEXT
        whole = raw[:-1] & ~self.closing[:-1] & self.closing[1:]
        whole &= self._words[:-1] == self._words[1:]
        hiding = raw.copy()
        hiding[:-1] &= ~whole
        hiding[1:] &= ~whole
        self.hiding |= hiding

    def _find_comments(self, tags: np.ndarray) -> None:
        """Find comments without a `<` or an earlier `>` in them, which hide nothing."""
        text, starts, ends = self._text, self.starts[tags], self.ends[tags]
        whole = ends < np.append(self.starts, self.size)[tags + 1]
        whole &= ends - starts >= len("<!---->") - 1
        for place in (starts + 2, starts + 3, ends - 1, ends - 2):
            whole &= text[place] == ord("-")
        self.hiding[tags[whole]] = False

    def _find_odd(self) -> None:
        """Find parts that may end within quotes.

        Within a double-quoted value, the last such quote is the one that begins it, so that an
        equals sign is before it.
        """
        text, starts = self._text, self.starts
        nexts = np.append(starts[1:], self.size)
        odd = self.is_tag & (self.ends >= nexts)
        for quote in b"\"'":
            places = np.flatnonzero(text == quote)
            if not places.size:
                continue
            before = _BEFORE_VALUE[text[places - 1]]
            begins = (before == 2) | ((before == 1) & (_BEFORE_VALUE[text[places - 2]] > 0))
            last = np.searchsorted(places, self.ends) - 1
            odd |= self.is_tag & begins[last] & (places[last] > starts) & (last >= 0)
        for at in np.flatnonzero(odd & ~self.hiding).tolist():
            found = WHOLE_TAG.match(self.body, int(starts[at]), int(nexts[at]))
            if found is not None:
                odd[at] = False
                self.ends[at] = found.end() - 1
        self.odd = odd
        self.hiding |= odd

    @cached_property
    def roots(self) -> int:
        """How many tags may begin an `html` or `body` element."""
        return int(np.count_nonzero((self.kinds == ROOT) & ~self.closing))
