"""The least number of requests that show the changes of a storm in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.peer.storm.watch import Expectation, Watched

LIMITS_S = {
    "edit": 20.0,
    "deletion": 10.0,
    "move": 10.0,
    "image": 60.0,
    "membership": 30.0,
    "fan_out_50": 180.0,
}
"""Within which a change is to be visible. Others need to be so at the end."""


def least_requests(
    watched: Iterable[Watched], outage: tuple[float, float] | None, catch_up_s: float
) -> int:
    """Return how many copies must be fetched, polls left out: one shows all changes before it.

    Args:
        outage: start and end, if there was one; what meets it has `catch_up_s` after its end.
    """
    return sum(_copies(each.expectations, outage, catch_up_s) for each in watched)


def _copies(
    expectations: Sequence[Expectation], outage: tuple[float, float] | None, catch_up_s: float
) -> int:
    """Return the least number of times of which each window of one URL has one."""
    changes = [each for each in expectations if each.row not in ("start", "outside", "left")]
    if not changes:
        return 0
    windows = []
    for each in changes:
        if (limit_s := LIMITS_S.get(each.row)) is not None:
            until = each.at + limit_s
            if outage is not None and each.at < outage[1] and until > outage[0]:
                until = max(until, outage[1] + catch_up_s)
            windows.append((until, each.at))
    count, fetched_at = 0, float("-inf")
    for until, at in sorted(windows):
        if fetched_at < at:
            count, fetched_at = count + 1, until
    return count + (fetched_at < max(each.at for each in changes))
