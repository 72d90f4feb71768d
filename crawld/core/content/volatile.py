"""Volatile blocks: parts of a page that change by themselves (dates, counters, advertisements).

If they counted, even an unedited page would "change" every day, and no adaptive policy could work.
A small set of rules is learned, each with its evidence. A rule says which blocks it covers:

    WORDING  blocks of one place whose text, with numbers and dates masked, is one known text:
             their numbers are masked ("Viewed # times"). Nothing else in them is ignored.
    NUMBERS  all blocks of a place without stable blocks: their numbers are masked.
    PLACE    all blocks of such a place: left out (an advertisement in its own container).
    SLOT     at most `run` blocks between two known neighbors: left out (one without container).

`noise_learning` learns the rules and decides when they hold.

Two readings are compared in `cleaned` form under the *same* rules, those known before.

Invariants: a rule is stored in 35 bytes; rules of a page and of its host are joined by `|`, in any
order, with the same result; the digits of a block that no rule covers always count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache, reduce
from math import inf
from operator import or_
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

from crawld.core.value_type import value_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawld.core.content.blocks import Blocks

_NUMBER = re.compile(
    r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b|"
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b|\b[ap]\.?m\b\.?|"
    r"(?<!\w)[^\W\d]*+\d\w*+(?:[.,:/+-]++[^\W\d]*+\d\w*+)*+"
    r"(?:\s++(?:second|minute|hour|day|week|month|year)s?\b)?",
    re.IGNORECASE,
)
# Linear: a number starts only where a word starts, and no possessive run is read a second time.
_DIGIT = re.compile(r"\d")
_UNIT = re.compile(r"\s++(?:second|minute|hour|day|week|month|year)s?\b", re.IGNORECASE)
_AGAIN, _LAST = re.compile(r"[\s,]*+#"), re.compile(r"#[\s,]*+\Z")
_PIECE_CHARACTERS = 16_384
"""A replacement holds the lock of the interpreter to its end: 5 ms for so many characters."""

_NUMBERS = re.compile(r"#(?:[\s,]*+#)++")
_GAP = re.compile(r"[\s,]*+")
MAX_NEIGHBORS = 256
"""Blocks tried as the left neighbor of a slot; a text that occurs more often tells no place."""

EDGE = 1
"""The wording of the neighbor before the first and after the last block."""


class Cover(IntEnum):
    """How a rule finds its blocks; see the top of this module."""

    WORDING = 1
    NUMBERS = 2
    PLACE = 3
    SLOT = 4


@dataclass(frozen=True, slots=True)
class VolatileRule:
    """A rule for volatile blocks, and the evidence for it.

    Attributes:
        cover: how its blocks are found.
        place: place of its blocks; for a slot the place of its left neighbor.
        wording: `wording_hash` of its blocks; for a slot that of its left neighbor.
        right: `wording_hash` of the right neighbor of a slot.
        run: most blocks seen in a slot.
        seen: observations, halved together with `differed` before it exceeds 255.
        differed: observations that differed.
        streak: number of the last observations in a row that differed.
        confirmed: whether the rule applies.
        pages: bit set of hashed keys of the pages whose differences counted.
        change_hash: hash of the last change of its blocks, before and after.
        repeats: number of observations in a row that repeated this change.
        at_once: how often its blocks differed between two readings one host delay apart, in more
            than times and dates.
        stayed: how often they did not.
        only_times: whether nothing but times and dates differed so far.
        falls: whether a later reading showed a lower number (`figures.number_change`).
        low, high: the lowest and the highest of these numbers; `low` > `high`: there was none;
            infinite: something else differed, too.
    """

    cover: Cover
    place: int
    wording: int = 0
    right: int = 0
    run: int = 0
    seen: int = 1
    differed: int = 1
    streak: int = 1
    confirmed: bool = False
    pages: int = 0
    change_hash: int = 0
    repeats: int = 0
    at_once: int = 0
    stayed: int = 0
    only_times: bool = True
    falls: bool = False
    low: float = inf
    high: float = -inf

    @property
    def key(self) -> tuple[int, int, int, int]:
        """Identity of the rule, without its evidence."""
        return (self.cover, self.place, self.wording, self.right)


_COVERS = frozenset(Cover)
_RULE = Struct("<BBIIIBBBBHIBBBff")
_CONFIRMED, _ONLY_TIMES, _FALLS = 1, 2, 4


@value_type
class VolatileRules:
    """Rules learned for one page, or for all pages of a host."""

    rules: tuple[VolatileRule, ...] = ()

    def __or__(self, other: VolatileRules) -> VolatileRules:
        """Return the rules of both; a rule in both is confirmed if either one is."""
        merged = {rule.key: rule for rule in self.rules}
        for rule in other.rules:
            mine = merged.get(rule.key)
            merged[rule.key] = rule if mine is None else _joined(mine, rule)
        return VolatileRules(tuple(merged.values()))

    def confirmed(self) -> VolatileRules:
        """Return only the confirmed rules."""
        return VolatileRules(tuple(rule for rule in self.rules if rule.confirmed))

    def rested(self) -> VolatileRules:
        """Return the rules after a reading in which no block differed, without counting it."""
        return VolatileRules(tuple(replace(rule, streak=0) for rule in self.rules))

    def to_bytes(self) -> bytes:
        """Return the stored form: 35 bytes a rule."""
        return b"".join(
            _RULE.pack(
                *(rule.cover, rule.run, rule.place, rule.wording, rule.right),
                *(rule.seen, rule.differed, rule.streak, _flags(rule), rule.pages),
                *(rule.change_hash, rule.repeats, rule.at_once, rule.stayed),
                *(rule.low, rule.high),
            )
            for rule in self.rules
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> VolatileRules:
        """Read the stored form; bytes that are not a rule of this version are dropped."""
        whole = stored[: len(stored) // _RULE.size * _RULE.size]
        return cls(
            tuple(
                _stored_rule(*fields) for fields in _RULE.iter_unpack(whole) if fields[0] in _COVERS
            )
        )

    @classmethod
    def union(cls, stored: Iterable[bytes]) -> VolatileRules:
        """Read several stored forms, as those of a page and of its host, and return all rules."""
        return reduce(or_, map(cls.from_bytes, stored), cls())


NO_RULES = VolatileRules()


def _stored_rule(
    cover: int, run: int, place: int, wording: int, right: int,
    seen: int, differed: int, streak: int, flags: int, pages: int,
    change_hash: int, repeats: int, at_once: int, stayed: int, low: float, high: float,
) -> VolatileRule:  # fmt: skip
    confirmed, only_times = bool(flags & _CONFIRMED), bool(flags & _ONLY_TIMES)
    return VolatileRule(
        Cover(cover), place, wording, right, run, seen, differed, streak, confirmed, pages,
        change_hash, repeats, at_once, stayed, only_times, bool(flags & _FALLS), low, high,
    )  # fmt: skip


def _flags(rule: VolatileRule) -> int:
    return _CONFIRMED * rule.confirmed | _ONLY_TIMES * rule.only_times | _FALLS * rule.falls


def _joined(a: VolatileRule, b: VolatileRule) -> VolatileRule:
    scale = 2 if a.seen + b.seen > 255 else 1
    return replace(
        a,
        run=max(a.run, b.run),
        seen=(a.seen + b.seen) // scale,
        differed=(a.differed + b.differed) // scale,
        streak=max(a.streak, b.streak),
        confirmed=a.confirmed or b.confirmed,
        pages=a.pages | b.pages,
        repeats=max(a.repeats, b.repeats),
        at_once=min(a.at_once + b.at_once, 255),
        stayed=min(a.stayed + b.stayed, 255),
        only_times=a.only_times and b.only_times,
        falls=a.falls or b.falls,
        low=min(a.low, b.low),
        high=max(a.high, b.high),
    )


def mask(text: str) -> str:
    """Return a text with numbers, dates and tokens with digits replaced by `#`.

    A text without a digit stays as it is: "may" is a month only next to a number.

    >>> mask("Viewed 1,234 times, last on Mon 3 May 2026 at 10:15 (3 minutes ago)")
    'Viewed # times, last on # at # (# ago)'
    """
    if _DIGIT.search(text) is None:
        return text
    if len(text) <= _PIECE_CHARACTERS:
        return _NUMBERS.sub("#", _NUMBER.sub("#", text))
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = _piece_end(text, start)
        piece = _NUMBERS.sub("#", _NUMBER.sub("#", text[start:end]))
        again = _AGAIN.match(piece) if pieces else None
        if again and (last := _LAST.search(pieces[-1])):
            pieces[-1] = pieces[-1][: last.start()]
            piece = piece[again.end() - 1 :]
        pieces.append(piece)
        start = end
    return "".join(pieces)


def number_runs(text: str) -> list[str]:
    """Return what `mask` replaces by one `#` each; only for short texts.

    >>> number_runs("Viewed 1,234 times, last on Mon 3 May 2026 at 10:15")
    ['1,234', 'Mon 3 May 2026', '10:15']
    """
    runs: list[str] = []
    start, end = 0, -1
    for match in _NUMBER.finditer(text) if _DIGIT.search(text) else ():
        if runs and _GAP.fullmatch(text, end, match.start()):
            runs[-1] = text[start : match.end()]
        else:
            start = match.start()
            runs.append(match[0])
        end = match.end()
    return runs


def _piece_end(text: str, start: int) -> int:
    """Return where the next piece of a long text ends: before a word that does not belong to it."""
    end = start + _PIECE_CHARACTERS
    if end >= len(text):
        return len(text)
    at = text.rfind(" ", start + 1, end)
    while at > start and _UNIT.match(text, at):
        at = text.rfind(" ", start + 1, at)
    return at if at > start else end


def wording_hash(text: str) -> int:
    """Return a 32-bit hash of a text's masked form; never 0 or `EDGE`."""
    return _cached_hash(text) if len(text) <= _CACHED_LENGTH else _wording_hash(text)


