"""The text of a page at each revision.

A text is blocks of sentences and a few numeric facts. Revision r is revision 0 with r edits
applied, each of one kind, drawn by (seed, page, r). So any revision can be rebuilt by replay, and
the next one costs microseconds. Every edit changes the visible text.

Invariant: the number of sentences stays between half and twice its initial value; an edit that
would leave that range becomes its opposite, and `kinds` records what was actually done.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crawld.simweb.graph import VOCABULARY
from crawld.simweb.stateless_random import draw, mix, uniform

SENTENCES_PER_BLOCK = 5
FACTS = 6
MEAN_SENTENCE_BYTES = 87  # measured, including its share of paragraph tags and headings


class EditKind(StrEnum):
    """What one edit does to the visible text."""

    REWRITE = "rewrite"
    INSERTION = "insertion"
    DIGITS = "digits"
    DELETION = "deletion"


@dataclass(frozen=True, slots=True)
class EditMix:
    """Shares of the kinds of edits; the remaining edits rewrite a sentence."""

    insertion: float = 0.2
    digits: float = 0.15
    deletion: float = 0.1

    def __post_init__(self) -> None:
        shares = (self.insertion, self.digits, self.deletion)
        if min(shares) < 0 or sum(shares) > 1:
            raise ValueError("edit shares must not be negative or exceed 1 in sum")

    def kind(self, selector: float) -> EditKind:
        """Return the kind that a uniform number in (0, 1) selects."""
        if selector < self.digits:
            return EditKind.DIGITS
        if selector < self.digits + self.deletion:
            return EditKind.DELETION
        if selector < self.digits + self.deletion + self.insertion:
            return EditKind.INSERTION
        return EditKind.REWRITE


USUAL_EDITS = EditMix()


def make_sentence(*keys: int) -> str:
    """Return a sentence of 8 to 16 words, drawn by the keys; some words are more frequent."""
    base = draw(*keys)
    words = []
    for k in range(8 + base % 9):
        if k % 3 == 0:
            bits = mix(base + k)
        # The product of two uniform numbers favors small ones: a skewed vocabulary.
        words.append(VOCABULARY[((bits & 1023) * ((bits >> 10) & 1023)) >> 10])
        bits >>= 20
    return " ".join(words).capitalize() + "."


class PageText:
    """The text of one page at one revision; it can only move forward.

    Attributes:
        revision: number of edits applied.
        blocks: sentences of each paragraph.
        facts: four-digit numbers; each edit of one changes it.
        kinds: kind of each edit, the first edit first.
    """

    __slots__ = ("_mix", "_seed", "_sentences", "_start", "blocks", "facts", "kinds", "revision")

    def __init__(self, seed: int, *, sentences: int, mix: EditMix) -> None:
        self._seed = seed
        self._mix = mix
        self._start = self._sentences = max(2, sentences)
        drawn = [make_sentence(seed, 0, k) for k in range(self._sentences)]
        step = SENTENCES_PER_BLOCK
        self.blocks = [drawn[k : k + step] for k in range(0, len(drawn), step)]
        self.facts = [1000 + draw(seed, 1, k) % 9000 for k in range(FACTS)]
        self.kinds: list[EditKind] = []
        self.revision = 0

    def advance(self) -> None:
        """Apply the next edit."""
        self.revision += 1
        kind = self._allowed(self._mix.kind(uniform(self._seed, 2, self.revision)))
        position = draw(self._seed, 3, self.revision)
        if kind is EditKind.DIGITS:
            fact = self.facts[position % FACTS] - 1000
            step = 1 + (position >> 8) % 8999
            self.facts[position % FACTS] = 1000 + (fact + step) % 9000
        else:
            self._edit_sentence(kind, position)
        self.kinds.append(kind)

    def _allowed(self, kind: EditKind) -> EditKind:
        if kind is EditKind.DELETION and self._sentences <= max(1, self._start // 2):
            return EditKind.INSERTION
        if kind is EditKind.INSERTION and self._sentences >= 2 * self._start:
            return EditKind.DELETION
        return kind

    def _edit_sentence(self, kind: EditKind, position: int) -> None:
        block = self.blocks[position % len(self.blocks)]
        if not block and kind is not EditKind.INSERTION:
            block = next(filled for filled in self.blocks if filled)
        index = (position >> 16) % (len(block) + (kind is EditKind.INSERTION))
        if kind is EditKind.DELETION:
            del block[index]
            self._sentences -= 1
            return
        text = make_sentence(self._seed, 4, self.revision)
        if kind is EditKind.INSERTION:
            block.insert(index, text)
            self._sentences += 1
        else:
            block[index] = text
