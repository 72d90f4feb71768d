"""The models of how the pages of a site change that are fitted to all of them together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.hawkes import SHARED, Hawkes, fit_hawkes
from crawld.core.change.record import MEMORY_S
from crawld.core.change.scale import ScaleModel, fit_scale

FIT_EVERY_S: Final = 6 * 3600.0
"""Pause between two fits of a site that is known for a day."""

SAMPLE_PAGES, SAMPLE_NEWEST = 2000, 1000
"""Sample that a site is fitted to: pages, and newest changes of a page."""

MIN_INTERVALS: Final = 30
"""Intervals between changes that a site needs for a model of its own."""

_GROWTH: Final = 1.25
"""A site is fitted again when so many times as many changes are known. With each twentieth more
changes instead, articles, bursts and pages born all the time were .003 to .005 less fresh."""

_HAWKES_GROWTH: Final = 1.05
"""The same of the self-exciting model alone: it ranks pages whose every change is reported, so what
is known of them does not depend on which were visited, and more fits only tell more. Lively
articles of 2006 are .002 fresher so at few visits, those of 2005 as fresh."""


@dataclass(frozen=True, slots=True)
class LastFit:
    """When a site was fitted, to how many known changes.

    Attributes:
        changes, at: of the fit of both models.
        hawkes_changes: known at the last fit of the self-exciting model, with the other or alone.
    """

    changes: int = 0
    at: float = -math.inf
    hawkes_changes: int = 0

    def is_due(self, changes: int, at: float) -> bool:
        """Whether enough is new for both models, or the fit as old as what the models remember."""
        return changes > self.changes * _GROWTH or at - self.at > MEMORY_S

    def is_hawkes_due(self, changes: int) -> bool:
        """Whether enough is new for the self-exciting model."""
        return changes > self.hawkes_changes * _HAWKES_GROWTH

    def followed_by(self, changes: int, at: float, *, of_both: bool) -> LastFit:
        """Return this after one more fit."""
        return LastFit(changes, at, changes) if of_both else LastFit(self.changes, self.at, changes)


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
    changed_at: npt.NDArray[np.float64],
    offsets: npt.NDArray[np.int64],
    *,
    at: float | npt.NDArray[np.float64],
) -> SiteModel:
    """Fit the models of a site to complete histories; arguments as in `scale.fit_scale`."""
    return SiteModel(fit_scale(changed_at, offsets, at=at), fit_hawkes(changed_at, offsets, at=at))


def fit_sample(
    histories: Sequence[Sequence[float]],
    known_until: Sequence[float],
    *,
    scale: ScaleModel | None = None,
) -> SiteModel | None:
    """Fit the models of a site to what is known of some of its pages; None if that is too little.

    Args:
        histories: known changes of each page, in any order.
        known_until: until when they are complete, of each page: its last visit. A change after it
            (the clock was set back) counts as then.
        scale: a model to keep; None: fit that of the scale, too.
    """
    pages, until = [], []
    for times, known_at in zip(histories, known_until, strict=True):
        if len(times):
            pages.append(np.unique(np.minimum(times, known_at)))
            until.append(known_at)
    if sum(len(times) - 1 for times in pages) < MIN_INTERVALS:
        return None
    offsets = np.cumsum([0, *map(len, pages)], dtype=np.int64)
    changed_at, at = np.concatenate(pages), np.array(until)
    if scale is not None:
        return SiteModel(scale, fit_hawkes(changed_at, offsets, at=at))
    return fit_site(changed_at, offsets, at=at)


@cache
def default_site_model() -> SiteModel:
    """Return the models of a site without known history."""
    return SiteModel(fit_scale(np.zeros(0), np.zeros(1, np.int64), at=0.0), SHARED)
