"""Page states, visit outcomes and failures, used by the whole program.

The stored state of a page is a `PageState`. "Due" and "in flight" are derived: the schedule keeps
them in memory and they end with the process, so `kill -9` needs no repair.

    discovered --visit--> visited --visit--> visited ...
        |                    |---- gone over visits and days --> gone --found again--> visited
        |---- robots forbids --> excluded --robots allows--> discovered / visited
        '---- its twin agrees --> suspended --sampled, or they differ--> discovered / visited

A remote fault is a value (`Outcome` with a `Failure`), never an exception. Rule 1: only `CHANGED`
stores a version. Rule 2: only a confirmed `GONE` retires a page, and its last good version stays
readable. Rule 3: if too many pages of a host disappear at once, none is retired.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from crawld.core.units import DAY_S
from crawld.core.value_type import value_type


class PageState(StrEnum):
    """Stored state of a page."""

    DISCOVERED = "discovered"
    VISITED = "visited"
    EXCLUDED = "excluded"
    GONE = "gone"
    SUSPENDED = "suspended"


class Outcome(StrEnum):
    """Outcome of one visit."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NOT_MODIFIED = "not_modified"
    MOVED = "moved"
    GONE = "gone"
    SOFT_GONE = "soft_gone"
    BLOCKED = "blocked"
    FAILED = "failed"


GOOD_COPY = frozenset({Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED})
"""Outcomes after which the last copy matches the page."""


class Failure(StrEnum):
    """Why a visit failed or was blocked; the detail of an `Outcome`."""

    DNS = "dns"
    ADDRESS_REFUSED = "address_refused"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"
    TRUNCATED = "truncated"
    TOO_LARGE = "too_large"
    DECODING = "decoding"
    WRONG_TYPE = "wrong_type"
    BAD_REDIRECT = "bad_redirect"
    HTTP_STATUS = "http_status"
    ROBOTS = "robots"
    UNAUTHORIZED = "unauthorized"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    MEMORY = "memory"
    UNWANTED_FORM = "unwanted_form"
    PLUGIN = "plugin"


TRANSITIONS: dict[PageState, frozenset[PageState]] = {
    PageState.DISCOVERED: frozenset(
        {PageState.VISITED, PageState.EXCLUDED, PageState.GONE, PageState.SUSPENDED}
    ),
    PageState.VISITED: frozenset(
        {PageState.VISITED, PageState.EXCLUDED, PageState.GONE, PageState.SUSPENDED}
    ),
    PageState.EXCLUDED: frozenset({PageState.DISCOVERED, PageState.VISITED, PageState.SUSPENDED}),
    PageState.GONE: frozenset({PageState.VISITED, PageState.EXCLUDED, PageState.SUSPENDED}),
    PageState.SUSPENDED: frozenset({PageState.DISCOVERED, PageState.VISITED, PageState.GONE}),
}
"""Legal transitions of the stored state; any other is a bug."""


GONE_GRACE_VISITS = 3
"""A page is retired after this many `gone` outcomes in a row ..."""

GONE_GRACE_S = 3 * DAY_S
"""... if the first of them is at least this long ago."""


@value_type
class Grace:
    """Grace period of a page with outcome `gone`, before it is retired.

    Attributes:
        count: visits in a row that ended `gone` or `soft_gone`.
        since: time of the first of them, Unix seconds; 0 if `count` is 0.
    """

    count: int = 0
    since: float = 0.0

    def after(self, outcome: Outcome, now: float) -> Grace:
        """Return the grace after one more visit; blocked and failed visits leave it unchanged."""
        if outcome in (Outcome.BLOCKED, Outcome.FAILED):
            return self
        if outcome not in (Outcome.GONE, Outcome.SOFT_GONE):
            return NO_GRACE
        return Grace(self.count + 1, self.since if self.count else now)

    def exhausted(self, now: float) -> bool:
        """Whether the page may be retired: enough visits over enough days."""
        return self.count >= GONE_GRACE_VISITS and now - self.since >= GONE_GRACE_S


NO_GRACE: Final = Grace()
"""The grace of a page that is not gone."""


def next_state(
    state: PageState, outcome: Outcome, grace: Grace, now: float, *, deleted: bool = False
) -> PageState:
    """Return the stored state after a visit.

    Args:
        grace: the grace after this visit (`Grace.after`).
        deleted: whether the site reports the page as deleted; this skips the grace period.

    Returns:
        `VISITED`, or `GONE` once the grace is exhausted.

    Raises:
        ValueError: the transition is not in `TRANSITIONS`: a bug of the caller.
    """
    absent = outcome in (Outcome.GONE, Outcome.SOFT_GONE)
    # A retired page that is still gone, or cannot be reached, stays retired.
    if state is PageState.GONE and (absent or outcome in (Outcome.BLOCKED, Outcome.FAILED)):
        return PageState.GONE
    retired = absent and (deleted or grace.exhausted(now))
    target = PageState.GONE if retired else PageState.VISITED
    if target not in TRANSITIONS[state]:
        raise ValueError(f"a page cannot go from {state} to {target} by {outcome}")
    return target
