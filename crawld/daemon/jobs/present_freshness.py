"""The present freshness of each site, for the status: computed when asked, at most every second.

An answer that operators wait for must not count pages: a figure is made from bounded samples
(`store/changes/freshness.py`), in a reader's thread and a worker, and kept with its time. While
nobody asks, none is made.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import apsw
import numpy as np
import trio

from crawld.core.change.arrivals import Arrivals
from crawld.core.change.prior import DEFAULT_PRIOR
from crawld.core.change.reliability import HintGroup, Reliability
from crawld.core.page import Outcome
from crawld.core.revisit.freshness_now import (
    EditedTemplate,
    FanOut,
    Floats,
    FreshnessNow,
    ReportedCopies,
    ShareEvidence,
    SiteEvidence,
    estimate_freshness,
)
from crawld.core.revisit.quiet_copies import QuietCopies
from crawld.core.revisit.quiet_visits import QuietVisits
from crawld.core.revisit.template_sizes import LikelySizes
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.sources.mediawiki_changes import PendingTemplates
from crawld.store.changes import fan_out, freshness, hint, hint_source, template_use
from crawld.store.changes.fan_out import ListedTemplate
from crawld.store.changes.freshness import CopyHint, CopyRate, CopySample, SampledCopy
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.template_use import Survey
from crawld.store.engine.background import background_reads

MAX_AGE_S: Final = 1.0
"""A figure of this age is answered again without a new estimate."""

WAIT_S: Final = 0.06
"""How long an answer waits for a new estimate; after that the old one is shown, with its age."""

KEPT_S, KEPT_EVERY_S = 600.0, 1.0
"""So long after a question, a new estimate is made so often, so that an answer is never old."""

MAX_SITES: Final = 50
"""Sites that are estimated: those that were added first."""

REST_FACTOR: Final = 20.0
"""Rest after an estimate, as a multiple of the time it took."""

USUAL_S, MOST_LONGER = 0.05, 2.0
"""Time that the first estimate takes, and how many times longer than the one before an estimate is
believed to take: one that is made while a daemon starts waits for others, and 25 s are long for a
figure that is wrong by all users of a template."""

RECENT_CHANGES: Final = "recent_changes"
"""Kind of the sources that tell changes in their order."""

LISTING_S: Final = 60.0
"""Visits so long before the pages of a template are listed may have come after its edit."""

_AMBIGUOUS: Final = ShareEvidence(0.5, 1.5)
"""A change dated before the last visit and after it: that visit has probably seen it."""

_UNKNOWN_RATE: Final = CopyRate(DEFAULT_PRIOR.mean, DEFAULT_PRIOR.shape)

_GONE: Final = (Outcome.GONE, Outcome.SOFT_GONE)


@dataclass(frozen=True, slots=True)
class SiteEstimate:
    """The freshness of a site at a time (Unix seconds).

    Attributes:
        copies: number of copies, about. sampled: copies that were looked at.
        now: the estimate.
        checked_ago_s: median time since the last visit of a copy.
    """

    site_id: int
    at: float
    copies: int
    sampled: int
    now: FreshnessNow
    checked_ago_s: float


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the file holds about one site."""

    site_id: int
    sample: CopySample
    visits: QuietVisits
    sources: Sequence[SourceRow]
    listed: Mapping[int, Mapping[str, ListedTemplate]]
    surveys: Mapping[int, Survey | None]
    covered_copies: int = 0


class PresentFreshness(BackgroundWork):
    """Estimates the freshness of all sites when asked."""

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._known: list[SiteEstimate] = []
        self._fresh_until = -math.inf
        self._usual_s = USUAL_S
        self._asked = trio.Event()
        self._asked_at = -math.inf
        self._done = trio.Event()

    async def run(self) -> None:
        """Make estimates when asked for, until cancelled; the first one at once."""
        with background_reads():
            await self._renew()
            while True:
                repeats = trio.current_time() < self._asked_at + KEPT_S
                rest_s = max(KEPT_EVERY_S, self._fresh_until - trio.current_time())
                with trio.move_on_after(rest_s if repeats else math.inf):
                    await self._asked.wait()
                began_at = trio.current_time()
                if self._asked.is_set():
                    self._asked_at, self._asked = began_at, trio.Event()
                    if began_at < self._fresh_until:
                        continue  # asked while the figure was made
                await self._renew()

    async def _renew(self) -> None:
        began_at = trio.current_time()
        self._known = await self._estimate()
        took_s = trio.current_time() - began_at
        self._usual_s = min(took_s, MOST_LONGER * max(self._usual_s, USUAL_S))
        self._fresh_until = began_at + max(MAX_AGE_S, REST_FACTOR * self._usual_s)
        self._done.set()
        self._done = trio.Event()

    async def get(self) -> list[SiteEstimate]:
        """Return the newest estimates; wait a moment for new ones if they are old."""
        if trio.current_time() >= self._fresh_until:
            done = self._done
            self._asked.set()
            with trio.move_on_after(WAIT_S):
                await done.wait()
        return self._known

    def forget_question(self) -> None:
        """Make no more estimates until somebody asks again: the question came from the start."""
        self._asked_at = -math.inf
        if self._asked.is_set():  # while an estimate is made
            self._asked = trio.Event()

    async def store_visits(self) -> None:
        """Store the evidence of the visits since the last call."""
        visits, self._state.quiet_visits = self._state.quiet_visits, {}
        if visits:
            await self._database.write(freshness.add_quiet_visits, visits)

    async def _estimate(self) -> list[SiteEstimate]:
        await self.store_visits()
        site_ids = list(self._state.sites)[:MAX_SITES]
        stored = await self._database.read(_read, site_ids)
        covering = {
            number
            for (site_id, _), numbers in self._state.hint_sources.items()
            if site_id in self._state.sites
            for number in numbers
        }
        return await self._workers.run(
            _estimate_all, stored, covering, self._clock.now(), abandon_on_cancel=True
        )


