"""When the URLs of a host are examined again: as often as its visits grow by a share.

So rules are learnt within the first hundredths of a crawl, whether it makes ten visits a second or
ten a minute, and a host that stands still costs one examination in half an hour.
"""

from __future__ import annotations

from typing import Final

SHORTEST_S: Final = 60.0
LONGEST_S: Final = 1_800.0

GROWTH_SHARE: Final = 0.1
"""Growth of the visits of a host from one examination to the next."""

VALIDATION_SHARE: Final = 0.01
"""Most visits for validation, as a share of the URLs of a host that links name."""


def pause_s(visits: int, new_visits: int, elapsed_s: float) -> float:
    """Return the time until a host is examined again, seconds.

    Args:
        visits: of the host.
        new_visits: those since its last examination.
        elapsed_s: time since then.

    >>> pause_s(1_000, 100, 100.0), pause_s(1_000, 0, 100.0), pause_s(500, 500, 10.0)
    (100.0, 1800.0, 60.0)
    """
    if new_visits <= 0 or elapsed_s <= 0.0:
        return LONGEST_S
    growing_s = GROWTH_SHARE * visits * elapsed_s / new_visits
    return min(max(growing_s, SHORTEST_S), LONGEST_S)
