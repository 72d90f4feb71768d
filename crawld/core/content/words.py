"""Word-by-word difference between two readings of a page, for display.

Blocks are aligned first (`alignment`). Within differing blocks, words that are unique on both sides
align the texts, and between those the shortest edit is searched. That is quadratic in the number of
edits, so its steps are limited per page; once they are used up, each remaining difference is shown
as one removed and one added piece.

Invariants: the same and removed pieces of a hunk spell its old blocks, the same and added pieces
its new ones, in order; removed comes before added.

Source: Myers 1986, An O(ND) difference algorithm and its variations (the greedy algorithm).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from crawld.core.content.alignment import find_gaps
from crawld.core.content.blocks import Blocks
from crawld.core.content.tags import resolve_entities
from crawld.core.content.targets import TARGET_END, TARGET_START

MAX_STEPS = 100_000
"""Steps of all searches for shortest edits on a page, equal words included: about 50 ms."""

MAX_CHARACTERS = 1_000_000
"""Characters of differing blocks compared word by word, about 2 s; later blocks are whole."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
"""Scripts without spaces between words: each of their characters counts as a word."""

_TOKEN = re.compile(
    f"{TARGET_START}[^{TARGET_START}{TARGET_END}]*{TARGET_END}|[{_CJK}]|[^\\W{_CJK}]+|\\s+|[^\\w\\s]"
)
_TARGET = re.compile(f"{TARGET_START}([^{TARGET_START}{TARGET_END}]*){TARGET_END}")


class Op(StrEnum):
    """Whether a piece of text stayed, was removed or was added."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of words with the same `Op`; a changed link or image target is enclosed in ⟨ ⟩."""

    op: Op
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Consecutive blocks that differ.

    Attributes:
        old_block: index of the first of them in the old reading, from 0.
        new_block: the same in the new one.
        pieces: their text; blocks are separated by a line end.
    """

    old_block: int
    new_block: int
    pieces: tuple[Piece, ...]


TokenEdit = tuple[Op, str]
"""A token and whether it stayed, was removed or was added."""


def word_diff(old: Blocks, new: Blocks, *, max_steps: int = MAX_STEPS) -> list[Hunk]:
    """Return a hunk for each run of differing blocks between two readings of a page, in order."""
    search = EditSearch(max_steps)
    hunks = []
    left = MAX_CHARACTERS
    for i, i_end, j, j_end in find_gaps(old, new):
        before, after = "\n".join(old.texts[i:i_end]), "\n".join(new.texts[j:j_end])
        left -= len(before) + len(after)
        cut = _TOKEN.findall if left >= 0 else _as_one_token
        hunks.append(Hunk(i, j, _pieces(search.edits(cut(before), cut(after)))))
    return hunks


def _as_one_token(text: str) -> list[str]:
    return [text] if text else []


class EditSearch:
    """A search for shortest edits with a limited number of steps."""

    def __init__(self, max_steps: int) -> None:
        """Start with all steps left."""
        self._left = max_steps

    def edits(self, old: Sequence[str], new: Sequence[str]) -> list[TokenEdit]:
        """Return the edits that turn one list of tokens into another."""
        found: list[TokenEdit] = []
        end = 0
        for i, i_end, j, j_end in find_gaps(_as_blocks(old), _as_blocks(new)):
            found += ((Op.SAME, token) for token in old[end:i])
            found += self._shortest(old[i:i_end], new[j:j_end])
            end = i_end
        found += ((Op.SAME, token) for token in old[end:])
        return found

    def _shortest(self, old: Sequence[str], new: Sequence[str]) -> Iterable[TokenEdit]:
        if old and new:
            paths, steps = _furthest(old, new, self._left)
            self._left -= min(steps, self._left)
            if paths:
                return _walk_back(old, new, paths)
        return [*((Op.REMOVED, token) for token in old), *((Op.ADDED, token) for token in new)]


def _as_blocks(tokens: Sequence[str]) -> Blocks:
    return Blocks(tuple(tokens), (0,) * len(tokens))


def _furthest(
    old: Sequence[str], new: Sequence[str], max_steps: int
) -> tuple[list[dict[int, int]], int]:
    """Return how far in `old` each diagonal is reached by 0, 1, 2 … edits, up to the end.

    Returns:
        The paths, none if the end takes more than `max_steps`; and the steps made: a diagonal
        copied or tried, or a token compared.
    """
    reached = {1: 0}
    paths: list[dict[int, int]] = []
    steps = 0
    while steps < max_steps:
        edits = len(paths)
        paths.append(reached.copy())
        for diagonal in range(-edits, edits + 1, 2):
            start = x = _step(reached, diagonal, edits)
            limit = min(len(old), len(new) + diagonal, start + max_steps)
            while x < limit and old[x] == new[x - diagonal]:
                x += 1
            reached[diagonal] = x
            steps += 2 + x - start
            if x >= len(old) and x - diagonal >= len(new):
                return paths, steps
            if steps >= max_steps:
                break
    return [], steps


def _step(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """Return the start on a diagonal: one token added from above, or removed from below."""
    if _adds(reached, diagonal, edits):
        return reached[diagonal + 1]
    return reached[diagonal - 1] + 1


def _adds(reached: dict[int, int], diagonal: int, edits: int) -> bool:
    if diagonal == -edits:
        return True
    return diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1]


def _walk_back(
    old: Sequence[str], new: Sequence[str], paths: list[dict[int, int]]
) -> Iterator[TokenEdit]:
    backwards: list[TokenEdit] = []
    x, y = len(old), len(new)
    for edits in range(len(paths) - 1, -1, -1):
        reached, diagonal = paths[edits], x - y
        adds = _adds(reached, diagonal, edits)
        x_start = _step(reached, diagonal, edits)
        while x > max(x_start, 0) and y > 0 and x - x_start > 0:
            x, y = x - 1, y - 1
            backwards.append((Op.SAME, old[x]))
        if edits:
            if adds:
                y -= 1
                backwards.append((Op.ADDED, new[y]))
            else:
                x -= 1
                backwards.append((Op.REMOVED, old[x]))
    return reversed(backwards)


def _pieces(edits: Sequence[TokenEdit]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for changed, run in groupby(_joined(edits), key=lambda edit: edit[0] is not Op.SAME):
        tokens = list(run)
        for op in (Op.REMOVED, Op.ADDED) if changed else (Op.SAME,):
            text = _shown([token for each, token in tokens if each is op], op)
            if text:
                pieces.append(Piece(op, text))
    return tuple(pieces)


def _joined(edits: Sequence[TokenEdit]) -> Iterator[TokenEdit]:
    """Yield the edits; a space between two changed words counts as changed too."""
    last = len(edits) - 1
    for index, (op, token) in enumerate(edits):
        if op is Op.SAME and token == " " and 0 < index < last:
            around = {edits[index - 1][0], edits[index + 1][0]}
            if Op.SAME not in around:
                yield Op.REMOVED, token
                yield Op.ADDED, token
                continue
        yield op, token


def _shown(tokens: Sequence[str], op: Op) -> str:
    return resolve_entities(_TARGET.sub("" if op is Op.SAME else r"⟨\1⟩", "".join(tokens)))
