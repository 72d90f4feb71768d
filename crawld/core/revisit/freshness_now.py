"""Estimates how many copies of a site equal their page now, and how sure that is.

What is known of a copy decides its stratum:

1. *Reported*: a hint says that the page changed, and no visit has answered it. It is stale unless
   the hint is false; the recent share of true hints of its source says how likely that is.
2. *Fan-out*: a template was edited, and the pages that include it are not listed yet. A template
   affects as many pages as when it was listed last, or as `template_sizes` expects.
3. *Unreported*: a change since the sources reported last. Their number follows from the rate of
   reports in the last minutes; a template may have been edited too.
4. *Unnoticed*: a change that no source reports, found by a visit only. Its probability follows from
   the change model of the page and the share of changes that the sources miss; visits to pages
   without a hint correct it (`quiet_copies.py`).

Each part has a distribution, since rates, shares and sizes are known with error only. Their sum is
drawn `DRAWS` times with a fixed seed: the estimate is the mean, the interval a predictive one of
the present share, not of a mean over time (`likely_interval.py`).
"Modelled" is the mean without the correction by audits.

Source: composition of Beta-binomial and Gamma-Poisson predictive distributions (Gelman et al.,
Bayesian Data Analysis, chapter 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.arrivals import CHANGE_S, RECENT_S, Arrivals
from crawld.core.change.reliability import HintGroup
from crawld.core.revisit.likely_interval import likely_interval
from crawld.core.revisit.quiet_copies import (
    EXCESSES,
    FACTORS,
    QuietCopies,
    between_factors,
    correction,
)
from crawld.core.revisit.quiet_visits import QuietVisits

Floats = NDArray[np.float64]
Counts: TypeAlias = int | NDArray[np.int64]

DRAWS: Final = 2_000
_SEED = 1867

MAX_TEMPLATES_DRAWN: Final = 8
"""The most unreported edits of templates in one draw."""

MOST_HIDDEN: Final = 64.0
"""Changes that a report stands for at most."""

_POINTS = 24

HALF_COPY: Final = 0.5
"""Correction for continuity at each end of the interval, in copies."""

# Pages of a visible edit nearly all change; of another one, few do for reasons of their own. The
# pages visited first are not typical of the rest: they waited longest, and other edits hit them.
_VISIBLE, _INVISIBLE = (39.0, 1.0), (1.0, 9.0)
_FIRST_WEIGHT = 0.5
# Kinds of wikis: how likely each is, and the share of the edits of templates that are visible.
_WIKIS = ((0.98, 0.99), (0.02, 0.5))


class ShareEvidence(NamedTuple):
    """Evidence about a share: a Beta distribution."""

    yes: float
    no: float

    @property
    def mean(self) -> float:
        """Expected share."""
        return self.yes / (self.yes + self.no)


LIKELY: Final = ShareEvidence(1.8, 0.2)
"""Evidence that hints are true, before the first was judged."""

ALL: Final = ShareEvidence(1.0, 0.0)


@dataclass(frozen=True, slots=True)
class ReportedCopies:
    """Sampled copies with a hint, and the recent evidence that such hints are true."""

    copies: int
    real: ShareEvidence


class EditedTemplate(NamedTuple):
    """A template that was edited and not listed since, or that may be edited again.

    Attributes:
        pages: how many pages of all sites it affects; if that is not known, likely numbers.
        older: sampled copies without a hint that an edit makes stale if they are pages of it: not
            visited since, and if it was listed before, visited since then. The others that were
            listed wait.
        waiting: sampled copies among its pages that wait since it was listed last.
        among: sampled copies to which its other pages belong; None: to all but those that wait.
    """

    pages: float | Sequence[float]
    older: int
    waiting: int = 0
    among: int | None = None


@dataclass(frozen=True, slots=True)
class FanOut:
    """Edits of templates.

    Attributes:
        pending: templates that were edited and not listed.
        listed: templates that were listed and may be edited again.
        others: equally likely numbers of pages of a template that was never listed.
        edits: how often templates are edited.
        waiting: sampled copies with a hint, by template.
        known: all templates listed lately, and what visits to their pages found.
    """

    pending: Sequence[EditedTemplate] = ()
    listed: Sequence[EditedTemplate] = ()
    others: Sequence[float] = ()
    edits: Arrivals = field(default_factory=Arrivals)
    waiting: Sequence[tuple[int, HintGroup]] = ()
    known: Sequence[HintGroup] = ()

    @property
    def copies(self) -> int:
        """Sampled copies with a hint."""
        return sum(copies for copies, _ in self.waiting)

    def visible(self) -> list[tuple[float, float]]:
        """Return (probability, share of visible edits) of each kind of wiki, by what visits found.

        On most wikis nearly each edit of a template changes the pages that include it; on some,
        many edits change only its description.
        """
        logs = [
            math.log(weight) + sum(_log_evidence(group, share) for group in self.known)
            for weight, share in _WIKIS
        ]
        likelihood = [math.exp(each - max(logs)) for each in logs]
        total = math.fsum(likelihood)
        return [(each / total, share) for each, (_, share) in zip(likelihood, _WIKIS, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEvidence:
    """What is known of the copies of a site at one time.

    Attributes:
        copies: number of copies. reported, quiet: a sample of them, or all.
        covered_copies: copies of all sites that the sources report on; None: of this site only.
        known_stale: sampled copies that certainly differ.
        missed: share of changes that no source reports.
        unreported_s: time since the sources reported last, seconds; inf: there is no source.
        arrivals: how often the sources report that a fresh copy became stale.
    """

    copies: int
    quiet: QuietCopies
    covered_copies: int | None = None
    known_stale: int = 0
    reported: Sequence[ReportedCopies] = ()
    missed: ShareEvidence = ALL
    unreported_s: float = np.inf
    arrivals: Arrivals = field(default_factory=Arrivals)
    fan_out: FanOut = field(default_factory=FanOut)
    visits: QuietVisits = field(default_factory=QuietVisits)

    @property
    def part(self) -> float:
        """Share of the copies that the sources report on which are in the sample."""
        return self.sampled / max(self.covered_copies or self.copies, self.copies, 1)

    @property
    def sampled(self) -> int:
        """Number of copies in the sample."""
        hinted = sum(each.copies for each in self.reported) + self.fan_out.copies
        return self.known_stale + hinted + len(self.quiet)


@dataclass(frozen=True, slots=True)
class FreshnessNow:
    """The share of copies that equal their page now.

    Attributes:
        freshness: estimate; low, high: its interval, which covers 19 of 20 times.
        modelled: estimate without audits.
        reported, fan_out, unreported, unnoticed: expected stale copies of each stratum.
    """

    freshness: float
    low: float
    high: float
    modelled: float
    reported: float
    fan_out: float
    unreported: float
    unnoticed: float


def estimate_freshness(site: SiteEvidence) -> FreshnessNow | None:
    """Return the freshness of a site now; None without copies."""
    if not site.sampled:
        return None
    draws = _Draws(site)
    total = draws.reported + draws.fan_out + draws.unreported + draws.unnoticed
    fresh = 1.0 - np.clip(total / site.sampled, 0.0, 1.0)
    fresh = np.clip(fresh + draws.sampling_error(fresh), 0.0, 1.0)
    low, high = likely_interval(np.rint(fresh * site.copies), site.copies)
    # The share is one of whole copies, whose number changes while it is looked at.
    low = max(low - HALF_COPY, 0.0) / site.copies
    high = min(high + HALF_COPY, site.copies) / site.copies
    scale = site.copies / site.sampled
    parts = [
        float(part.mean()) * scale
        for part in (draws.reported, draws.fan_out, draws.unreported, draws.unnoticed)
    ]
    known = draws.reported + draws.fan_out + draws.unreported
    modelled = 1.0 - min((float(known.mean()) + draws.modelled_unnoticed) / site.sampled, 1.0)
    return FreshnessNow(float(fresh.mean()), low, high, modelled, *parts)


class _Draws:
    """Draws of the number of stale copies in the sample, by stratum; shape (DRAWS,)."""

    def __init__(self, site: SiteEvidence) -> None:
        self._site = site
        self._rng = np.random.default_rng(_SEED)
        self._left = float(len(site.quiet))
        has_source = not math.isinf(site.unreported_s)
        self._missed_share = site.missed.mean if has_source else 1.0
        self._quiet = site.quiet.after_silence(1.0 - self._missed_share)
        exposure_s = site.quiet.covered_s if has_source else site.quiet.open_s
        self._excesses = EXCESSES / max(float(exposure_s.sum()) / max(self._left, 1.0), 1.0)
        weight = correction(site.visits, self._excesses, self._missed_share)
        cells = self._rng.choice(weight.size, DRAWS, p=weight.ravel())
        # Of a site: the factor of the models' rates (with parts of the way to the next one).
        self._factor, self._excess = np.divmod(cells, len(EXCESSES))
        self._part = self._rng.random(DRAWS)
        chances, shares = zip(*site.fan_out.visible(), strict=True)
        self._visible = self._rng.choice(np.array(shares), DRAWS, p=chances)
        self.reported = self._reported()
        self.fan_out = self._fan_out()
        self.unreported = self._unreported()
        self.unnoticed, self.modelled_unnoticed = self._unnoticed()

    def sampling_error(self, fresh: Floats) -> Floats:
        """Return the error from looking at a sample of the copies only."""
        site = self._site
        unseen = max(1.0 - site.sampled / max(site.copies, 1), 0.0)
        if not unseen:
            return np.zeros(DRAWS)
        spread = np.sqrt((fresh * (1.0 - fresh) + 0.25 / site.sampled) / site.sampled * unseen)
        return np.asarray(spread * self._rng.standard_normal(DRAWS))

    def _reported(self) -> Floats:
        stale = np.full(DRAWS, float(self._site.known_stale))
        for each in self._site.reported:
            if each.copies:
                true = self._rng.beta(*each.real, DRAWS)
                stale += self._rng.binomial(each.copies, true)
        fan_out = self._site.fan_out
        for copies, group in fan_out.waiting:
            likely = _visible_probability(group, self._visible)
            shown = self._rng.random(DRAWS) < likely
            stale += self._rng.binomial(copies, np.where(shown, *self._page_shares(group)))
        return stale

    def _page_shares(self, group: HintGroup) -> tuple[Floats, Floats]:
        """Return the share of a template's pages that change if its edit is visible, and if not."""
        visible, invisible = (
            self._rng.beta(
                yes + _FIRST_WEIGHT * group.real, no + _FIRST_WEIGHT * group.false, DRAWS
            )
            for yes, no in (_VISIBLE, _INVISIBLE)
        )
        return visible, invisible

    def _fan_out(self) -> Floats:
        """Return stale copies, now without a hint, of templates whose edit is known."""
        stale = np.zeros(DRAWS)
        for template in self._site.fan_out.pending:
            pages = np.atleast_1d(np.asarray(template.pages, np.float64))
            pages = self._rng.choice(pages, DRAWS)
            more = self._changed_pages(pages, *self._places(template))
            # Some of its pages are those of another template.
            stale += self._among_fresh(more, stale)
        return stale

    def _places(self, template: EditedTemplate) -> tuple[int, int, int]:
        """Return where pages of a template may be: its `older`, `waiting` and `among`."""
        rest = self._site.sampled - template.waiting if template.among is None else template.among
        return template.older, template.waiting, max(rest, template.older)

    def _changed_pages(
        self, affected: Floats, older: Counts, waiting: Counts, among: Counts
    ) -> Floats:
        """Return the copies that an edit of a template changes, which affects so many pages.

        Args:
            affected: pages of all sites; those of the sample are any of them.
            older, waiting, among: see `EditedTemplate`.
        """
        site, rng = self._site, self._rng
        sampled = site.sampled
        covered = max(site.covered_copies or site.copies, site.copies, sampled)
        pages = np.minimum(np.rint(affected), covered).astype(np.int64)
        here = rng.hypergeometric(pages, covered - pages, sampled)
        others = np.minimum(np.maximum(here - waiting, 0), among)
        return self._shown(rng.hypergeometric(others, among - others, older))

    def _shown(self, affected: NDArray[np.int64]) -> Floats:
        """Return how many of the affected copies show the edit."""
        shown = self._rng.random(DRAWS) < self._visible
        shares = self._page_shares(HintGroup(0.0))
        return np.asarray(affected * np.where(shown, *shares))

    def _among_fresh(self, stale: Floats, taken: Floats) -> Floats:
        """Return stale copies that are not stale already."""
        left = max(self._left, 1e-9)
        return np.asarray(np.minimum(stale * np.maximum(1.0 - taken / left, 0.0), left))

    def _unreported(self) -> Floats:
        """Return stale copies that no source has had the time to report."""
        site, rng = self._site, self._rng
        if math.isinf(site.unreported_s) or not len(site.quiet):
            return np.zeros(DRAWS)
        factor = between_factors(FACTORS, self._factor, self._part)
        if site.arrivals.is_known:
            # The older the reports are, the more the models say, which visits since then correct.
            spans_s = site.unreported_s, site.arrivals.long_s
            is_modelled = rng.random(DRAWS) < spans_s[0] / max(sum(spans_s), 1e-9)
            factor = np.where(is_modelled, factor, self._factor_of_reports())
        expected = _interpolated(self._quiet, factor)
        stale = self._among_fresh(np.minimum(rng.poisson(expected), self._left), self.fan_out)
        return stale + self._among_fresh(self._unreported_templates(), self.fan_out + stale)

    def _factor_of_reports(self) -> Floats:
        """Return how often copies become stale by the reports, in multiples of the models' rates.

        The models tell which pages change, the reports how many do at present.
        """
        site, quiet = self._site, self._quiet
        # Copies that wait for a template's edit are edited as often, and stale already.
        fresh = len(site.quiet) / (len(site.quiet) + site.fan_out.copies)
        factor = self._report_rate() * site.part * fresh / max(float(quiet.rate.sum()), 1e-300)
        # A copy becomes stale once between two reports or visits, however often its page
        # changes: the more copies do, the less is known of the changes behind it.
        hidden = _hidden(quiet, factor, site.arrivals.span_s) ** self._rng.random(DRAWS)
        return np.asarray(factor * hidden)

    def _report_rate(self) -> Floats:
        """Return the rate of reports, 1/s, in the time that is not reported yet.

        A burst ends: after that, changes come as often as in the last day.
        """
        arrivals, rng = self._site.arrivals, self._rng
        shape, exposure_s = arrivals.posterior()
        now = rng.gamma(shape, 1.0 / exposure_s, DRAWS)
        shape, exposure_s = arrivals.posterior_of_day()
        later = rng.gamma(shape, 1.0 / exposure_s, DRAWS)
        bursts = max(self._site.unreported_s / CHANGE_S, 1e-9)
        share = -math.expm1(-bursts) / bursts
        return np.asarray(share * now + (1.0 - share) * later)

    def _unreported_templates(self) -> Floats:
        fan_out, rng = self._site.fan_out, self._rng
        stale = np.zeros(DRAWS)
        if not fan_out.edits.is_known:
            return stale
        shape, exposure_s = fan_out.edits.posterior()
        window_s = min(self._site.unreported_s, 1e9)
        edits = rng.poisson(rng.gamma(shape, 1.0 / exposure_s, DRAWS) * window_s)
        # A template that was listed before is edited again, or another one is.
        again = len(fan_out.listed) / (len(fan_out.listed) + 1.0)
        others = np.asarray(fan_out.others or (1.0, float(self._site.copies)))
        new = self._places(EditedTemplate(0.0, int(self._left)))
        known = np.array([self._places(each) for each in fan_out.listed], np.int64)
        sizes = np.array([each.pages for each in fan_out.listed], np.float64)
        for number in range(min(int(edits.max()), MAX_TEMPLATES_DRAWN)):
            size, places = rng.choice(others, DRAWS), np.tile(new, (DRAWS, 1))
            if fan_out.listed:
                is_again = rng.random(DRAWS) < again
                which = rng.integers(len(fan_out.listed), size=DRAWS)
                size = np.where(is_again, sizes[which], size)
                places = np.where(is_again[:, None], known[which], places)
            more = self._changed_pages(size, *places.T)
            stale += np.where(edits > number, self._among_fresh(more, stale), 0.0)
        return stale

    def _unnoticed(self) -> tuple[Floats, float]:
        """Return stale copies whose change no source reports, and their number by the models."""
        quiet, rng = self._quiet, self._rng
        if not len(quiet):
            return np.zeros(DRAWS), 0.0
        if math.isinf(self._site.unreported_s):
            exposure_s, changes = quiet.open_s, quiet.rate * quiet.open_s
        else:
            exposure_s = quiet.covered_s
            # What is reported more often than the models expect is missed more often, too.
            lively_s = exposure_s + (self._burst() - 1.0) * np.minimum(exposure_s, RECENT_S)
            changes = self._missed_share * quiet.rate * lively_s
        unchanged = np.array([quiet.unchanged(factor * changes) for factor in FACTORS])
        shares = 1.0 - unchanged @ np.exp(-np.outer(exposure_s, self._excesses)) / len(quiet)
        share = between_factors(shares, self._factor, self._part[:, None])
        share = np.clip(np.take_along_axis(share, self._excess[:, None], 1)[:, 0], 0.0, 1.0)
        mean = len(quiet) * share
        # Copies that differ vary less together than as many alike.
        typical = 1.0 - unchanged[int(np.median(self._factor))]
        alike = float(typical.mean() * (1.0 - typical.mean()))
        part = float((typical * (1.0 - typical)).mean()) / alike if alike > 0.0 else 1.0
        stale = np.rint(mean + math.sqrt(part) * (rng.binomial(len(quiet), share) - mean))
        taken = self.fan_out + self.unreported
        modelled = 1.0 - float(quiet.unchanged(changes).mean())
        return self._among_fresh(stale, taken), modelled * len(quiet)

    def _burst(self) -> float:
        """Return how much oftener changes are reported at present than the models expect, >= 1."""
        site = self._site
        rate = float(self._quiet.rate.sum()) / site.part
        if not site.arrivals.is_known or rate <= 0.0:
            return 1.0
        shape, exposure_s = site.arrivals.posterior()
        return max(shape / exposure_s / rate, 1.0)


