"""A wiki with a mirror, second by second: which copies are stale, and what the mirror knows of it.

The world knows nothing of the formulas that are tested: pages change by their own rates, in bursts,
and by edits of templates; the source lags, misses changes or is silent; outages stop the mirror and
not the edits. The mirror learns with the objects of the daemon (`Reliability`, `PageModel`,
`Arrivals`), from what it can see only.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from crawld.core.change.arrivals import Arrivals
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.prior import Gamma
from crawld.core.change.reliability import HintGroup, Reliability
from crawld.core.revisit.freshness_now import (
    EditedTemplate,
    FanOut,
    QuietCopies,
    ReportedCopies,
    ShareEvidence,
    SiteEvidence,
)
from crawld.core.revisit.quiet_visits import QuietVisits
from crawld.core.revisit.template_sizes import like_others

AUDIT_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """What happens in a world; rates are per second.

    Attributes:
        edits: edits of pages. zipf: exponent of their skew. bursts: mean length of a burst and of
            the calm around it, seconds; edits happen in bursts only.
        templates: pages that each template affects. template_edits: edits of templates.
        visible: share of the edits of templates that change what pages show.
        calm_until: when the edits begin, seconds.
        missed: share of the edits that the source does not report. hints: whether it reports any.
        outages: (from, until), seconds.
        listing: chance of each slot to list the pages of an edited template that waits.
        prior_days: mean interval between changes that the models assume at first.
    """

    pages: int = 300
    edits: float = 0.3
    zipf: float = 0.8
    bursts: tuple[float, float] | None = None
    calm_until: float = 0.0
    templates: tuple[int, ...] = ()
    template_edits: float = 0.0
    visible: float = 1.0
    missed: float = 0.0
    hints: bool = True
    silent_from: float = math.inf
    outages: tuple[tuple[float, float], ...] = ()
    poll_s: int = 5
    listing: float = 0.3
    delay_s: int = 1
    audit_share: float = AUDIT_SHARE
    prior_days: float = 30.0


@dataclass
class _Page:
    model: PageModel
    shape: float = 0.0
    visited_at: float = 0.0
    stale: bool = False
    hints: dict[str, float] = field(default_factory=dict)

    def update(self, seen: Observation) -> None:
        """Let its model learn; keep what is asked of its posterior more often than it learns."""
        self.model.update(seen)
        self.shape = self.model.posterior().shape


class World:
    """Advances second by second; `truth` and `evidence` may be asked for at any time."""

    def __init__(self, settings: WorldSettings, seed: int) -> None:
        self.settings = settings
        self.now = 0.0
        self._rng = random.Random(seed)
        prior = Gamma(0.5, 0.5 * settings.prior_days * 86_400.0)
        self._pages = [_Page(PageModel(prior=prior)) for _ in range(settings.pages)]
        for page in self._pages:
            page.update(Observation(0.0, changed=False))
        weights = [(rank + 1) ** -settings.zipf for rank in range(settings.pages)]
        self._rng.shuffle(weights)
        self._weights = list(itertools.accumulate(weights))
        self._visited = dict.fromkeys(range(settings.pages))  # the oldest visit first
        self._by_edit: set[int] = set()
        self._by_listing: set[int] = set()
        pages = range(settings.pages)
        self._templates = [self._rng.sample(pages, size) for size in settings.templates]
        self._log: list[tuple[float, int]] = []
        self._template_log: list[tuple[float, int]] = []
        self._pending: list[tuple[float, int]] = []
        self._sizes: dict[int, float] = {}
        self._listed_at: dict[int, float] = {}
        self._source = {"edits": Reliability(), "fan_out": Reliability()}
        self._template_arrivals = Arrivals()
        self._untold: dict[int, float] = {}
        self._told_until = 0.0
        self._quiet_visits = QuietVisits()
        self._bursting = True

    @property
    def truth(self) -> float:
        """Share of the copies that equal their page."""
        return 1.0 - sum(page.stale for page in self._pages) / len(self._pages)

    def run(self, until: float) -> None:
        """Let time pass."""
        while self.now < until:
            self.now += 1.0
            self._edit()
            out = any(start <= self.now < end for start, end in self.settings.outages)
            if not out and self.now % self.settings.delay_s == 0:
                self._slot()

    # --- the wiki ---------------------------------------------------------------------------------

    def _edit(self) -> None:
        settings, rng = self.settings, self._rng
        rate = settings.edits * (self.now >= settings.calm_until)
        if settings.bursts is not None:
            mean_s = settings.bursts[0 if self._bursting else 1]
            if rng.random() < 1.0 / mean_s:
                self._bursting = not self._bursting
            rate *= self._bursting
        for _ in range(_poisson(rng, rate)):
            (place,) = rng.choices(range(len(self._pages)), cum_weights=self._weights)
            self._pages[place].stale = True
            silent = self.now >= settings.silent_from
            if settings.hints and not silent and rng.random() >= settings.missed:
                self._log.append((self.now, place))
        for _ in range(_poisson(rng, settings.template_edits)):
            number = rng.randrange(len(self._templates))
            if rng.random() < settings.visible:
                for place in self._templates[number]:
                    self._pages[place].stale = True
            self._template_log.append((self.now, number))

    # --- the mirror -------------------------------------------------------------------------------

    def _slot(self) -> None:
        settings, rng = self.settings, self._rng
        if rng.random() < settings.audit_share:
            self._visit(rng.randrange(len(self._pages)))
        elif settings.hints and self.now - self._told_until >= settings.poll_s:
            self._poll()
        elif self._pending and rng.random() < settings.listing:
            self._list_pages()
        else:
            wanted = self._by_edit or self._by_listing or self._visited
            self._visit(next(place for place in self._visited if place in wanted))

    def _poll(self) -> None:
        source, newly, until = self._source["edits"], 0, self.now - 1.0
        for at, place in self._log:
            page = self._pages[place]
            if at > page.visited_at:
                newly += "edits" not in page.hints
                page.hints["edits"] = self.now
                self._by_edit.add(place)
            elif self._untold.pop(place, None) is not None:
                source.learn_visit(1, changed=True)
                newly += 1
        self._log = []
        source.arrivals.add(newly, until - self._told_until)
        self._template_arrivals.add(len(self._template_log), until - self._told_until)
        self._pending += self._template_log
        self._template_log = []
        self._told_until = until
        for place, at in list(self._untold.items()):
            if at <= until and not self._pending:
                del self._untold[place]
                self._quiet_visits.stale += 1.0
                source.missing.add(1.0, 0.0)

    def _list_pages(self) -> None:
        at, number = self._pending.pop(0)
        self._sizes[number] = float(len(self._templates[number]))
        self._listed_at[number] = self.now
        for place in self._templates[number]:
            page = self._pages[place]
            if at > page.visited_at:
                page.hints.setdefault("fan_out", self.now)
                self._by_listing.add(place)
            else:
                self._untold.pop(place, None)

    def _visit(self, place: int) -> None:
        page = self._pages[place]
        changed = page.stale
        interval_s = self.now - page.visited_at
        expected = -math.expm1(-page.model.rate * interval_s)
        for kind in page.hints:
            self._source[kind].learn_visit(1, changed=changed, expected=expected)
        if "fan_out" in page.hints:
            self._source["fan_out"].learn_group(page.hints["fan_out"], changed=changed)
        if changed and not page.hints and self.settings.hints:
            self._untold[place] = self.now
        if not page.hints:
            self._quiet_visits.add(changed=changed, expected=expected, exposure_s=interval_s)
            self._quiet_visits.stale += changed and not self.settings.hints
            self._quiet_visits.decay()
        page.update(Observation(self.now, changed=changed, interval_s=interval_s))
        page.hints, page.stale, page.visited_at = {}, False, self.now
        self._by_edit.discard(place)
        self._by_listing.discard(place)
        del self._visited[place]
        self._visited[place] = None

    # --- what the mirror knows --------------------------------------------------------------------

    def evidence(self) -> SiteEvidence:
        """Return what the mirror knows."""
        quiet = [page for page in self._pages if not page.hints]
        since = np.array([self.now - page.visited_at for page in quiet])
        told = self._told_until if self.settings.hints else -math.inf
        covered = np.array([max(told - page.visited_at, 0.0) for page in quiet])
        edits, fan_out = self._source["edits"], self._source["fan_out"]
        by_edit = sum("edits" in page.hints for page in self._pages)
        waiting = Counter(
            page.hints["fan_out"]
            for page in self._pages
            if page.hints and "edits" not in page.hints
        )
        groups = {group.heard_at: group for group in fan_out.groups}
        return SiteEvidence(
            copies=len(self._pages),
            quiet=QuietCopies(
                np.array([page.model.rate for page in quiet]),
                np.array([page.shape for page in quiet]),
                covered,
                since - covered,
            ),
            reported=[
                ReportedCopies(by_edit, ShareEvidence(edits.recent.yes, edits.recent.no)),
            ],
            missed=ShareEvidence(edits.missing.yes, edits.missing.no),
            unreported_s=self.now - told if self.settings.hints else math.inf,
            arrivals=edits.arrivals,
            fan_out=FanOut(
                pending=[self._edited(number, at, quiet, waiting) for at, number in self._pending],
                listed=[self._edited(number, self.now, quiet, waiting) for number in self._sizes],
                others=self._likely_sizes(),
                edits=self._template_arrivals,
                waiting=[
                    (copies, groups.get(heard_at, HintGroup(heard_at)))
                    for heard_at, copies in waiting.items()
                ],
                known=fan_out.groups,
            ),
            visits=self._quiet_visits,
        )

    def _edited(
        self, number: int, at: float, quiet: list[_Page], waiting: Counter[float]
    ) -> EditedTemplate:
        listed_at = self._listed_at.get(number)
        older = [page for page in quiet if page.visited_at <= at]
        if listed_at is None:
            return EditedTemplate(self._likely_sizes(), len(older))
        wait = waiting[listed_at]
        since = [page for page in quiet if page.visited_at > listed_at - 60.0]
        return EditedTemplate(
            self._sizes[number],
            sum(page.visited_at <= at for page in since),
            wait,
            len(self._pages) - len(quiet) - wait + len(since),
        )

    def _likely_sizes(self) -> list[float]:
        return like_others(list(self._sizes.values()), len(self._pages))


def _poisson(rng: random.Random, mean: float) -> int:
    count, left = 0, rng.expovariate(1.0)
    while left < mean:
        count += 1
        left += rng.expovariate(1.0)
    return count
