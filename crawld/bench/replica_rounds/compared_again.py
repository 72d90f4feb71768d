"""Whether a page at rest that differs returns with the visit that shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from crawld.bench.replica_rounds.page_truth import PageTruth
from crawld.bench.replica_rounds.simulated_crawl import SimulatedCrawl
from crawld.simweb.lookalike.pages import Days


@dataclass(slots=True)
class ComparedAgain:
    """Counts the visits of pages that rested until then, and what became of those that differed.

    Attributes:
        samples: visits of pages that had rested.
        differing: those in which the page differed from its twin.
        still_resting: pages that differed, and rest under the same host without another visit.
    """

    crawl: SimulatedCrawl
    truth: PageTruth
    samples: int = 0
    differing: int = 0
    still_resting: int = 0
    _rested: dict[int, int] = field(default_factory=dict)
    _visited_day: Days = field(init=False)

    def __post_init__(self) -> None:
        self._visited_day = self.crawl.visited_day.copy()

    def note(self, resting: Mapping[int, int]) -> None:
        """Note a step.

        Args:
            resting: the host with the twin of each page that rests now, by its index.
        """
        visited = np.flatnonzero(self.crawl.visited_day > self._visited_day).tolist()
        by_hosts: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index in visited:
            if index in self._rested:
                by_hosts[int(self.crawl.host_of[index]), self._rested[index]].append(index)
        for (host, to), indexes in by_hosts.items():
            pages = np.array(indexes) - self.crawl.first_page[host]
            differs = self.truth.differs(host, to, pages, self.crawl.visited_day[indexes])
            self.samples += len(indexes)
            self.differing += int(differs.sum())
            self.still_resting += sum(
                bool(one) and resting.get(index) == to
                for index, one in zip(indexes, differs.tolist(), strict=True)
            )
        # A page waits for its visit without rest.
        for index in visited:
            self._rested.pop(index, None)
        self._rested |= resting
        self._visited_day = self.crawl.visited_day.copy()

    def figures(self) -> dict[str, float]:
        """Return the counts."""
        return {
            "samples": float(self.samples),
            "differing_samples": float(self.differing),
            "differing_samples_resting": float(self.still_resting),
        }
