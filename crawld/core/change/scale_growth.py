"""How much longer than its scale promises the copy of a page stays fresh, after a long wait.

The scale is known as of the last visit. Where pages calm down, as news do after some days, the next
visit finds a page whose copy will be fresh for much longer. That shows in the histories: from each
change, one looks x scales later, the page having changed meanwhile, for which share of the x scales
after that it stays as it is. The shape of the intervals promises a share for pages that keep their
pace; the ratio of the two, by x, is a property of the site. Only growth counts.

Source: ours; the promise is the residual life of a renewal process seen at any time (Wolf et al.,
WWW 2002).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.renewal import Renewal

FloatArray = npt.NDArray[np.float64]

WAITS: Final = np.geomspace(1.0, 3_000.0, 12)
"""Waits at which the growth is known, in scales; linear in the logarithm between them, constant
after the last, and none at `_NONE_AT`."""

_NONE_AT: Final = 0.5

_NO_GROWTH: Final = 50.0
"""Weight of no growth, in changes."""

_APART_S: Final = 1e10
"""Longer than all histories: so far apart are the pages on one time axis."""


def fit_growth(
    changed_at: FloatArray,
    offsets: npt.NDArray[np.int64],
    log_scale: FloatArray,
    weight: FloatArray,
    *,
    at: float | FloatArray,
    shape: Renewal,
) -> FloatArray:
    """Return the natural logarithm of the growth at `WAITS`, >= 0.

    Args:
        changed_at: times of changes, page after page, strictly increasing within a page.
        offsets: one more than pages.
        log_scale: logarithm of the scale after each change, seconds.
        weight: of each change.
        at: time up to which the histories are complete, of all pages or of each.
        shape: distribution of gap / scale.
    """
    pages = len(offsets) - 1
    page_of = np.repeat(np.arange(pages), np.diff(offsets))
    until = np.broadcast_to(at, (pages,))[page_of]
    begins = page_of * _APART_S
    times, numbers = np.append(begins + changed_at, np.inf), np.arange(len(changed_at))
    promised = (shape.visit_value(WAITS) + WAITS * shape.equilibrium_survival(WAITS)) / WAITS
    growth = np.zeros(len(WAITS))
    for place, wait in enumerate(WAITS.tolist()):
        wait_s = wait * np.exp(log_scale)
        later = changed_at + wait_s
        after = np.searchsorted(times, begins + later, side="right")
        counts = (later + wait_s <= until) & (after > numbers + 1)
        unchanged_s = times[after[counts]] - (begins + later)[counts]
        found = weight[counts] @ np.minimum(unchanged_s / wait_s[counts], 1.0)
        known = float(weight[counts].sum())
        mean = (found + promised[place] * _NO_GROWTH) / (known + _NO_GROWTH)
        growth[place] = np.log(mean / promised[place])
    return np.maximum(growth, 0.0)


def growth_at(growth: FloatArray, waits: FloatArray) -> FloatArray:
    """Return the factor by which the scale grows in waits, in scales.

    Args:
        growth: of `fit_growth`.
    """
    known_at, known = np.log([_NONE_AT, *WAITS]), np.concatenate(([0.0], growth))
    return np.exp(np.interp(np.log(np.maximum(waits, 1e-9)), known_at, known))
