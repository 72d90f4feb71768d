"""The text of a change in short: how many words it adds and removes, and its first pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from crawld.core.content.words import Hunk, Op, Piece

MAX_SHOWN_CHARACTERS = 2_000
"""Characters of a change that a message shows."""

CONTEXT_CHARACTERS = 60
"""Characters of unchanged text shown before and after a changed piece."""

MAX_SEARCHED_CHARACTERS = 1_000_000
"""Characters of added text that a rule searches."""

GAP = " … "

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ChangeText:
    """A change in short.

    Attributes:
        words_added: number of words.
        words_removed: number of words.
        pieces: the first pieces, with a little of what is around them, in order.
        is_cut: whether there are more.
        added_text: all that was added, a line per piece, as far as rules search it.
    """

    words_added: int
    words_removed: int
    pieces: tuple[Piece, ...]
    is_cut: bool
    added_text: str

    @property
    def words(self) -> int:
        """Words added and removed."""
        return self.words_added + self.words_removed


def change_text(hunks: Sequence[Hunk]) -> ChangeText:
    """Return the hunks of a page's difference in short."""
    texts: dict[Op, list[str]] = {Op.ADDED: [], Op.REMOVED: []}
    for hunk in hunks:
        for piece in hunk.pieces:
            if piece.op is not Op.SAME:
                texts[piece.op].append(piece.text)
    pieces, is_cut = _cut(_short_pieces(hunks), MAX_SHOWN_CHARACTERS)
    return ChangeText(
        _count_words(texts[Op.ADDED]),
        _count_words(texts[Op.REMOVED]),
        pieces,
        is_cut,
        "\n".join(texts[Op.ADDED])[:MAX_SEARCHED_CHARACTERS],
    )


def _count_words(texts: Iterable[str]) -> int:
    return sum(1 for text in texts for _ in _WORD.finditer(text))


def _short_pieces(hunks: Sequence[Hunk]) -> Iterator[Piece]:
    """Yield the pieces of hunks, with most of the unchanged text left out."""
    for number, hunk in enumerate(hunks):
        if number:
            yield Piece(Op.SAME, "\n")
        last = len(hunk.pieces) - 1
        for index, piece in enumerate(hunk.pieces):
            if piece.op is not Op.SAME:
                yield piece
            elif text := _context(piece.text, is_first=index == 0, is_last=index == last):
                yield Piece(Op.SAME, text)


def _context(text: str, *, is_first: bool, is_last: bool) -> str:
    """Return the ends of an unchanged text that are next to a change."""
    before = "" if is_first else text[:CONTEXT_CHARACTERS]
    after = "" if is_last else text[-CONTEXT_CHARACTERS:]
    if len(text) <= len(before) + len(after):
        return text
    return before + GAP + after


def _cut(pieces: Iterable[Piece], most: int) -> tuple[tuple[Piece, ...], bool]:
    """Return the pieces up to a number of characters, and whether there are more."""
    shown: list[Piece] = []
    for piece in pieces:
        if most <= 0:
            return tuple(shown), True
        if len(piece.text) > most:
            return (*shown, Piece(piece.op, piece.text[:most])), True
        shown.append(piece)
        most -= len(piece.text)
    return tuple(shown), False