def _wording_hash(text: str) -> int:
    return crc32(mask(text).encode("utf-8", "replace")) | 2


_CACHED_LENGTH = 512
"""Longer texts are not cached: a cache of texts of any length has no limit in bytes."""

_cached_hash = lru_cache(maxsize=16384)(_wording_hash)


def cleaned(blocks: Blocks, volatile: VolatileRules | None = None) -> str:
    """Return the comparable form of a page: its stable text, one line for each block.

    The rules are those of the page and of its host, joined; only confirmed ones count.
    """
    if volatile is None or not volatile.rules:
        return "\n".join(blocks.texts)
    return "\n".join(stable_blocks(blocks, volatile).texts)


@dataclass(frozen=True, slots=True)
class StableBlocks:
    """The stable part of a page: its blocks without the volatile ones.

    Attributes:
        texts: text of each block kept, with volatile numbers masked.
        indices: indices of these blocks on the page, ascending.
        noisy: indices of the blocks left out or masked.
    """

    texts: tuple[str, ...]
    indices: tuple[int, ...]
    noisy: frozenset[int]


def stable_blocks(blocks: Blocks, volatile: VolatileRules) -> StableBlocks:
    """Return the stable blocks of a page; only confirmed rules count."""
    left_out, masked = _covered(blocks, [rule for rule in volatile.rules if rule.confirmed])
    indices = tuple(index for index in range(len(blocks.texts)) if index not in left_out)
    texts = [
        mask(blocks.texts[index]) if index in masked else blocks.texts[index] for index in indices
    ]
    return StableBlocks(tuple(texts), indices, frozenset(left_out | masked))


