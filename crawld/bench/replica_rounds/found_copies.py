"""Which true copies the rounds find, by what their pages add, and how long deferred pages wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from crawld.simweb.lookalike.host import Decoration
from crawld.simweb.lookalike.web import LookalikeWeb

Group = tuple[int, ...]
"""Numbers of the hosts of a group of copies."""

_DIFFERENCES: Final[Mapping[str, Callable[[Decoration], bool]]] = {
    "links": lambda host: host.absolute_links,
    "dates": lambda host: host.date,
    "counters": lambda host: host.counter,
}
"""By name: what a host may add to its pages that is no part of what they say."""

FOUND_NAMES: Final = tuple(
    f"{name}_{kind}" for name in _DIFFERENCES for kind in ("copies", "copies_found")
)
"""The names of the figures of `FoundCopies`."""


@dataclass(slots=True)
class FoundCopies:
    """Notes which hosts have rested under another host of their group.

    Attributes:
        groups: of copies that need no operator.
    """

    web: LookalikeWeb
    groups: Sequence[Group]
    _found: set[int] = field(default_factory=set)

    def note(self, twins: Mapping[int, int], resting_hosts: Iterable[int]) -> None:
        """Note a step.

        Args:
            twins: the host under which pages of each host may rest.
            resting_hosts: hosts of which pages rest.
        """
        now = set(resting_hosts)
        self._found.update(
            host
            for group in self.groups
            for host in now.intersection(group)
            if twins.get(host) in group
        )

    def figures(self) -> dict[str, float]:
        """Return how many copies there are of groups with each difference, and how many rested."""
        found: dict[str, float] = {}
        for name, has in _DIFFERENCES.items():
            groups = [
                group
                for group in self.groups
                if any(has(self.web.hosts[host].decoration) for host in group)
            ]
            copies = sum(len(group) - 1 for group in groups)
            seen = sum(
                min(len(group) - 1, len(self._found.intersection(group))) for group in groups
            )
            found |= {f"{name}_copies": float(copies), f"{name}_copies_found": float(seen)}
        return found


@dataclass(slots=True)
class DeferredWaits:
    """Notes how long deferred pages wait for their first visit.

    Attributes:
        longest_days: the longest wait so far, of pages visited since and of those that still wait.
    """

    longest_days: float = 0.0
    _since: dict[int, float] = field(default_factory=dict)

    def note(self, day: float, deferred: Iterable[int], is_visited: Callable[[int], bool]) -> None:
        """Note a step; `deferred` are pages that rest without a visit."""
        for page in deferred:
            self._since.setdefault(page, day)
        for page, since in list(self._since.items()):
            self.longest_days = max(self.longest_days, day - since)
            if is_visited(page):
                del self._since[page]
