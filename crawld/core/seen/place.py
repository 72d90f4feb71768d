"""Where a URL that was found waits: its site, and its depth, in 16 bits.

`NOWHERE` is the place of a URL that was forgotten: found again, it is new.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.uint16]

NOWHERE: Final = 0

DEPTH_BITS: Final = 4

MAX_DEPTH: Final = (1 << DEPTH_BITS) - 1
"""A larger depth counts as this one: so far from a seed it says little which link is nearer."""

MAX_SITE: Final = (1 << (16 - DEPTH_BITS)) - 1
"""URLs of sites with a larger site_id have no place."""


def place_of(site_id: int, depth: int) -> int:
    """Return the place of a URL.

    >>> place_of(3, 2), place_of(3, 99)
    (50, 63)
    """
    return site_id << DEPTH_BITS | min(depth, MAX_DEPTH)


def places_of(sites: NDArray[np.uint16], depths: NDArray[np.uint16]) -> Places:
    """Return the places of many URLs."""
    return sites << np.uint16(DEPTH_BITS) | np.minimum(depths, np.uint16(MAX_DEPTH))


def sites_of(places: Places) -> NDArray[np.int64]:
    """Return the site of each place."""
    return (places >> np.uint16(DEPTH_BITS)).astype(np.int64)


def depths_of(places: Places) -> Places:
    """Return the depth of each place."""
    return places & np.uint16(MAX_DEPTH)
