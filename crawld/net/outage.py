"""Is the network down, or is it that one host? Pure logic over what name lookups said.

Knows the last verdict of each recently asked host. It never speaks for a page: a name that does
not exist is an answer, hence proof that the resolver works.

Rule: with at least `MIN_HOSTS` hosts seen lately, an outage is declared when `FAILING_SHARE` of
them fail; with fewer, when all of them do (a machine without any network knows only one host, and
it fails). One success ends it and forgives the failures seen so far. Without one it is asked again
`PROBE_S` after the last failure: the verdict lapses, and the first failure renews it.
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
    """Return whether a fetch shows that the network works; None if it shows nothing.

    A refused connection or a broken certificate comes from someone who was reached; a timeout may
    have either cause.
    """
    if isinstance(result, FetchResponse):
        return True
    if result.local_fault:
        return False
    silent = result.failure in (Failure.TIMEOUT, Failure.ADDRESS_REFUSED)
    return None if silent and result.status is None else True


class OutageDetector:
    """Tells a network outage from the failures of single hosts."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[bool, float]] = OrderedDict()
        self._outage = False
        self._observed_at = 0.0

    def observe(self, host: str, ok: bool, now: float) -> None:
        """Take in what a host's last lookup or fetch showed.

        Args:
            host: host name.
            ok: whether the network was shown to work (`network_evidence`).
            now: instant on any steady clock, seconds.
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
        """Whether the network is held to be down, so that nothing should be fetched.

        Args:
            now: instant on the clock of `observed`, seconds.
        """
        return self._outage and now - self._observed_at < PROBE_S

    def _oldest_at(self) -> float:
        return next(iter(self._seen.values()))[1]

    def _most_fail(self) -> bool:
        failing = sum(not ok for ok, _ in self._seen.values())
        needed = FAILING_SHARE if len(self._seen) >= MIN_HOSTS else 1.0
        return failing >= needed * len(self._seen)
