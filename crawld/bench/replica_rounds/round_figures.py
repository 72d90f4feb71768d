"""What the rounds show: pages that rest and differ, wrong verdicts, requests saved, hijacks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from crawld.bench.replica_rounds.calibration import calibration_error, decile_counts
from crawld.bench.replica_rounds.compared_again import ComparedAgain
from crawld.bench.replica_rounds.diverged_copies import DivergedCopies
from crawld.bench.replica_rounds.found_copies import DeferredWaits, FoundCopies
from crawld.bench.replica_rounds.page_truth import PageTruth
from crawld.bench.replica_rounds.rounds_web import decidable_groups
from crawld.bench.replica_rounds.simulated_crawl import NEVER_DAY, REVISIT_DAYS, SimulatedCrawl
from crawld.bench.replica_rounds.unsaved_requests import UnsavedCause, UnsavedRequests
from crawld.core.replica.hosts import Ids
from crawld.simweb.lookalike.web import LookalikeWeb

_EQUAL_SHARE: Final = 0.8
"""Share of the pages that an attacker must have in common with its victim to be its replica."""

_LEAST_EQUAL_SHARE: Final = 0.5
"""The same for copies of one site, of `_COUNTED` pages or more."""

_COUNTED: Final = 10

_CHANGING: Final = ("diverging_copies", "latest", "turning_copier", "large_sites", "moves")
"""Kinds whose truth changes: their verdicts may change too."""

Verdict = tuple[int, int]
"""A host that is declared a replica, and its canonical host, by their numbers in the web."""


def unsaved_name(cause: UnsavedCause) -> str:
    """Return the name of the metric that counts the requests of a cause."""
    return f"unsaved_{cause}_requests"


@dataclass(slots=True)
class SavedVisits:
    """Visits of the pages that a group of copies has in common.

    Attributes:
        slots: those that a crawl without rest makes.
        savable: those that an oracle saves: all but one host's.
        made: those made.
    """

    slots: float = 0.0
    savable: float = 0.0
    made: float = 0.0


@dataclass(slots=True)
class RoundFigures:
    """Collects the figures of one run, step by step.

    Attributes:
        differing: pages that rested though they differed when last compared, by kind of host.
        wrong: wrong verdicts.
        declared: all verdicts.
        hijacked: victims of which a page rested under an attacker.
        deferred: pages that were deferred, and which of them differed then.
        diverged: copies that begin to differ.
        reversals: how often a verdict on two hosts ended.
        saved: requests by group of copies.
        unsaved: requests for pages of copies that an oracle would not have made, by cause.
        copies: which copies rested, by what is different on their pages.
        waits: how long deferred pages wait for their first visit.
        again: visits of pages that had rested.
    """

    web: LookalikeWeb
    crawl: SimulatedCrawl
    truth: PageTruth
    differing: dict[int, str] = field(default_factory=dict)
    declared: set[Verdict] = field(default_factory=set)
    wrong: dict[Verdict, str] = field(default_factory=dict)
    hijacked: set[int] = field(default_factory=set)
    deferred: set[int] = field(default_factory=set)
    deferred_differing: set[int] = field(default_factory=set)
    diverged: DivergedCopies = field(init=False)
    reversals: Counter[frozenset[int]] = field(default_factory=Counter)
    saved: dict[tuple[int, ...], SavedVisits] = field(default_factory=dict)
    unsaved: UnsavedRequests = field(default_factory=UnsavedRequests)
    copies: FoundCopies = field(init=False)
    waits: DeferredWaits = field(default_factory=DeferredWaits)
    again: ComparedAgain = field(init=False)
    _active: set[Verdict] = field(default_factory=set)
    _known: dict[tuple[int, int, float], bool] = field(default_factory=dict)
    _visits_before: Ids = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _groups: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._groups = decidable_groups(self.web)
        self.copies = FoundCopies(self.web, self._groups)
        self._visits_before = self.crawl.visits.copy()
        self.diverged = DivergedCopies(self.web, self.crawl)
        self.again = ComparedAgain(self.crawl, self.truth)

    def note(
        self,
        day: float,
        verdicts: Sequence[Verdict],
        twins: Mapping[int, int],
        resting: Mapping[int, int],
    ) -> None:
        """Add the state after a step.

        Args:
            verdicts: the hosts declared replicas now.
            twins: the host for which pages of each host may rest.
            resting: the host with the twin of each page that rests now, by its index.
        """
        self._note_verdicts(day, verdicts)
        self._note_resting(day, twins, resting)
        self.diverged.note_resting(day, resting)
        self.again.note(resting)
        self._note_savings(day)

    def _note_verdicts(self, day: float, verdicts: Sequence[Verdict]) -> None:
        now = set(verdicts)
        for host, canonical in self._active - now:
            self.reversals[frozenset((host, canonical))] += 1
        for one in now - self.declared:
            self.declared.add(one)
            if why := self._why_wrong(*one, day):
                self.wrong[one] = why
        self._active = now

    def _why_wrong(self, host: int, canonical: int, day: float) -> str:
        here, there = self.web.hosts[host], self.web.hosts[canonical]
        if not self._is_replica(host, canonical, day):
            return f"{here.kind}: {here.name} is no copy of {there.name}"
        if not there.keepable and here.victim != canonical:
            return f"{here.kind}: {there.name} is not to be kept instead of {here.name}"
        count, share = self.web.equal_share(host, canonical, day)
        if count >= _COUNTED and share < _LEAST_EQUAL_SHARE:
            return f"{here.kind}: {share:.2f} of {count} pages of {here.name} agree now"
        return ""

    def _is_replica(self, host: int, canonical: int, day: float) -> bool:
        """Whether a host may be declared a replica: of its site, or of the victim it copies."""
        if self.web.are_copies(host, canonical):
            return True
        attack = self.web.hosts[host].victim == canonical
        return attack and self.web.equal_share(host, canonical, day)[1] >= _EQUAL_SHARE

    def _note_resting(
        self, day: float, twins: Mapping[int, int], resting: Mapping[int, int]
    ) -> None:
        by_hosts: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, to in resting.items():
            by_hosts[int(self.crawl.host_of[index]), to].append(index)
        self.copies.note(twins, {host for host, _ in by_hosts})
        unvisited = (index for index in resting if not self._is_visited(index))
        self.waits.note(day, unvisited, self._is_visited)
        for (host, to), indexes in by_hosts.items():
            if self.web.hosts[to].victim >= 0 and self.web.hosts[host].victim < 0:
                self.hijacked.add(host)
            found = np.array(sorted(indexes))
            seen = self.crawl.visited_day[found]
            visited, first = seen > NEVER_DAY, self.crawl.first_page[host]
            new = [
                index
                for index in found[visited].tolist()
                if (index, to, self.crawl.visited_day[index]) not in self._known
            ]
            if new:
                these = np.array(new)
                days = self.crawl.visited_day[these]
                differs = self.truth.differs(host, to, these - first, days)
                for index, when, one in zip(new, days.tolist(), differs.tolist(), strict=True):
                    self._known[index, to, when] = one
                    if one:
                        self.differing[index] = self.web.hosts[host].kind
            rest = found[~visited]
            if len(rest):
                self.deferred.update(rest.tolist())
                now = self.truth.differs(host, to, rest - first, np.full(len(rest), day))
                self.deferred_differing.update(rest[now].tolist())

    def _is_visited(self, index: int) -> bool:
        return bool(self.crawl.visited_day[index] > NEVER_DAY)

    def _note_savings(self, day: float) -> None:
        made = self.crawl.visits - self._visits_before
        self._visits_before = self.crawl.visits.copy()
        if day < self.crawl.step_days:
            return  # no regular visit was due yet
        slots = self.crawl.step_days / REVISIT_DAYS
        for group in self._groups:
            shown: dict[tuple[str, int], list[int]] = defaultdict(list)
            for host in group:
                pages = self.web.hosts[host].pages
                first = int(self.crawl.first_page[host])
                keys = self.truth.content_at(host, day).tolist()
                for at, path in enumerate(pages.paths):
                    if self.crawl.visited_day[first + at] > NEVER_DAY and keys[at]:
                        shown[path, keys[at]].append(first + at)
            for indexes in shown.values():
                if len(indexes) > 1:
                    saved = self.saved.setdefault(group, SavedVisits())
                    saved.slots += len(indexes) * slots
                    saved.savable += (len(indexes) - 1) * slots
                    saved.made += float(made[indexes].sum())
                    hosts = self.crawl.host_of[indexes].tolist()
                    self.unsaved.add(indexes, hosts, made[indexes].tolist(), slots)

    def metrics(self, pairs: Sequence[tuple[int, int, float | None]]) -> dict[str, float]:
        """Return the figures; `pairs` are two numbers of hosts and their probability."""
        unprovoked = [
            count
            for pair, count in self.reversals.items()
            if not any(self.web.hosts[one].kind in _CHANGING for one in pair)
        ]
        attacked = {host.victim for host in self.web.hosts if host.victim >= 0}
        deciles = decile_counts(self._judged(pairs))
        return {
            "resting_differing_pages": float(len(self.differing)),
            "declared": float(len(self.declared)),
            "wrong_verdicts": float(len(self.wrong)),
            "wrong_verdicts_per_1000": 1_000.0 * len(self.wrong) / max(1, len(self.declared)),
            "requests_saved_share": self._saved_share(),
            "calibration_error_max": calibration_error(deciles),
            **deciles,
            "deferred_pages": float(len(self.deferred)),
            "deferred_differing_pages": float(len(self.deferred_differing)),
            "deferred_differing_share": len(self.deferred_differing) / max(1, len(self.deferred)),
            "deferred_wait_days_max": self.waits.longest_days,
            **self.copies.figures(),
            "attacks": float(len(attacked)),
            "hijacks_won": float(len(self.hijacked & attacked)),
            "reversals_max": float(max(unprovoked, default=0)),
            "reversed_pairs": float(len(unprovoked)),
            **self.diverged.figures(),
            **self.again.figures(),
            "saved_requests": self._saved(),
            "savable_requests": sum(one.savable for one in self.saved.values()),
            **{unsaved_name(cause): self.unsaved.counts[cause] for cause in UnsavedCause},
        }

    def _saved_share(self) -> float:
        savable = sum(one.savable for one in self.saved.values())
        return self._saved() / max(1.0, savable)

    def _saved(self) -> float:
        return sum(one.slots - one.made for one in self.saved.values())

    def _judged(self, pairs: Sequence[tuple[int, int, float | None]]) -> list[tuple[float, bool]]:
        """Return of each pair with a probability this, and whether it is one of replicas."""
        day = self.crawl.day
        return [
            (said, self._is_replica(one, other, day) or self._is_replica(other, one, day))
            for one, other, said in pairs
            if said is not None
        ]