def _read(connection: apsw.Connection, site_ids: Sequence[int]) -> list[_Stored]:
    sources = hint_source.list_sources(connection)
    listing = [row.hint_source_id for row in sources if row.kind == hint.FAN_OUT]
    listed = {number: fan_out.listed(connection, number) for number in listing}
    surveys = {number: template_use.get(connection, number) for number in listing}
    return [
        _Stored(
            site_id,
            freshness.sample_copies(connection, site_id),
            freshness.quiet_visits(connection, site_id),
            [row for row in sources if site_id in row.site_ids],
            listed,
            surveys,
        )
        for site_id in site_ids
    ]


def _estimate_all(stored: Sequence[_Stored], covering: set[int], now: float) -> list[SiteEstimate]:
    found = []
    # A page of several sites belongs to one of them.
    copies = {site.site_id: site.sample.own_copies for site in stored}
    for alone in stored:
        # A wiki reports on the pages of all its sites.
        beside = {site_id for row in alone.sources for site_id in row.site_ids}
        covered_copies = sum(copies.get(site_id, 0) for site_id in beside)
        site = replace(alone, covered_copies=covered_copies)
        estimate = estimate_freshness(_evidence(site, covering, now))
        if estimate is not None:
            sample = site.sample
            ages_s = [max(now - copy.visited_at, 0.0) for copy in sample.sampled]
            found.append(
                SiteEstimate(
                    *(site.site_id, now, sample.copies, len(sample.sampled), estimate),
                    checked_ago_s=float(np.median(ages_s)) if ages_s else 0.0,
                )
            )
    return found


def _evidence(site: _Stored, covering: set[int], now: float) -> SiteEvidence:
    """Sort the copies of a site into strata."""
    known = {row.hint_source_id: hint.load_reliability(row.evidence) for row in site.sources}
    kinds = {row.hint_source_id: row.kind for row in site.sources}
    reporting = [
        row for row in site.sources if row.hint_source_id in covering and row.told_until is not None
    ]
    newest = max(reporting, key=lambda row: row.told_until or 0.0, default=None)
    told_until = -math.inf if newest is None else newest.told_until or 0.0
    told_until = max(told_until, min(_told_in_order(site, reporting), now))
    gone, quiet, unheard_s = 0, [], []
    by_source: Counter[int] = Counter()
    by_listing: Counter[tuple[int, float]] = Counter()
    for copy in site.sample.sampled:
        named = _newest_hint(copy, kinds)
        if copy.outcome in _GONE:
            gone += 1
        elif named is None or kinds.get(named.hint_source_id) == hint.GAP:
            quiet.append(copy)
            unheard_s.append(_within_gap_s(copy, named))
        elif named.first_at <= copy.visited_at:
            by_source[0] += 1
        elif kinds.get(named.hint_source_id) == hint.FAN_OUT:
            by_listing[named.hint_source_id, named.heard_at] += 1
        else:
            by_source[named.hint_source_id] += 1
    visited_at = np.array([copy.visited_at for copy in quiet])
    since_s = np.array([max(now - copy.visited_at, 0.0) for copy in quiet])
    covered_s = np.array([max(told_until - copy.visited_at, 0.0) for copy in quiet])
    covered_s = np.maximum(covered_s - np.array(unheard_s), 0.0)
    rates = [copy.rate or _UNKNOWN_RATE for copy in quiet]
    return SiteEvidence(
        copies=max(site.sample.copies, 1),
        covered_copies=site.covered_copies,
        known_stale=gone,
        quiet=QuietCopies(
            np.array([rate.per_s for rate in rates]),
            np.array([rate.changes for rate in rates]),
            covered_s,
            np.maximum(since_s - covered_s, 0.0),
        ),
        reported=[
            ReportedCopies(copies, _real(known.get(number))) for number, copies in by_source.items()
        ],
        missed=_missed([known[row.hint_source_id] for row in reporting]),
        unreported_s=max(now - told_until, 0.0),
        # The reports of another source are of a time before, and of another span.
        arrivals=Arrivals() if newest is None else known[newest.hint_source_id].arrivals,
        fan_out=_fan_out(site, known, by_listing, visited_at, now),
        visits=site.visits,
    )