def _covered(blocks: Blocks, rules: Iterable[VolatileRule]) -> tuple[set[int], set[int]]:
    """Return the blocks left out, and those with masked numbers."""
    left_out: set[int] = set()
    masked: set[int] = set()
    index = BlockIndex(blocks)
    for rule in rules:
        leaves_out = rule.cover in {Cover.PLACE, Cover.SLOT}
        (left_out if leaves_out else masked).update(index.covered(rule))
    return left_out, masked


class BlockIndex:
    """Finds the blocks of one reading by place and wording; each wording is computed once."""

    __slots__ = ("_by_place", "_by_wording", "_texts", "_wordings")

    def __init__(self, blocks: Blocks) -> None:
        self._texts = blocks.texts
        self._wordings: dict[int, int] = {}
        self._by_place: dict[int, list[int]] = {}
        self._by_wording: dict[int, dict[int, list[int]]] = {}
        for index, place in enumerate(blocks.places):
            self._by_place.setdefault(place, []).append(index)

    def wording(self, index: int) -> int:
        """Return the wording of a block, or `EDGE` outside the page."""
        found = self._wordings.get(index)
        if found is None:
            inside = 0 <= index < len(self._texts)
            found = wording_hash(self._texts[index]) if inside else EDGE
            self._wordings[index] = found
        return found

    def covered(self, rule: VolatileRule) -> list[int]:
        """Return the indices of the blocks that a rule covers."""
        if rule.cover == Cover.SLOT:
            return self._slot(rule)
        if rule.cover == Cover.WORDING:
            return self._worded(rule.place, rule.wording)
        return self._by_place.get(rule.place, [])

    def _worded(self, place: int, wording: int) -> list[int]:
        by_wording = self._by_wording.get(place)
        if by_wording is None:
            by_wording = self._by_wording[place] = {}
            for index in self._by_place.get(place, ()):
                by_wording.setdefault(self.wording(index), []).append(index)
        return by_wording.get(wording, [])

    def _slot(self, rule: VolatileRule) -> list[int]:
        lefts = [-1] if rule.wording == EDGE else self._worded(rule.place, rule.wording)
        for left in lefts[:MAX_NEIGHBORS]:
            for right in range(left + 1, min(left + 2 + rule.run, len(self._texts) + 1)):
                if self.wording(right) == rule.right:
                    return list(range(left + 1, right))
        return []
