"""Detects an outage of our own network from the results of lookups and fetches. Pure logic.

Anybody can name hosts whose lookup fails, so a failure counts only for a host that worked before,
or while none has worked yet. Failures are counted since the last success of any host: while one
host answers, the network works.

Rule: `ENOUGH` hosts of `ENOUGH` registrable domains fail, or as many as worked within `WINDOW_S` if
these are fewer, and nothing has worked for `SILENCE_S`. A success ends the outage; a host that
failed before it must work again before its failures count. Without a success, the outage expires
`PROBE_S` after the last failure, so that fetches are tried; their failure renews it.

A name that does not exist shows nothing: a resolver without a network may answer from its cache.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from itertools import islice

from crawld.core.page import Failure
from crawld.core.url import registrable_domain
from crawld.net.exchange import FetchFailure, FetchResponse

ENOUGH = 5
SILENCE_S = 2.0
"""Longer than the delay of busy hosts: while these answer, a burst of failures is no outage."""
KNOWN_HOSTS = 10_000
"""Hosts remembered as having worked."""
WINDOW_HOSTS = 100
"""Only so many of the hosts that worked last are looked at for the rule."""
WINDOW_S = 120.0
PROBE_S = 30.0


def network_evidence(result: FetchResponse | FetchFailure) -> bool | None:
    """Return whether a fetch shows that the network works or not; None if it shows neither.

    A refused connection or a bad certificate proves that a peer was reached; a timeout proves
    nothing, nor does a lack of open files.
    """
    if isinstance(result, FetchResponse):
        return True
    if result.failure is Failure.MEMORY:
        return True  # a peer answers, faster than its bytes can be kept
    if result.local_fault:
        return False
    silent = (Failure.TIMEOUT, Failure.ADDRESS_REFUSED, Failure.DNS)
    return None if result.failure in silent and result.status is None else True


class OutageDetector:
    """Distinguishes a network outage from failures of single hosts."""

    def __init__(self) -> None:
        self._worked: OrderedDict[str, float] = OrderedDict()
        self._worked_at = -math.inf
        self._failing: set[str] = set()
        self._failed_at = 0.0
        self._suspected = False
        self._outage = False

    def observe(self, host: str, ok: bool, now: float) -> None:
        """Record whether the network worked (`network_evidence`) in a fetch or lookup of a host.

        `now` is a time on any steady clock, seconds.
        """
        if ok:
            for failed in self._failing:
                self._worked.pop(failed, None)
            self._failing.clear()
            self._worked[host] = self._worked_at = now
            self._worked.move_to_end(host)
            if len(self._worked) > KNOWN_HOSTS:
                self._worked.popitem(last=False)
            self._outage = self._suspected = False
        elif not self._worked or host in self._worked:
            self._failing.add(host)
            self._failed_at = now
            self._suspected = self._suspected or self._enough_fail(now)
            self._outage = self._suspected and now - self._worked_at >= SILENCE_S

    def is_suspected(self, now: float) -> bool:
        """Whether enough hosts fail, although something may have worked a moment ago."""
        return self._suspected and now - self._failed_at < PROBE_S

    def is_outage(self, now: float) -> bool:
        """Whether the network is considered down, so that nothing should be fetched."""
        return self._outage and now - self._failed_at < PROBE_S

    def _enough_fail(self, now: float) -> bool:
        last = islice(reversed(self._worked.items()), WINDOW_HOSTS)
        recent = [host for host, worked_at in last if now - worked_at <= WINDOW_S]
        if len(self._failing) < min(ENOUGH, len(recent)):
            return False
        domains = set(map(registrable_domain, self._failing))
        return len(domains) >= min(ENOUGH, len(set(map(registrable_domain, recent))))