def _visible_probability(group: HintGroup, before: Floats) -> Floats:
    """Return the probability that a template's edit is visible, after visits to its pages."""
    visible = before * _likelihood(group, *_VISIBLE)
    return np.asarray(visible / (visible + (1.0 - before) * _likelihood(group, *_INVISIBLE)))


def _log_evidence(group: HintGroup, share: float) -> float:
    """Return the log likelihood of a template's visits if a share of the edits is visible."""
    visible, not_visible = (_likelihood(group, *prior) for prior in (_VISIBLE, _INVISIBLE))
    return math.log(share * visible + (1.0 - share) * not_visible)


def _likelihood(group: HintGroup, yes: float, no: float) -> float:
    """Return the likelihood of what visits to the pages of a template found, never 0."""
    real, false = _FIRST_WEIGHT * group.real, _FIRST_WEIGHT * group.false
    given = math.lgamma(yes + real) + math.lgamma(no + false) - math.lgamma(yes + no + real + false)
    prior = math.lgamma(yes) + math.lgamma(no) - math.lgamma(yes + no)
    return max(math.exp(given - prior), 1e-60)


def _hidden(quiet: QuietCopies, factor: Floats, span_s: float) -> Floats:
    """Return how many changes stand behind a report at most, if no visit comes between reports.

    Args:
        factor: rate of reports, as a multiple of the rate of changes that the models expect.
        span_s: time between two reports, seconds; 0: not known.
    """
    if span_s <= 0.0:
        return np.ones_like(factor)
    factor = np.maximum(factor, 1e-300)
    reported = factor * float(quiet.rate.sum()) * span_s
    at = np.geomspace(*_range(factor, MOST_HIDDEN), 2 * _POINTS)
    return np.clip(np.interp(reported, _changed(quiet, at, span_s), at) / factor, 1.0, MOST_HIDDEN)


def _interpolated(quiet: QuietCopies, factor: Floats) -> Floats:
    """Return how many copies are expected to have changed since the reports, by factors."""
    at = np.geomspace(*_range(factor), _POINTS)
    return np.asarray(np.interp(factor, at, _changed(quiet, at, quiet.open_s)))


def _range(factor: Floats, more: float = 1.0) -> tuple[float, float]:
    return max(float(factor.min()), 1e-12), max(more * float(factor.max()), 2e-12)


def _changed(quiet: QuietCopies, factors: Floats, time_s: float | Floats) -> list[float]:
    """Return how many copies are expected to change in a time, for each factor."""
    expected = quiet.rate * time_s
    return [float((1.0 - quiet.unchanged(each * expected)).sum()) for each in factors]
