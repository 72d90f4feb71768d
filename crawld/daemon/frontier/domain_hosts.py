"""How many hosts of one registrable domain are known: whoever owns a domain can name any number.

A host costs 5 KB of memory, a lookup and a robots.txt, for ever. Two users of one hosting service
are two domains (`registrable_domain`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Final

from crawld.core.url import registrable_domain

MAX_HOSTS_PER_DOMAIN: Final = 5_000
"""The largest wikis have a few hundred languages; 5,000 hosts take 25 MB."""


class DomainHosts:
    """Counts the known hosts of each registrable domain."""

    def __init__(self, known: Container[str] = ()) -> None:
        """Count nothing yet; `known` has the hosts that were added."""
        self._known = known
        self._counts = Counter[str]()

    def add(self, host: str) -> None:
        """Count a host; called once for each."""
        self._counts[registrable_domain(host)] += 1

    def takes(self, host: str) -> bool:
        """Return whether URLs of a host may be added: it is known, or its domain has room."""
        return host in self._known or (
            self._counts[registrable_domain(host)] < MAX_HOSTS_PER_DOMAIN
        )
