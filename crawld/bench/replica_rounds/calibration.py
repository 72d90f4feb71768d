"""What was said of pairs of hosts, against the truth, as counts that can be added over runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

DECILES: Final = 10

LEAST_PAIRS: Final = 50
"""A decile with fewer pairs says nothing of the probability."""

_COUNTS: Final = ("pairs", "said", "replicas")
"""Of a decile: its pairs, the sum of their probabilities, and how many are replicas."""


def decile_name(decile: int, count: str) -> str:
    """Return the name of a figure of a decile, 0 to 9.

    >>> decile_name(9, "pairs")
    'decile_9_pairs'
    """
    return f"decile_{decile}_{count}"


DECILE_NAMES: Final = tuple(
    decile_name(decile, count) for decile in range(DECILES) for count in _COUNTS
)
"""The names of the figures of `decile_counts`."""


def decile_counts(pairs: Iterable[tuple[float, bool]]) -> dict[str, float]:
    """Return the counts by decile of the probability.

    Args:
        pairs: of each pair the probability, and whether it is one of replicas.
    """
    found = dict.fromkeys(DECILE_NAMES, 0.0)
    for said, is_replica in pairs:
        decile = min(DECILES - 1, int(DECILES * said))
        for count, value in zip(_COUNTS, (1.0, said, float(is_replica)), strict=True):
            found[decile_name(decile, count)] += value
    return found


def calibration_error(figures: Mapping[str, float]) -> float:
    """Return by how much the probability is off at most, over deciles with enough pairs.

    Args:
        figures: the counts of `decile_counts`, or their sums over some runs.
    """
    errors = [0.0]
    for decile in range(DECILES):
        pairs, said, true = (figures[decile_name(decile, count)] for count in _COUNTS)
        if pairs >= LEAST_PAIRS:
            errors.append(abs(said - true) / pairs)
    return max(errors)


def deciles_as_markdown(figures: Mapping[str, float]) -> str:
    """Return the deciles that have pairs as a table."""
    lines = ["| probability | pairs | mean | replicas |", "|---|---|---|---|"]
    for decile in range(DECILES):
        pairs, said, true = (figures[decile_name(decile, count)] for count in _COUNTS)
        if pairs:
            begin, end = decile / DECILES, (decile + 1) / DECILES
            mean, share = said / pairs, true / pairs
            lines.append(f"| {begin:.1f} to {end:.1f} | {pairs:.0f} | {mean:.3f} | {share:.3f} |")
    return "\n".join(lines)
