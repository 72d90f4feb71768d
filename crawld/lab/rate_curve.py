"""The optimal revisit frequency over the change rate: it rises, falls, and ends at zero.

Visits to a page that changes much faster than it can be visited are wasted, so that the best
frequency f(λ) is neither uniform nor proportional. For pages whose changes come in bursts the curve
is another one at the same rates: most of their time is quiet.

Source: Oslo thesis, figure 4.2; Cho & Garcia-Molina, TODS 2003, section 5 (figure 9, and table 2:
five pages that change 1 to 5 times a day, five visits a day).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.renewal import EDGES_S, Renewal, exponential_mass
from crawld.core.revisit.allocation import allocate
from crawld.core.revisit.freshness import Order, mean_age
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.price import revisit_frequency
from crawld.core.revisit.renewal_allocation import renewal_frequency
from crawld.core.units import DAY_S

Floats = NDArray[np.float64]

PUBLISHED: Final = (1.15, 1.36, 1.35, 1.14, 0.0)
"""Visits per day of the five pages, as printed."""

_POINTS: Final = 81
_BURST_SHARE: Final = 0.8
_BURST_GAP: Final = 0.02


def five_pages() -> tuple[list[dict[str, object]], float]:
    """Allocate visits to the five published pages.

    Returns:
        Rows, and the price in fresh days a visit. A page without visits grows infinitely old
        (None), where equal visits keep all ages small: the price of freshness.
    """
    rate = np.arange(1.0, 6.0)
    web = PagesByHost(rate, np.array([0, 5]), np.array([np.inf]))
    found = allocate(web, 5.0)
    ages = [mean_age(Order.FIXED, rate, f).tolist() for f in (found.frequency, np.ones(5))]
    rows: list[dict[str, object]] = [
        {
            "changes": "five pages",
            "rate_per_day": per_day,
            "published": printed,
            "visits_per_day": visits,
            "age_days": age if np.isfinite(age) else None,
            "age_days_if_equal": equal,
        }
        for per_day, printed, visits, age, equal in zip(
            rate.tolist(), PUBLISHED, found.frequency.tolist(), *ages, strict=True
        )
    ]
    return rows, float(found.price[0])


def curve(price_days: float) -> list[dict[str, object]]:
    """Return f(λ) at a price, for pages that change at random and for pages that change in bursts.

    Args:
        price_days: μ, fresh days a visit.

    Returns:
        Rows: changes, rate_per_day, visits_per_day.
    """
    rate = np.geomspace(0.02, 1.5 / price_days, _POINTS)
    lines = {
        "at random": revisit_frequency(rate, price_days),
        "in bursts": renewal_frequency(_bursty(rate), price_days * DAY_S) * DAY_S,
    }
    return [
        {"changes": name, "rate_per_day": at, "visits_per_day": visits}
        for name, line in lines.items()
        for at, visits in zip(rate.tolist(), line.tolist(), strict=True)
    ]


def _bursty(rate: Floats) -> Renewal:
    """Return pages of which four intervals of five are fifty times shorter than their mean."""
    quiet = (1.0 - _BURST_SHARE * _BURST_GAP) / (1.0 - _BURST_SHARE)
    per_s = rate / DAY_S
    short, long = exponential_mass(per_s / _BURST_GAP), exponential_mass(per_s / quiet)
    return Renewal(EDGES_S, _BURST_SHARE * short + (1.0 - _BURST_SHARE) * long)
