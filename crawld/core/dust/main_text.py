"""The main text of a page, in a form that is equal for all views of one page.

The order of blocks, their markup, the title and the targets of links do not count: a print view and
another sort order have the same main text, and a session id in links changes nothing. A block
without words counts by the names of its images. Blocks that stand on many pages of the host (menus,
footers) do not count: a print view leaves them out. A text of few words proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import xxhash

from crawld.core.content.blocks import Blocks
from crawld.core.content.targets import TARGET
from crawld.core.content.volatile import VolatileRules, stable_blocks

LEAST_WORDS: Final = 12
"""Words of the shortest main text that says which page it is."""

CHROME_SHARE: Final = 0.25
"""Share of the pages of a host on which a block stands that is not main text."""

LEAST_CHROME: Final = 3
"""Pages on which it stands at least."""

_KINDS: Final = ("* ", "| ", "> ", "pre: ", *(f"h{level}: " for level in range(1, 7)))
_TITLE: Final = "title: "

MainBlocks = dict[int, int]
"""Hashes of the blocks of a page, with the number of words of each."""


def main_blocks(blocks: Blocks, rules: VolatileRules) -> MainBlocks:
    """Return the blocks of a page that may be main text; time is linear in its text.

    Args:
        rules: noise rules of the page and its host.
    """
    found: MainBlocks = {}
    for text in stable_blocks(blocks, rules).texts:
        if text.startswith(_TITLE):
            continue
        plain = text
        for kind in _KINDS:
            if text.startswith(kind):
                plain = text[len(kind) :]
                break
        words = TARGET.sub(" ", plain).split()
        if not words:
            names = [target[1:-1].rpartition("/")[2] for target in TARGET.findall(plain)]
            plain = "\0".join(sorted(names))
        else:
            plain = " ".join(words)
        found[xxhash.xxh3_64_intdigest(plain.encode("utf-8", "replace"))] = len(words)
    return found


def chrome_of(pages: Iterable[MainBlocks]) -> frozenset[int]:
    """Return the blocks that stand on many of some pages of a host, all of different texts."""
    counts: Counter[int] = Counter()
    total = 0
    for page in pages:
        counts.update(page.keys())
        total += 1
    least = max(LEAST_CHROME, CHROME_SHARE * total)
    return frozenset(block for block, count in counts.items() if count >= least)


def main_digest(blocks: MainBlocks, chrome: frozenset[int]) -> bytes | None:
    """Return the digest of a main text, 16 bytes; None: it is too short to prove anything."""
    kept = sorted(blocks.keys() - chrome)
    if sum(blocks[one] for one in kept) < LEAST_WORDS:
        return None
    text = b"".join(one.to_bytes(8, "little") for one in kept)
    return blake2b(text, digest_size=16).digest()
