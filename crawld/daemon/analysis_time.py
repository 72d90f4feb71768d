"""How long analyses on the event loop take, compared with their estimates.

An estimate knows the bytes and the tags of a page. A page can be built that takes a hundred times
as long: equal weak checksums in every window, thousands of lines, or of attributes in one tag.
Whatever it is, it holds the event loop once for each registrable domain. From then on the estimates
of this domain are multiplied, so that its pages go to a thread and wait their turn. When many
domains overrun, only pages with a tiny estimate stay on the event loop, whoever sent them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from crawld.core.url import registrable_domain, split_url

OVERRUN: Final = 4.0
"""A call overran if it took so many times its estimate; cold caches make it two or three."""

NOTED_S: Final = 0.005
"""Shorter calls are not looked at: this is within what the event loop can bear."""

LEAST_S: Final = 0.0005
"""Shorter estimates count as this. A page of some KB cannot overrun by much, but any call may meet
a pause of the interpreter."""

REMEMBERED_S: Final = 600.0
"""How long a domain is known for an overrun."""

MAX_DOMAINS: Final = 4096

SPARE_SHARE: Final = 0.02
"""Share of all time that overruns may take before every estimate is doubted."""

MAX_SPARE_S: Final = 0.25

DOUBT: Final = 20.0
"""Factor of every estimate in doubt: pages that seem to take half a millisecond stay."""


class _Overrun(NamedTuple):
    factor: float
    until: float


class AnalysisTime:
    """The factors of estimates, by registrable domain; times are those of trio's clock."""

    def __init__(self, now: Callable[[], float] = trio.current_time) -> None:
        self._now = now
        self._overruns: OrderedDict[str, _Overrun] = OrderedDict()
        self._debt_s = 0.0
        self._at = 0.0

    def factor(self, url: str) -> float:
        """Return how many times its estimate the analysis of a page of this domain may take."""
        if not self._overruns:
            return 1.0
        domain = _domain_of(url)
        found = self._overruns.get(domain)
        if found is None:
            return 1.0
        if found.until <= self._now():
            del self._overruns[domain]
            return 1.0
        return found.factor

    def doubt(self) -> float:
        """Return by how much every estimate is multiplied to decide what the event loop runs."""
        if self._debt_s <= 0.0:
            return 1.0
        now = self._now()
        self._debt_s -= SPARE_SHARE * (now - self._at)
        self._at = now
        return DOUBT if self._debt_s > MAX_SPARE_S else 1.0

    def note(self, url: str, estimate_s: float, took_s: float) -> None:
        """Learn how much CPU time a call on the event loop took."""
        estimate_s = max(estimate_s, LEAST_S)
        if took_s < NOTED_S or took_s < OVERRUN * estimate_s:
            return
        now = self._now()
        if self._debt_s <= 0.0:
            self._debt_s, self._at = 0.0, now
        self._debt_s += took_s
        domain = _domain_of(url)
        factor = took_s / estimate_s
        before = self._overruns.pop(domain, None)
        if before is not None:
            factor = max(factor, before.factor)
        self._overruns[domain] = _Overrun(factor, now + REMEMBERED_S)
        if len(self._overruns) > MAX_DOMAINS:
            self._overruns.popitem(last=False)


def _domain_of(url: str) -> str:
    return registrable_domain(split_url(url).host)
