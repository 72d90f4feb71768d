"""Checks of rates that hosts share: requests and bytes per second, of all hosts or of a group."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from crawld.universe.findings import Findings

RATE_SLOTS: Final = (5, 20)
RATE_SLACK: Final = 2
"""In the time of n slots come at most n + 1 requests, and so many more whose way took longer."""

WAY_S: Final = 5.0
"""A request is on its way, and an answer is counted, within this time."""

TOLERANCE_S: Final = 1e-6


def no_host(_from_s: float, _until_s: float) -> int:
    """Return that nothing is wrong with any host."""
    return 0


class _Asked(NamedTuple):
    """A request, and the bytes of all whole answers that were sent before it."""

    at_s: float
    sent_bytes: int


class RateAudit:
    """Watches the requests of hosts that share a rate.

    Args:
        name: of the promise, in the results.
        requests_per_s: None: no limit.
        bytes_per_s: received ones; None: no limit.
        held_up: of how many hosts a request may have ended without its answer between two times.
            The time that was kept free for the answer is used then, later than it was.
    """

    def __init__(
        self,
        name: str,
        found: Findings,
        requests_per_s: float | None,
        bytes_per_s: float | None = None,
        held_up: Callable[[float, float], int] = no_host,
    ) -> None:
        self._name = name
        self._found = found
        self._requests_per_s = requests_per_s
        self._bytes_per_s = bytes_per_s
        self._held_up = held_up
        self._answers: deque[int] = deque(maxlen=RATE_SLOTS[-1])
        self._recent: deque[_Asked] = deque(maxlen=RATE_SLOTS[-1] + RATE_SLACK + 2)
        self._unsettled: deque[tuple[float, int]] = deque()
        self._settled_bytes = self._sent_bytes = 0

    def life_began(self) -> None:
        """Forget the bytes of a former process, which may not have counted them."""
        self._unsettled.clear()
        self._settled_bytes = self._sent_bytes
        self._recent = deque(
            (_Asked(each.at_s, self._sent_bytes) for each in self._recent),
            self._recent.maxlen,
        )

    def answered(self, at_s: float, wire_bytes: int) -> None:
        """Note a whole answer that was sent at a time."""
        self._sent_bytes += wire_bytes
        self._answers.append(wire_bytes)
        self._unsettled.append((at_s, wire_bytes))

    def asked(self, at_s: float, where: str) -> None:
        """Check a request that arrived at a time."""
        while self._unsettled and self._unsettled[0][0] <= at_s - WAY_S:
            self._settled_bytes += self._unsettled.popleft()[1]
        self._recent.append(_Asked(at_s, self._sent_bytes))
        for slots in RATE_SLOTS:
            self._check_requests(slots, at_s, where)
            self._check_bytes(slots, at_s, where)

    def _check_requests(self, slots: int, at_s: float, where: str) -> None:
        rate, recent, most = self._requests_per_s, self._recent, slots + 1 + RATE_SLACK
        if rate is None or len(recent) <= most:
            return
        span_s = at_s - recent[-1 - most].at_s
        if span_s < slots / rate - TOLERANCE_S:
            self._found.add(self._name, at_s, f"{where}: {most + 1} in {span_s:.3f} s")

    def _check_bytes(self, slots: int, at_s: float, where: str) -> None:
        rate, recent = self._bytes_per_s, self._recent
        if rate is None or len(recent) <= slots:
            return
        first = recent[-1 - slots]
        count, span_s = self._settled_bytes - first.sent_bytes, at_s - first.at_s
        if count <= rate * (span_s + WAY_S):
            return
        kept_bytes = max(self._answers) * self._held_up(first.at_s, at_s)
        if count > rate * (span_s + WAY_S) + kept_bytes:
            self._found.add(self._name, at_s, f"{where}: {count} bytes in {span_s:.3f} s")
