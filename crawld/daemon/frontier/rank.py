"""How urgent the pages of a queue are: what a reader would see first comes first."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Rank(IntEnum):
    """The most urgent pages that wait in a queue, the most urgent first.

    `CONFIRM`: to be visited next, such as a page that its site reports as deleted. `EDITED`:
    reported to have changed, or to be back. `NEW`: never visited. `AFFECTED`: something that they
    include has changed. `REVISIT`: any other visited page.
    """

    CONFIRM = 0
    EDITED = 1
    NEW = 2
    AFFECTED = 3
    REVISIT = 4


STALE_RANKS: Final = frozenset({Rank.CONFIRM, Rank.EDITED, Rank.AFFECTED})
"""Ranks of pages whose copy is known, or likely, to be stale."""
