"""How urgent the pages of a queue are: what a reader would see first comes first."""

from __future__ import annotations

from enum import IntEnum


class Rank(IntEnum):
    """The most urgent pages that wait in a queue, the most urgent first.

    `EDITED`: reported to have changed, to be gone or to be back. `NEW`: never visited. `AFFECTED`:
    something that they include has changed. `REVISIT`: any other visited page.
    """

    EDITED = 0
    NEW = 1
    AFFECTED = 2
    REVISIT = 3
