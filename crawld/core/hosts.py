"""Host name patterns: `cdn.example.org`, `*.example.org` (all subdomains), `*` (any)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ANY = "*"
BELOW = "*."


@dataclass(frozen=True, slots=True)
class HostPatterns:
    """A set of hosts, tested with `in`.

    Attributes:
        exact: host names.
        below: suffixes that begin with a dot.
        everything: whether every host is in the set.
    """

    exact: frozenset[str] = frozenset()
    below: tuple[str, ...] = ()
    everything: bool = False

    def __contains__(self, host: str) -> bool:
        return self.everything or host in self.exact or host.endswith(self.below)


def host_patterns(texts: Iterable[str]) -> HostPatterns:
    """Return the set of hosts that patterns describe.

    >>> "upload.wikimedia.org" in host_patterns(["*.wikimedia.org"])
    True
    >>> "wikimedia.org" in host_patterns(["*.wikimedia.org"])
    False
    """
    written = tuple(texts)
    return HostPatterns(
        exact=frozenset(text for text in written if not text.startswith(ANY)),
        below=tuple(text[1:] for text in written if text.startswith(BELOW)),
        everything=ANY in written,
    )