def _told_in_order(site: _Stored, reporting: Sequence[SourceRow]) -> float:
    """Return until when a wiki's recent changes are read that are not read to their end yet.

    They come in their order: after an outage, all before the newest that was read is known.
    """
    ordered = {row.hint_source_id for row in reporting if row.kind == RECENT_CHANGES}
    read = (
        each.last_at
        for copy in site.sample.sampled
        for each in copy.hints
        if each.hint_source_id in ordered
    )
    return max(read, default=-math.inf)


def _within_gap_s(copy: SampledCopy, gap: CopyHint | None) -> float:
    """Return for how long after the visit of a copy its sources may have missed changes."""
    return 0.0 if gap is None else gap.last_at - max(gap.first_at, copy.visited_at)


def _newest_hint(copy: SampledCopy, kinds: Mapping[int, str]) -> CopyHint | None:
    """Return the hint that says most about a copy: an edit rather than a template's, or a gap."""
    since = [each for each in copy.hints if each.last_at > copy.visited_at]
    return max(
        since,
        key=lambda each: (
            kinds.get(each.hint_source_id) != hint.GAP,
            each.first_at > copy.visited_at,
            kinds.get(each.hint_source_id) != hint.FAN_OUT,
            each.last_at,
        ),
        default=None,
    )


def _real(known: Reliability | None) -> ShareEvidence:
    """Return the recent share of true hints of a source; None: times are ambiguous."""
    return _AMBIGUOUS if known is None else ShareEvidence(known.recent.yes, known.recent.no)


def _missed(known: Sequence[Reliability]) -> ShareEvidence:
    """Return the share of changes that no source reports; all of them without a source."""
    if not known:
        return ShareEvidence(1.0, 1e-9)
    best = min(known, key=lambda each: each.effective_missed_share)
    share = math.prod(each.effective_missed_share for each in known)
    count = best.missing.yes + best.missing.no
    return ShareEvidence(share * count, (1.0 - share) * count)


def _fan_out(
    site: _Stored,
    known: Mapping[int, Reliability],
    by_listing: Mapping[tuple[int, float], int],
    visited_at: Floats,
    now: float,
) -> FanOut:
    rows = [row for row in site.sources if row.kind == hint.FAN_OUT]
    if not rows:
        return FanOut()
    row = max(rows, key=lambda each: each.hint_count)
    number, source = row.hint_source_id, known[row.hint_source_id]
    listed = site.listed.get(number, {})
    sizes = {title: each.pages for title, each in listed.items()}
    edits = source.arrivals
    if edits.is_known and row.last_poll_at is not None:
        edits.add(0.0, max(now - row.last_poll_at, 0.0))
    groups = {group.heard_at: group for group in source.groups}
    pending = PendingTemplates.from_json(row.cursor)
    waiting = Counter({heard_at: count for (_, heard_at), count in by_listing.items()})
    copies = max(site.covered_copies, site.sample.copies, 1)
    survey = site.surveys.get(number) or Survey(0.0, 0, {})
    likely = LikelySizes(sizes, survey.uses, copies=copies, articles=survey.articles)

    hinted = len(site.sample.sampled) - len(visited_at)

    def edited(title: str, at: float) -> EditedTemplate:
        before = listed.get(title)
        if before is None:
            return EditedTemplate(likely.of(title), int(np.count_nonzero(visited_at <= at)))
        # Its pages were all reported then: those that were not visited since have a hint.
        since = visited_at[visited_at > before.at - LISTING_S]
        return EditedTemplate(
            float(before.pages),
            int(np.count_nonzero(since <= at)),
            waiting[before.at],
            hinted - waiting[before.at] + len(since),
        )

    touched = EditedTemplate(float(len(pending.pages)), len(visited_at))
    return FanOut(
        pending=[
            *(edited(title, at) for title, at in pending.templates),
            *([touched] if pending.pages else []),
        ],
        listed=[edited(title, now) for title in listed],
        others=likely.of_any(),
        edits=edits,
        waiting=[
            (copies, groups.get(heard_at, HintGroup(heard_at)))
            for (_, heard_at), copies in by_listing.items()
        ],
        known=source.groups,
    )
