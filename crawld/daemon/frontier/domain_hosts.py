"""How many hosts of one registrable domain are known: whoever owns a domain can name any number.

A host costs a row, 5 KB of memory from its first turn on, a lookup and a robots.txt. Two users of
one hosting service are two domains (`registrable_domain`).

There may be millions of domains of one host, so the counts are those of cells that domains share: a
domain has one in each row of a table, and at most as many hosts as the smaller of its two cells.
With ten million hosts that is some 70 too many on average, of 5,000.

Source: Cormode and Muthukrishnan 2005, "An improved data stream summary: the count-min sketch".
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import numpy as np

from crawld.core.url import registrable_domain

MAX_HOSTS_PER_DOMAIN: Final = 5_000
"""The largest wikis have a few hundred languages; 5,000 hosts take 25 MB."""

_CELLS: Final = 1 << 17
"""Cells of a row; a cell takes memory when it is used: 1 MB at most."""


class DomainHosts:
    """Counts the known hosts of each registrable domain."""

    def __init__(self, known: Container[str] = ()) -> None:
        """Count nothing yet; `known` has the hosts that were added."""
        self._known = known
        self._cells = np.zeros((2, _CELLS), np.uint32)

    def add(self, host: str) -> None:
        """Count a host; called once for each."""
        for row, cell in enumerate(_cells_of(host)):
            self._cells[row, cell] += 1

    def takes(self, host: str) -> bool:
        """Return whether URLs of a host may be added: it is known, or its domain has room."""
        if host in self._known:
            return True
        counts = (self._cells[row, cell] for row, cell in enumerate(_cells_of(host)))
        return bool(min(counts) < MAX_HOSTS_PER_DOMAIN)


def _cells_of(host: str) -> tuple[int, int]:
    """Return the cells of the domain of a host; nobody outside the process knows the hash."""
    number = hash(registrable_domain(host))
    return number % _CELLS, number // _CELLS % _CELLS
