"""The base of policies of the laboratory alone: their pages were never visited before."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from crawld.core.revisit.policies import PageSet


class UnvisitedPages(PageSet):
    """Loads pages one by one; times of former visits and importance have no effect."""

    @abstractmethod
    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page."""

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add pages that were never visited."""
        for page in np.asarray(pages).tolist():
            self.add(page, None)
