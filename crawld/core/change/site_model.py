"""The models of how the pages of a site change that are fitted to all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.hawkes import SHARED, Hawkes, fit_hawkes
from crawld.core.change.scale import ScaleModel, fit_scale

FIT_EVERY_S: Final = 6 * 3600.0
"""Pause between two fits of a site that is known for a day."""

SAMPLE_PAGES, SAMPLE_NEWEST = 2000, 200
"""Sample that a site is fitted to: pages, and newest changes of a page."""

MIN_INTERVALS: Final = 30
"""Intervals between changes that a site needs for a model of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class SiteModel:
    """The models of one site.

    Attributes:
        scale: time scale and shape of the intervals, for pages that nobody reports.
        hawkes: the self-exciting model, for pages that were reported to have changed.
    """

    scale: ScaleModel
    hawkes: Hawkes

    def as_dict(self) -> dict[str, list[float]]:
        """Return plain values for JSON."""
        return self.scale.as_dict() | self.hawkes.as_dict()

    @classmethod
    def from_dict(cls, values: Mapping[str, Sequence[float]]) -> SiteModel:
        """Return the model of `as_dict`; one of before the self-exciting model gets the shared one.

        Raises:
            ValueError: a part is of another version.
        """
        hawkes = Hawkes.from_dict(values) if "excitation" in values else SHARED
        return cls(ScaleModel.from_dict({name: list(values[name]) for name in values}), hawkes)


def fit_site(
    changed_at: npt.NDArray[np.float64], offsets: npt.NDArray[np.int64], *, at: float
) -> SiteModel:
    """Fit the models of a site to complete histories; arguments as in `scale.fit_scale`."""
    return SiteModel(fit_scale(changed_at, offsets, at=at), fit_hawkes(changed_at, offsets, at=at))


def fit_sample(histories: Sequence[Sequence[float]], *, at: float) -> SiteModel | None:
    """Fit the models of a site to what is known of some of its pages; None if that is too little.

    Args:
        histories: known changes of each page, in any order; one after `at` (the clock was set back)
            counts as now.
        at: now. A page counts as unchanged since its last known change: pages are visited the more
            rarely the calmer they are, and what no visit has found yet is not known.
    """
    pages = [np.unique(np.minimum(times, at)) for times in histories if len(times)]
    if sum(len(times) - 1 for times in pages) < MIN_INTERVALS:
        return None
    offsets = np.cumsum([0, *map(len, pages)], dtype=np.int64)
    return fit_site(np.concatenate(pages), offsets, at=at)


@cache
def default_site_model() -> SiteModel:
    """Return the models of a site without known history."""
    return SiteModel(fit_scale(np.zeros(0), np.zeros(1, np.int64), at=0.0), SHARED)
