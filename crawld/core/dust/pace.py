"""When the URLs of a host are examined again: when its visits have grown by a share, or pairs wait.

An examination that asked for visits is followed by another one when these were made. A trial asks
for one pair, then for one more, two and four, and needs some twenty. If each step waited for
the host to grow by a tenth, its visits would double until the rule is learnt. So rules are learnt
within the first hundredths of a crawl, whether it makes ten visits a second or ten a minute, and a
host that stands still costs one examination in half an hour.
"""

from __future__ import annotations

from typing import Final

SHORTEST_S: Final = 15.0
LONGEST_S: Final = 1_800.0

GROWTH_SHARE: Final = 0.1
"""Growth of the visits of a host from one examination to the next."""

ANSWERED_SHARE: Final = 0.03
"""The same where visits were asked for: an examination costs as much as some twenty visits."""

VALIDATION_SHARE: Final = 0.01
"""Most visits for validation: a share of the URLs of a host that links name, or of its visits."""


def next_after(visits: int, asked: int) -> int:
    """Return after how many more visits of a host it is examined again.

    Args:
        visits: of the host.
        asked: those that the last examination asked for, which come first.

    >>> next_after(1_000, 0), next_after(1_000, 40), next_after(1_000, 2), next_after(100, 40)
    (100, 40, 30, 10)
    """
    growing = max(1, int(GROWTH_SHARE * visits))
    return min(growing, max(asked, int(ANSWERED_SHARE * visits))) if asked else growing


def pause_s(visits: int, new_visits: int, elapsed_s: float, asked: int = 0) -> float:
    """Return the time until a host is examined again, seconds.

    Args:
        visits: of the host.
        new_visits: those since its last examination.
        elapsed_s: time since then.
        asked: visits that the examination which ends has asked for.

    >>> pause_s(1_000, 100, 100.0), pause_s(1_000, 0, 100.0), pause_s(500, 500, 10.0)
    (100.0, 1800.0, 15.0)
    >>> pause_s(1_000, 100, 100.0, asked=40)
    40.0
    """
    if new_visits <= 0 or elapsed_s <= 0.0:
        return LONGEST_S
    wanted_s = next_after(visits, asked) * elapsed_s / new_visits
    return min(max(wanted_s, SHORTEST_S), LONGEST_S)
