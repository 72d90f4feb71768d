"""The other hosts that a host links to, as a bounded sketch: two copies of a site have equal ones.

A sketch holds the `MOST_KEYS` smallest keys of the host names that the pages link to, so that equal
sets have equal sketches and the smallest keys of two large sets are a sample of both.

Source: Cohen & Kaplan 2007, "Summarizing data using bottom-k sketches".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import numpy as np

from crawld.core.replica.hosts import Keys, distinct, path_key

MOST_KEYS: Final = 128
"""Keys kept of a host, 8 bytes each."""

SCANNED_BYTES: Final = 256 * 1024
"""Beginning of a body in which links are searched."""

MOST_LINKS: Final = 1_000
"""Links read of one body."""

# Linear: a literal, two optional parts that cannot begin alike, one bounded class.
_LINK: Final = re.compile(rb"""href=["']?(?:https?:)?//([a-z0-9.-]{1,253})""")


def linked_names(body: bytes) -> set[str]:
    """Return the host names in the absolute links of a body.

    >>> sorted(linked_names(b'<a href="http://B.test:80/x"><a HREF=//c.test><a href="/d">'))
    ['b.test', 'c.test']
    """
    names = set()
    for at, found in enumerate(_LINK.finditer(body[:SCANNED_BYTES].lower())):
        if at >= MOST_LINKS:
            break
        names.add(found[1].decode("ascii"))
    return names


def sketch_of(known: Keys, names: Iterable[str]) -> Keys:
    """Return the sketch of what a sketch holds and some more host names, ascending."""
    more = np.array([path_key(name) for name in names], dtype=np.uint64)
    return distinct(np.concatenate((known, more)))[:MOST_KEYS]
