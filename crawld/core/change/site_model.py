"""The models of how the pages of a site change that are fitted to all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from crawld.core.change.hawkes import SHARED, Hawkes, fit_hawkes
from crawld.core.change.scale import ScaleModel, fit_scale


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


@cache
def default_site_model() -> SiteModel:
    """Return the models of a site without known history."""
    return SiteModel(fit_scale(np.zeros(0), np.zeros(1, np.int64), at=0.0), SHARED)
