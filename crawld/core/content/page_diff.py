"""What a reader sees changed between two copies of a page, what changes by itself passed over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from crawld.core.content.alignment import find_gaps
from crawld.core.content.analysis import difference_of
from crawld.core.content.blocks import Blocks
from crawld.core.content.volatile import StableBlocks, VolatileRules, stable_blocks
from crawld.core.content.words import Hunk, word_diff


@dataclass(frozen=True, slots=True)
class PageDiff:
    """What differs.

    Attributes:
        share: of the page that differs, [0, 1].
        hunks: where; blocks are counted on the whole page.
        noisy_blocks: blocks of the new copy that differ and were passed over.
    """

    share: float
    hunks: tuple[Hunk, ...]
    noisy_blocks: int


def diff_pages(before: Blocks, after: Blocks, learnt: Iterable[bytes] = ()) -> PageDiff:
    """Return what changed from one reading of a page to another.

    Args:
        before: the earlier blocks.
        after: the later blocks.
        learnt: rules of what changes by itself, as stored; without any, everything counts.
    """
    rules = reduce(or_, map(VolatileRules.from_bytes, learnt), VolatileRules())
    there, here = stable_blocks(before, rules), stable_blocks(after, rules)
    hunks = word_diff(_left(before, there), _left(after, here))
    return PageDiff(
        difference_of(before, after, rules),
        tuple(
            replace(
                hunk,
                old_block=_number(there, hunk.old_block, before),
                new_block=_number(here, hunk.new_block, after),
            )
            for hunk in hunks
        ),
        _noisy_blocks(before, after, here),
    )


def _left(blocks: Blocks, left: StableBlocks) -> Blocks:
    return Blocks(left.texts, tuple(blocks.places[index] for index in left.indices))


def _number(left: StableBlocks, block: int, blocks: Blocks) -> int:
    """Return the number on the page of a block that was left, or of the end of the page."""
    return left.indices[block] if block < len(left.indices) else len(blocks.texts)


def _noisy_blocks(before: Blocks, after: Blocks, left: StableBlocks) -> int:
    if not left.noisy:
        return 0
    differing = (j for *_, start, end in find_gaps(before, after) for j in range(start, end))
    return sum(j in left.noisy for j in differing)
