"""Why requests for pages of copies were made that an oracle would not have made, by cause.

An oracle knows which pages of a group of copies show the same, and visits one host's. Every other
visit is counted under what the file said of the page before: its host had no relation yet, its
text was not compared, it seemed to differ …
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from crawld.core.replica.agreement import PageVerdict
from crawld.store.replica.survey import TwinStanding


class UnsavedCause(StrEnum):
    """Why a page was visited though an oracle would have let it rest."""

    UNRELATED = "unrelated"
    """Nothing links its host with another of its group yet."""
    HELD = "held"
    """Its host waits for the operator, or was withdrawn."""
    UNCOMPARED = "uncompared"
    """Its host shares pages, but this page has no comparison: its twin has no copy yet."""
    WAITING = "waiting"
    """A later visit decides the comparison."""
    DIFFERENT = "different"
    """It differed when last compared, or its text stands on many paths."""
    REPEATING = "repeating"
    """It differed once, and must agree several times in a row."""
    RETURNED = "returned"
    """Its section has returned, or it waits to be put to rest."""
    SAMPLED = "sampled"
    """It rests, and was visited to be compared again."""
    KEPT = "kept"
    """It is a page of the host that is kept, visited more often to decide comparisons."""


@dataclass(slots=True)
class UnsavedRequests:
    """Counts the requests that an oracle would not have made, by cause.

    Attributes:
        counts: requests by cause, over the rounds so far.
    """

    counts: dict[UnsavedCause, float] = field(
        default_factory=lambda: dict.fromkeys(UnsavedCause, 0.0)
    )
    _standing: Mapping[int, TwinStanding] = field(default_factory=dict)
    _status: Mapping[int, str] = field(default_factory=dict)
    _twins: Mapping[int, int] = field(default_factory=dict)

    def note(
        self,
        standing: Mapping[int, TwinStanding],
        status: Mapping[int, str],
        twins: Mapping[int, int],
    ) -> None:
        """Note what the file says now; the visits until the next call are counted under it.

        Args:
            standing: of the compared pages, by index.
            status: of the hosts that are or were replicas, by number.
            twins: the host under which pages of each host may rest.
        """
        self._standing, self._status, self._twins = standing, status, twins

    def add(
        self, pages: Sequence[int], hosts: Sequence[int], made: Sequence[float], slots: float
    ) -> None:
        """Count the visits of pages that show the same under one path.

        Args:
            pages: index of each.
            hosts: number of the host of each.
            made: visits of each since `note`.
            slots: visits of one page that the oracle makes.
        """
        kept = self._kept(hosts)
        for at, (index, host) in enumerate(zip(pages, hosts, strict=True)):
            if at == kept:
                self.counts[UnsavedCause.KEPT] += made[at] - slots
            elif made[at]:
                self.counts[self._cause(index, host)] += made[at]

    def _kept(self, hosts: Sequence[int]) -> int:
        """Return which of some hosts is kept: most of the others rest under it."""
        under = Counter(self._twins[host] for host in hosts if host in self._twins)
        return max(
            range(len(hosts)), key=lambda at: (hosts[at] not in self._twins, under[hosts[at]])
        )

    def _cause(self, index: int, host: int) -> UnsavedCause:
        if host not in self._twins:
            return UnsavedCause.HELD if host in self._status else UnsavedCause.UNRELATED
        known = self._standing.get(index)
        if known is None:
            return UnsavedCause.UNCOMPARED
        if known.rests or known.is_released:
            return UnsavedCause.SAMPLED
        if known.verdict in (PageVerdict.UNKNOWN, PageVerdict.DEFERRED):
            return UnsavedCause.WAITING
        if known.verdict is not PageVerdict.AGREES:
            return UnsavedCause.DIFFERENT
        return UnsavedCause.REPEATING if known.turns else UnsavedCause.RETURNED
