"""Whether a page of a replica agrees with its twin, the same path of the canonical host.

Both change, and they are visited at different times. So a text counts as the twin's if the twin
showed it at about the time when the replica did; and as different only if the twin showed one text
throughout that time, which was another:

    twin   ── T1 ──────── visit ── T1 or T2 ──────── visit ──▶        T1 = T2: the text is known
    page                            visit: its text                   T1 ≠ T2: it may be a third

A copy that still shows what the original has lost does not rest; a later visit decides. One that
shows what the original lost long ago has become another page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from crawld.core.content.fingerprint import resemblance
from crawld.core.units import DAY_S

LEAST_LAG_S: Final = 60.0
"""Two visits so close together may see one page before and after a change; about as long as a
commit may take. A replica that lags more is not fetched instead of its canonical host."""

MAX_LAG_S: Final = DAY_S
"""A copy that is further behind its original differs from it."""

MANY_PATHS: Final = 3
"""A text that a host shows on so many paths is a login wall or an error page: it proves nothing."""


LEAST_RESEMBLANCE: Final = 0.25
"""Pages of equal text whose dates and links differ resemble each other at least so much; the bodies
of others are not compared."""


class PageVerdict(StrEnum):
    """How a page of a replica compares with its twin, as stored.

    `REPEATED`: equal, but the host shows the text on many paths. `UNKNOWN`: a later visit of the
    twin, or of a page that is behind it, decides. `DEFERRED`: never visited, since its section
    agrees.
    """

    AGREES = "agrees"
    DIFFERS = "differs"
    REPEATED = "repeated"
    UNKNOWN = "unknown"
    DEFERRED = "deferred"


@dataclass(frozen=True, slots=True)
class TwinComparison:
    """A verdict, and how far the page was behind its twin, seconds; None: not measured."""

    verdict: PageVerdict
    lag_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinTimes:
    """What is known of the twin around the visit of a page.

    Attributes:
        visited_at: time of the visit of the page, Unix seconds.
        seen_at: time of the last visit of the twin that found a copy.
        is_steady: whether the twin's visits before and after that of the page found one text.
        lost_at: when the twin was first seen without the text of the page, after it had shown it;
            None: it has not lost it, or never showed it.
    """

    visited_at: float
    seen_at: float
    is_steady: bool
    lost_at: float | None


def may_agree(
    cleaned: tuple[bytes | None, bytes | None], sketches: tuple[bytes | None, bytes | None]
) -> bool:
    """Whether the bodies of two pages are worth a comparison.

    Args:
        cleaned: digests of their texts, each under the noise rules of its own host.
        sketches: of their visible texts; None: not analysed.
    """
    if cleaned[0] is not None and cleaned[0] == cleaned[1]:
        return True
    one, other = sketches
    return one is not None and other is not None and resemblance(one, other) >= LEAST_RESEMBLANCE


def compare_twins(times: TwinTimes, *, equal: bool) -> TwinComparison:
    """Return how a page compares with its twin.

    Args:
        equal: whether the newest copy of the twin, or the one that it had when the page was
            visited, has the text of the page.
    """
    if equal:
        return TwinComparison(PageVerdict.AGREES, 0.0)
    if times.lost_at is not None:
        lag_s = max(0.0, times.visited_at - times.lost_at)
        if lag_s > MAX_LAG_S:
            return TwinComparison(PageVerdict.DIFFERS, lag_s)
        is_behind = lag_s > LEAST_LAG_S
        return TwinComparison(PageVerdict.UNKNOWN if is_behind else PageVerdict.AGREES, lag_s)
    is_known = times.seen_at >= times.visited_at and times.is_steady
    return TwinComparison(PageVerdict.DIFFERS if is_known else PageVerdict.UNKNOWN)
