"""Detects an outage of our own network from the results of lookups and fetches. Pure logic.

Rule: with at least `MIN_HOSTS` hosts seen recently, there is an outage if `FAILING_SHARE` of them
fail; with fewer, if all of them fail (there may be only one host). One success ends the outage and
clears the failures. Without a success, the outage expires `PROBE_S` after the last failure, so that
one fetch is tried; its failure renews the outage.

A name that does not exist counts as success: the resolver works.
"""

from __future__ import annotations

from collections import OrderedDict

from crawld.core.page import Failure
from crawld.net.exchange import FetchFailure, FetchResponse

MIN_HOSTS = 5
FAILING_SHARE = 0.8
WINDOW_HOSTS = 20
WINDOW_S = 120.0
PROBE_S = 30.0


def network_evidence(result: FetchResponse | FetchFailure) -> bool | None:
    """Return whether a fetch shows that the network works or not; None if it shows neither.

    A refused connection or a bad certificate proves that a peer was reached; a timeout proves
    nothing.
    """
    if isinstance(result, FetchResponse):
        return True
    if result.failure is Failure.MEMORY:
        return True  # a peer answers, faster than its bytes can be kept
    if result.local_fault:
        return False
    silent = result.failure in (Failure.TIMEOUT, Failure.ADDRESS_REFUSED)
    return None if silent and result.status is None else True


class OutageDetector:
    """Distinguishes a network outage from failures of single hosts."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[bool, float]] = OrderedDict()
        self._outage = False
        self._observed_at = 0.0

    def observe(self, host: str, ok: bool, now: float) -> None:
        """Record whether the network worked (`network_evidence`) in a fetch or lookup of a host.

        `now` is a time on any steady clock, seconds.
        """
        self._observed_at = now
        if ok and self._outage:
            self._seen.clear()
        self._seen[host] = (ok, now)
        self._seen.move_to_end(host)
        while len(self._seen) > WINDOW_HOSTS or self._oldest_at() < now - WINDOW_S:
            self._seen.popitem(last=False)
        self._outage = not ok and (self._outage or self._most_fail())

    def is_outage(self, now: float) -> bool:
        """Whether the network is considered down, so that nothing should be fetched."""
        return self._outage and now - self._observed_at < PROBE_S

    def _oldest_at(self) -> float:
        return next(iter(self._seen.values()))[1]

    def _most_fail(self) -> bool:
        failing = sum(not ok for ok, _ in self._seen.values())
        needed = FAILING_SHARE if len(self._seen) >= MIN_HOSTS else 1.0
        return failing >= needed * len(self._seen)
