"""Simulated hints: late, incomplete and partly false, like those of real sources.

The last change of each page before the start is reported at the start, so that the policy knows
since when the copies are stale.
"""

from __future__ import annotations

import numpy as np

from crawld.core.change.reliability import MatchCounts, Reliability, match_hints
from crawld.core.revisit.policies import Policy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.lab.hint_options import HintOptions
from crawld.lab.scenario import Scenario


class HintFeed:
    """The hints of one run, in order of arrival."""

    def __init__(self, scenario: Scenario, hints: HintOptions) -> None:
        rng = np.random.default_rng([scenario.seed, 5])
        page, changed = _draw_hints(scenario, hints, rng)
        arrival = changed + hints.lag_s
        if hints.poll_s:
            arrival = scenario.start + hints.poll_s * np.ceil(
                (arrival - scenario.start) / hints.poll_s
            )
        order = np.argsort(arrival, kind="stable")
        order = order[arrival[order] < scenario.end]
        self._page: list[int] = page[order].tolist()
        self._changed: list[float] = changed[order].tolist()
        self._arrival: list[float] = [*arrival[order].tolist(), np.inf]
        self._next = 0
        self._options = hints
        self._start = scenario.start
        self._told_until = -np.inf
        self._pending: dict[int, list[float]] = {}
        self._visited_at: dict[int, float] = {}
        self._untold: set[tuple[int, float]] = set()
        self.reliability = Reliability()

    def deliver(self, policy: Policy, at: float) -> None:
        """Pass arrived hints to the policy, with the current trust in their source."""
        self._told_until = self._reported_until(at)
        while self._arrival[self._next] <= at:
            page, changed_at = self._page[self._next], self._changed[self._next]
            if changed_at < self._start:
                policy.record_hint(page, changed_at)
            else:
                self._note(page, changed_at)
                self.reliability.learn_lag(self._arrival[self._next] - changed_at)
                policy.record_hint(page, changed_at, trust=self.reliability.effective_trust)
            self._next += 1
        self._settle()

    def _reported_until(self, at: float) -> float:
        """Return the time whose changes the source has reported by now."""
        if poll_s := self._options.poll_s:
            at = self._start + poll_s * np.floor((at - self._start) / poll_s)
        return at - self._options.lag_s

    def _note(self, page: int, changed_at: float) -> None:
        """Keep a hint until a visit judges it; that of a change already seen is judged at once."""
        if changed_at > self._visited_at.get(page, -np.inf):
            self._pending.setdefault(page, []).append(changed_at)
            return
        late = (page, changed_at) in self._untold
        self._untold.discard((page, changed_at))
        self.reliability.learn_exact(MatchCounts(int(late), int(not late), int(late), 0))

    def _settle(self) -> None:
        """Count as missed what visits found and the source can no longer report."""
        missed = [each for each in self._untold if each[1] <= self._told_until]
        if missed:
            self._untold.difference_update(missed)
            self.reliability.learn_exact(MatchCounts(0, 0, 0, len(missed)))

    def record_visit(self, policy: Policy, page: int, changed_at: list[float], at: float) -> None:
        """Match the changes a visit found with the hints, and update the policy's coverage.

        As in the daemon, a change that its source may still report waits: it is no missed one.
        """
        self._visited_at[page] = at
        reported = self._pending.pop(page, [])
        # What happened before the start was told at the start.
        found = [each for each in changed_at if each >= self._start]
        untold = {each for each in found if each > self._told_until}.difference(reported)
        self._untold.update((page, each) for each in untold)
        settled = [each for each in found if each not in untold]
        self.reliability.learn_exact(match_hints(reported, settled, tolerance_s=1.0))
        if isinstance(policy, IndexPolicy):
            policy.set_coverage(self.reliability.effective_missed_share, self.reliability.lag_s())

    def takes_slot(self, slot: int) -> bool:
        """Whether a slot is used for polling; polls are evenly spread."""
        share = self._options.poll_share
        return int((slot + 1) * share) > int(slot * share)


def _draw_hints(
    scenario: Scenario, hints: HintOptions, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return page and time of every hint, of the last change before the start and of later ones."""
    histories = scenario.histories
    pages = np.repeat(np.arange(len(histories)), histories.counts)
    times = histories.changed_at
    inside = (times >= scenario.start) & (times < scenario.end)
    inside &= rng.random(times.size) >= hints.miss
    before = histories.changes_in(-np.inf, scenario.start)
    last = (histories.offsets[:-1] + before - 1)[before > 0]
    count = round(int(inside.sum()) * hints.false / (1.0 - hints.false))
    lies = rng.uniform(scenario.start, scenario.end, count)
    liars = rng.integers(0, len(histories), count)
    page = np.concatenate([pages[last], pages[inside], liars])
    return page, np.concatenate([times[last], times[inside], lies])
