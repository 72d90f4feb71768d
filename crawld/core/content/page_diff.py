"""The visible difference between two copies of a page, without its volatile blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from crawld.core.content.alignment import find_gaps
from crawld.core.content.analysis import difference_of
from crawld.core.content.blocks import Blocks
from crawld.core.content.volatile import StableBlocks, VolatileRules, stable_blocks
from crawld.core.content.words import Hunk, word_diff


@dataclass(frozen=True, slots=True)
class PageDiff:
    """The difference between two copies.

    Attributes:
        share: share of the page that differs, [0, 1].
        hunks: the differing blocks, numbered on the whole page.
        noisy_blocks: number of volatile blocks of the new copy that differ and are left out.
    """

    share: float
    hunks: tuple[Hunk, ...]
    noisy_blocks: int


def diff_pages(before: Blocks, after: Blocks, learned: Iterable[bytes] = ()) -> PageDiff:
    """Return the difference between two readings; without learned rules every difference counts."""
    rules = VolatileRules.union(learned)
    old, new = stable_blocks(before, rules), stable_blocks(after, rules)
    hunks = word_diff(_stable_only(before, old), _stable_only(after, new))
    return PageDiff(
        difference_of(before, after, rules),
        tuple(
            replace(
                hunk,
                old_block=_page_index(old, hunk.old_block, before),
                new_block=_page_index(new, hunk.new_block, after),
            )
            for hunk in hunks
        ),
        _noisy_blocks(before, after, new),
    )


def _stable_only(blocks: Blocks, stable: StableBlocks) -> Blocks:
    return Blocks(stable.texts, tuple(blocks.places[index] for index in stable.indices))


def _page_index(stable: StableBlocks, block: int, blocks: Blocks) -> int:
    """Return the number on the whole page of a stable block, or of the end of the page."""
    return stable.indices[block] if block < len(stable.indices) else len(blocks.texts)


def _noisy_blocks(before: Blocks, after: Blocks, stable: StableBlocks) -> int:
    if not stable.noisy:
        return 0
    differing = (j for *_, start, end in find_gaps(before, after) for j in range(start, end))
    return sum(j in stable.noisy for j in differing)
