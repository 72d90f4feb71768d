"""How much memory the clones of formatting elements take, at most, found without a tree.

Lexbor clones formatting elements (`a`, `b`, `font` …) with their attributes: those that another tag
closed and no end tag of their own, before the next text (reconstruction), and one or more at an
end tag that is not nested properly (adoption). 19 KB can make clones of 300 MB, 300 KB of 900 MB.

The bound does not model the tree. A formatting element that its own end tag surely takes from the
list of active ones is cloned at most once for each tag between them that may close an element;
most have no such tag between them, and cost nothing. Any other may be cloned at each such tag of
the rest of the page, except that of equal ones three are active at most.

An element is surely taken from the list if its end tag is the next tag of its name, all tags
between end where they seem to (`MarkupScan.hiding`), none of them is one that bounds a search (a
table, a template) and fewer than eight may be special elements (adoption gives up at the eighth).
If such a start tag is real, so is its end tag; if it is not, it costs nothing, and its end tag can
only do harm to an element of its name that stays active.

Source: WHATWG HTML Standard 13.2.4.3 (active formatting elements), 13.2.6.4.7 (adoption agency).

Invariants: linear time; the bound holds for every page, whatever its tags are.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crawld.core.content.markup_scan import (
    CLOSING,
    FIRST_FORMATTING,
    FORMATTING_NAMES,
    MarkupScan,
)
from crawld.core.content.tag_syntax import ATTRIBUTE_NAME, BLANKS, OPEN_TAG
from crawld.core.content.tree_memory import CLONE_BYTES, CLONED_ATTRIBUTE_BYTES, clone_bytes

if TYPE_CHECKING:
    from crawld.core.content.tree_memory import TagScan

_ROUNDS = 8
"""Times that one end tag clones its element, at most: once for each special element within it."""

_CLONED_BETWEEN = 3
"""Other elements that it clones each time, at most."""

_MOST_EQUAL = 3
"""Equal elements that can be active."""

_PER_BYTE = CLONED_ATTRIBUTE_BYTES // 2 + 1
"""Memory of attributes per byte of a tag: the shortest takes two."""

_MAX_READ = 50_000
"""Elements that are looked at one by one; of more, all attributes are taken for short ones."""

_A, _NOBR = (FIRST_FORMATTING + FORMATTING_NAMES.index(name) for name in (b"a", b"nobr"))
_SPECIAL, _HIDING = 2**20, 2**40


_PLAIN_ATTRIBUTES = rb"(?:[ \n]++[a-z-]++=\"[^\"<>]*+\")*+"
_PLAIN_ATTRIBUTE_BYTES = len(b' a=""')

_MOST_WITHIN = _ROUNDS - 1
"""Plain tags within an element that has few clones."""

# A formatting element, its attributes and its `>`, unless its end tag follows after a few plain
# tags. Names in capitals may be others. Each is read for a few parts beyond its own: it is linear.
_UNCLOSED = re.compile(
    rb"<(?=[abcefinstuA-Z])([A-Z][a-zA-Z]*+|a|b(?i:ig)?|c(?i:ode)|e(?i:m)|f(?i:ont)|i|n(?i:obr)|"
    rb"s(?i:mall|tr(?i:ike|ong))?|t(?i:t)|u)(?=[%b/>])(%b)"
    rb"(?!>[^<]*+(?:<(?:/?span|/?div|img|br|(?!/?(?i:\1))/?a)%b[ /]*+>[^<]*+){0,%d}+</\1>)(>?)"
    % (BLANKS, _PLAIN_ATTRIBUTES, _PLAIN_ATTRIBUTES, _MOST_WITHIN)
)


def has_few_clones(scan: TagScan, size: int, budget_bytes: int) -> bool:
    """Return whether the clones of a small page surely take less than a budget.

    It bounds them like `CloneMemory`, but roughly, and in a third of the time.
    """
    tags, weights, names = scan.count, list[int](), set[bytes]()
    for (name, attributes, end), times in Counter(_UNCLOSED.findall(scan.body, 0, size)).items():
        if not end or name.lower() == b"nobr":
            return False  # what is not plain may take any amount
        names.add(name.lower())
        markup_bytes = clone_bytes(len(attributes), attributes.count(b"="))
        weights += [markup_bytes] * min(times, _MOST_EQUAL)
    # Others are cloned once for each tag within them, and adopted as often; there are two for each
    # three tags at most, since a link may be within another element.
    per_byte = 1 + CLONED_ATTRIBUTE_BYTES // _PLAIN_ATTRIBUTE_BYTES
    weights.sort()
    between_bytes = sum(weights[-_CLONED_BETWEEN:])
    left_bytes = budget_bytes - 2 * _MOST_WITHIN * (CLONE_BYTES * tags * 2 // 3 + per_byte * size)
    left_bytes -= tags * (sum(weights) + between_bytes)
    if not weights:
        return left_bytes >= 0
    adopted_bytes = _ROUNDS * sum(weights[-1 - _CLONED_BETWEEN :])
    if left_bytes >= tags * adopted_bytes:
        return True
    # Only the tags of these names adopt more.
    text = scan.body[:size].lower()
    named = sum(text.count(b"<" + name) + text.count(b"</" + name) for name in names)
    return left_bytes >= named * adopted_bytes


class CloneMemory:
    """The memory that the clones of a page take, at most.

    Attributes:
        kept_bytes: bytes of the start tags whose elements may be cloned, links excepted.
    """

    def __init__(self, scan: MarkupScan) -> None:
        self._scan = scan
        self._count()
        self._pair()

    def _count(self) -> None:
        """Count, before each tag, those that may close an element, special ones and hiding ones."""
        kinds, closing = self._scan.kinds, self._scan.closing
        special = (kinds == CLOSING) & ~closing
        self._closes = closing | special | self._scan.hiding | (kinds == _A) | (kinds == _NOBR)
        counts = self._closes + special * np.int64(_SPECIAL) + self._scan.hiding * np.int64(_HIDING)
        self._counts = np.zeros(kinds.size + 1, dtype=np.int64)
        np.cumsum(counts, out=self._counts[1:])

    def _pair(self) -> None:
        """Find the elements that may be cloned: while they are open, or from then on."""
        scan, counts = self._scan, self._counts
        tags = np.flatnonzero(scan.kinds >= FIRST_FORMATTING)
        kinds = scan.kinds[tags]
        # The tags of each name in their order, so that the next is the next of its name.
        order = np.argsort(kinds, kind="stable")
        tags, kinds = tags[order], kinds[order]
        opens = ~scan.closing[tags]
        ends = np.roll(tags, -1)
        taken = np.zeros(tags.size, dtype=np.bool_)
        taken[:-1] = opens[:-1] & ~opens[1:] & (kinds[:-1] == kinds[1:])
        between = np.where(taken, counts[ends] - counts[tags], 0)
        taken &= ~scan.hiding[ends] & (between < _ROUNDS * _SPECIAL)
        # A link counts itself as a tag that closes.
        cloned = taken & ((between & (_SPECIAL - 1)) > self._closes[tags])
        self._cloned, self._cloned_ends = tags[cloned], ends[cloned]
        kept = np.sort(tags[opens & ~taken])
        self._kept = kept
        self._named, self._name_kinds = tags, kinds
        self._specials = np.minimum(between[cloned] >> 20, _ROUNDS)
        others = np.concatenate((kept, self._cloned))
        others = others[scan.kinds[others] != _A]
        self.kept_bytes = int(np.sum(scan.ends[others] - scan.starts[others]))

    def exceeds(self, budget_bytes: int) -> bool:
        """Return whether the clones may take more."""
        if not self._kept.size and not self._cloned.size:
            return False
        return float(np.sum(self._rough_charges())) > budget_bytes and self._sums[-1] > budget_bytes

    @property
    def total_bytes(self) -> int:
        """The memory of all clones, at most."""
        return int(self._sums[-1]) if self._sums.size else 0

    def limit(self, start: int, budget_bytes: int) -> int:
        """Return the offset of the tag whose clones, with those from `start` on, exceed a budget.

        It is the size of the page if none does.
        """
        starts, sums = self._scan.starts, self._sums
        first = np.searchsorted(starts, start)
        before = sums[first - 1] if first else 0
        found = int(np.searchsorted(sums, before + budget_bytes, "right"))
        return int(starts[found]) if found < starts.size else self._scan.size

    @cached_property
    def _sums(self) -> np.ndarray:
        """The memory of the clones up to each tag, its own included."""
        if self._cloned.size + self._kept.size > _MAX_READ:
            return np.cumsum(self._rough_charges())
        return np.cumsum(self._charges(self._bytes(self._cloned), self._kept_bytes()))

    def _rough_charges(self) -> np.ndarray:
        return self._charges(self._rough_bytes(self._cloned), self._rough_bytes(self._kept))

    def _rough_bytes(self, tags: np.ndarray) -> np.ndarray:
        """Return what a clone of each takes, if all its attributes are as short as can be."""
        scan = self._scan
        lengths = np.where(scan.odd[tags], scan.size, scan.ends[tags] - scan.starts[tags])
        rough: np.ndarray = CLONE_BYTES + _PER_BYTE * lengths
        return rough

    def _bytes(self, tags: np.ndarray) -> np.ndarray:
        """Return what a clone of each takes, for tags that surely end in their parts."""
        spans = zip(self._scan.starts[tags].tolist(), self._scan.ends[tags].tolist(), strict=True)
        body = self._scan.body
        return np.array([_memory_of(body[start:end]) for start, end in spans], dtype=np.int64)

    def _kept_bytes(self) -> np.ndarray:
        """Return what each kept element adds; the fourth of equal ones adds nothing."""
        found, equal, read = list[int](), Counter[bytes](), 0
        scan, tags = self._scan, self._kept
        spans = zip(
            *(each[tags].tolist() for each in (scan.starts, scan.ends, scan.odd)), strict=True
        )
        for start, end, is_odd in spans:
            if not is_odd:
                markup = scan.body[start:end]
                equal[markup] += 1
                found.append(_memory_of(markup) if equal[markup] <= _MOST_EQUAL else 0)
                continue
            # Of tags within one another each may be real; each byte is read once only.
            whole = OPEN_TAG.match(scan.body, start, scan.size) if start >= read else None
            if whole is None:
                found.append(CLONE_BYTES + _PER_BYTE * (scan.size - start))
            else:
                read = whole.end()
                found.append(_memory_of(whole[0]))
        return np.array(found, dtype=np.int64)

    def _charges(self, cloned_bytes: np.ndarray, kept_bytes: np.ndarray) -> np.ndarray:
        """Return the memory of the clones that each tag may make."""
        tags = self._closes.size
        active = np.zeros(tags + 1)
        active += np.bincount(self._cloned + 1, cloned_bytes, tags + 1)
        active -= np.bincount(self._cloned_ends, cloned_bytes, tags + 1)
        active += np.bincount(self._kept + 1, kept_bytes, tags + 1)
        charges: np.ndarray = np.cumsum(active[:-1]) * self._closes
        if (self._name_kinds == _NOBR).any():
            charges *= 2  # it clones, closes another, and clones again
        self._add_adopted(charges, cloned_bytes, kept_bytes)
        return charges

    def _add_adopted(
        self, charges: np.ndarray, cloned_bytes: np.ndarray, kept_bytes: np.ndarray
    ) -> None:
        """Add the clones that end tags make; those of no kept element make them for their own."""
        largest = np.sort(np.concatenate((cloned_bytes, kept_bytes)))[::-1]
        others = float(np.sum(largest[:_CLONED_BETWEEN]))
        charges[self._cloned_ends] += self._specials * (cloned_bytes + others)
        rounds = min(_ROUNDS, int(self._counts[-1] >> 20) & (_SPECIAL - 1))
        for kind in set(self._scan.kinds[self._kept].tolist()):
            named = self._named[self._name_kinds == kind]
            first = self._kept[np.argmax(self._scan.kinds[self._kept] == kind)]
            charges[named[named > first]] += rounds * np.sum(largest[: _CLONED_BETWEEN + 1])


def _memory_of(markup: bytes) -> int:
    """Return the memory of a clone; the name of the tag counts as an attribute."""
    return clone_bytes(len(markup), len(ATTRIBUTE_NAME.findall(markup)))
