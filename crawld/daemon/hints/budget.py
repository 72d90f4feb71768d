"""Poll intervals of hint sources, and the share of changes that the sources miss.

Polls use requests of a host that page visits would otherwise use. Each source is polled at the
interval that buys the most freshness (`core/revisit/polling.py`, from the change models of a
sample of pages), within the operator's share of requests (`poll_share`). A source without a gain is
still polled now and then, since it may improve.

A poll of a wiki is one cheap request that shows all its edits and deletions. A wiki is therefore
polled every `min_poll_s`, within the share, whatever the models expect: nothing that waits on its
host is better than to know what a reader sees wrong. It is polled less often, the longer it tells
nothing new while copies are known to be stale. Only while the host is mirrored for the first time
the models decide.

During a burst of any source the interval shrinks at once: the next poll comes when about
`NEW_HINTS_AIM` more changes are expected, even if the models expect fewer.

An estimate takes about 0.1 s, so it runs in a thread, one source at a time, with long rests. Until
a source has one, it is polled as often as the share allows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import structlog
import trio

from crawld.core.change.hawkes import Hawkes
from crawld.core.change.record import is_current, records_of
from crawld.core.revisit.forecast import HintQuality, SurvivalCurves, survival_curves
from crawld.core.revisit.polling import plan_polls
from crawld.core.units import DAY_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.pacing import Pace
from crawld.daemon.site_models import read_site_model
from crawld.store.changes import allocation, hint, hint_source
from crawld.store.changes.allocation import WeightedModel
from crawld.store.changes.hint_source import SourceRow

log = structlog.get_logger(__name__)

LEAST_LOOK_S, MOST_LOOK_S = 30.0, 300.0
LOOK_CHANGES: Final = 16
"""Pause between two looks at the sources, whose coverage is passed to policies: as long as it takes
until about so many polls and visits have changed what is known of them, within these limits. New
sources and hosts are looked at soon."""

FIRST_AGE_S: Final = 3_600.0
"""Age at which a first estimate is repeated; before, if its source has reported many hints."""

MAX_AGE_S: Final = DAY_S
"""An estimate that its repetition confirmed lasts twice as long, up to this age."""

SAME_GAIN: Final = 0.005
SAME_INTERVAL: Final = 1.25
"""A repetition confirms an estimate whose gain differs by at most so much, and whose interval by at
most this factor."""

REST_FACTOR: Final = 9.0
"""Rest after each source, as a multiple of its work."""

SAMPLE_PAGES: Final = 64
"""Pages that represent a host; read in the order of URL hashes, which is as good as random."""

MIN_MODELS: Final = 5
MIN_SHARE: Final = 1e-4
"""Smallest share that is used in a division; with `poll_share` = 0 the poller asks no source."""

MIN_PAUSE_S: Final = 0.5
"""Shortest pause between two polls, however fast the host."""

IDLE_FACTOR: Final = 20.0
"""A source without a gain is polled so many times less often than its share allows."""

PROMPT_KINDS: Final = frozenset({"recent_changes", "probe"})
"""Kinds of sources whose poll reports the changes of a whole wiki, or of a small one."""

CALM_FACTORS: Final = (1.6, 3.0)
CALM_SHARE: Final = 0.75
"""While something is known to be stale and the last poll told nothing new, the pause of a wiki is
this share of the time since its last news, within these multiples of the usual one: its turns go to
the visits. At the default `min_poll_s` a deletion is still seen within 10 s, after a long silence
within 15 s."""

NEW_HINTS_AIM: Final = 2.0
"""Changes of known pages that one poll should return at most."""

MAX_RATE_CHANGE: Final = 1.5
"""Estimates are repeated when the request rate of the host changed by more than this factor."""


@dataclass(frozen=True, slots=True)
class PollEstimate:
    """The estimated value of polling one source.

    Attributes:
        interval_s: best pause between polls; None: polling gains nothing.
        gain: freshness added to the pages that the source covers, a share in [0, 1].
        hints: hints the source had reported by then.
        at: time of the estimate, trio's clock.
        slots_per_s: requests per second that the host permitted.
        lasts_s: age at which it is repeated.
    """

    interval_s: float | None
    gain: float
    hints: int
    at: float
    slots_per_s: float
    lasts_s: float = FIRST_AGE_S

    def is_current(self, row: SourceRow, now: float, slots_per_s: float) -> bool:
        """Whether the estimate still holds: recent, with similar hints and request rate."""
        ratio = slots_per_s / self.slots_per_s
        return (
            now - self.at < self.lasts_s
            and row.hint_count < 2 * self.hints + 10
            and 1.0 / MAX_RATE_CHANGE < ratio < MAX_RATE_CHANGE
        )

    def confirmed_lasts_s(self, interval_s: float | None, gain: float) -> float:
        """Return how long the repetition lasts that found an interval and a gain."""
        if abs(gain - self.gain) > SAME_GAIN or (interval_s is None) != (self.interval_s is None):
            return FIRST_AGE_S
        ratio = (interval_s or 1.0) / (self.interval_s or 1.0)
        is_same = 1.0 / SAME_INTERVAL < ratio < SAME_INTERVAL
        return min(2.0 * self.lasts_s, MAX_AGE_S) if is_same else FIRST_AGE_S


class PollBudget(BackgroundWork):
    """Decides how often each source is polled; derived state, rebuilt after a start."""

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._estimates: dict[int, PollEstimate] = {}
        self._is_wanted = trio.Event()

    def look_soon(self) -> None:
        """Look at the sources again soon: there are new ones, or one reports for the first time."""
        self._is_wanted.set()

    def estimate(self, hint_source_id: int) -> PollEstimate | None:
        """Return the estimate for a source, None before the first."""
        return self._estimates.get(hint_source_id)

    def min_pause_s(self, host_name: str, requests: int) -> float:
        """Return the shortest pause after so many requests that keeps to the share of polls."""
        return self._paid_s(self._turn_s(host_name), requests)

    def _paid_s(self, turn_s: float, requests: int) -> float:
        """Return in which time so many requests are the share of polls; `turn_s`: of one turn."""
        share = max(self._config().jobs.poll_share, MIN_SHARE)
        return max(requests * turn_s / share, MIN_PAUSE_S)

    def _turn_s(self, host_name: str) -> float:
        """Return the time between two turns of a host, seconds."""
        host = self._state.hosts.get(host_name)
        return self._state.rates.turn_every_s(host) if host else 0.0

    def asked_at(self, host_name: str, since: float) -> float:
        """Return when (trio's clock) a host had the last request of a poll that began at `since`.

        The pause counts from then: else a poll that is due with a turn would miss it by the time of
        its response, and take the next one.
        """
        host, now = self._state.hosts.get(host_name), trio.current_time()
        return now if host is None else min(max(host.asked_at(), since), now)

    def pause_s(
        self, row: SourceRow, host_name: str, requests: int, *, new_hints: int, since_s: float
    ) -> float:
        """Return the pause between a poll and the next, seconds.

        Args:
            requests: requests that the poll used.
            new_hints: new hints that it returned.
            since_s: time since the previous poll.
        """
        min_s = self.min_pause_s(host_name, requests)
        if row.kind in PROMPT_KINDS and not self._is_filling(host_name):
            pause_s = max(min_s, self._config().jobs.min_poll_s)
            if new_hints or not self.has_stale(host_name):
                return pause_s
            return calm_pause_s(pause_s, self._quiet_s(host_name))
        estimate = self._estimates.get(row.hint_source_id)
        if estimate is None:
            return min_s
        best_s = IDLE_FACTOR * min_s if estimate.interval_s is None else estimate.interval_s
        if new_hints:
            best_s = min(best_s, NEW_HINTS_AIM * since_s / new_hints)
        return max(min_s, best_s)

    def _quiet_s(self, host_name: str) -> float:
        """Return for how long no page of a host was reported; 0: none was since the start."""
        host = self._state.hosts.get(host_name)
        if host is None or math.isinf(host.hinted_at):
            return 0.0
        return trio.current_time() - host.hinted_at

    def _is_filling(self, host_name: str) -> bool:
        """Whether a host is mirrored for the first time: many of its pages have no copy yet."""
        host = self._state.hosts.get(host_name)
        return host is not None and host.has_many_new(self._state.active)

    def has_stale(self, host_name: str) -> bool:
        """Whether copies of a host are known to be stale: a visit is then better than a probe."""
        host = self._state.hosts.get(host_name)
        return host is not None and host.has_stale(self._state.active)

    def has_edited(self, host_name: str) -> bool:
        """Whether pages of a host wait that were edited: their visits come before listings."""
        host = self._state.hosts.get(host_name)
        return host is not None and host.has_edited(self._clock.now(), self._state.active)

    async def run(self) -> None:
        """Update the coverage that policies assume and the estimates, until cancelled."""
        rows: Sequence[SourceRow] = ()
        known, pause_s = -1, LEAST_LOOK_S
        while True:
            self._is_wanted = trio.Event()
            changes = self._database.changes("hint_source")
            if changes != known:
                rows = await self._database.read(hint_source.list_sources)
            pause_s = look_pause_s(pause_s, changes - known)
            known = changes
            by_host: dict[tuple[int, str], list[SourceRow]] = defaultdict(list)
            for row in rows:
                for site_id in row.site_ids if row.told_until is not None else ():
                    by_host[site_id, row.host].append(row)
            for (site_id, host_name), reporting in by_host.items():
                host = self._state.hosts.get(host_name)
                if host is not None and site_id in host.pages:
                    host.pages[site_id].set_coverage(*coverage(reporting))
            for (site_id, _), reporting in by_host.items():
                for row in reporting:
                    if row.site_ids[0] == site_id:  # once for all its sites
                        await self._update_estimate(row, reporting)
            await trio.sleep(LEAST_LOOK_S)
            with trio.move_on_after(pause_s - LEAST_LOOK_S):
                await self._is_wanted.wait()

    async def _update_estimate(self, row: SourceRow, all_rows: Sequence[SourceRow]) -> None:
        known, now = self._estimates.get(row.hint_source_id), trio.current_time()
        pace = Pace(REST_FACTOR)
        host = self._state.hosts.get(row.host)
        if host is None or not row.poll_count:
            return
        covered = sum(len(host.pages[key].policy) for key in row.site_ids if key in host.pages)
        # A back-off passes: how often to poll beside it follows from the usual rate.
        turn_s = self._state.rates.usual_turn_every_s(host)
        slots_per_s = 1.0 / turn_s
        if known and known.is_current(row, now, slots_per_s):
            return
        models, _ = await self._database.read(
            allocation.batch,
            after=(host.host_id, -(2**63)),
            last_host=host.host_id,
            limit=SAMPLE_PAGES,
        )
        hints, lasted_s = row.hint_count - (known.hints if known else 0), FIRST_AGE_S
        if known is not None:
            lasted_s = max(now - known.at, 1.0)
        beside = [source_quality(other) for other in all_rows if other is not row]
        given = _EstimateInput(
            models=models,
            model=(await read_site_model(self._database, row.site_ids[0])).hawkes,
            covered=covered,
            slots_per_s=slots_per_s,
            hints_per_s=hints / lasted_s,
            source=source_quality(row, beyond_polls=True),
            requests=max(row.request_count / row.poll_count, 0.1),
            beside=min(beside, key=lambda quality: quality.missed_share, default=None),
            min_s=self._paid_s(turn_s, 1),
        )
        found = await self._workers.run(_estimate, given, abandon_on_cancel=True)
        if found is not None:
            interval_s, gain = found
            lasts_s = FIRST_AGE_S if known is None else known.confirmed_lasts_s(interval_s, gain)
            estimate = PollEstimate(interval_s, gain, row.hint_count, now, slots_per_s, lasts_s)
            self._estimates[row.hint_source_id] = estimate
        await pace.rest()


def look_pause_s(before_s: float, changes: int) -> float:
    """Return the pause until `LOOK_CHANGES` changes are expected, by those of the last one."""
    expected_s = before_s * LOOK_CHANGES / max(changes, 1)
    return min(max(expected_s, LEAST_LOOK_S), MOST_LOOK_S)


def calm_pause_s(pause_s: float, quiet_s: float) -> float:
    """Return the pause of a wiki that told nothing new for some time while copies are stale.

    Args:
        pause_s: the usual pause, seconds, > 0.
    """
    least, most = CALM_FACTORS
    return min(max(CALM_SHARE * quiet_s, least * pause_s), most * pause_s)


def coverage(rows: Sequence[SourceRow]) -> tuple[float, float]:
    """Return the share of changes that all of the sources miss, and the lag of the best one."""
    known = [hint.load_reliability(row.evidence) for row in rows]
    best = min(known, key=lambda each: each.effective_missed_share)
    # Independent sources miss a change together with the product of their shares.
    return math.prod(each.effective_missed_share for each in known), best.lag_s(0.9)


def source_quality(row: SourceRow, *, beyond_polls: bool = False) -> HintQuality:
    """Return lag, missed share and trust of a source; optionally without the wait for a poll."""
    known = hint.load_reliability(row.evidence)
    lag_s = known.lag_s()
    if beyond_polls and row.poll_count > 1 and row.last_poll_at is not None:
        between_s = max(row.last_poll_at - row.found_at, 0.0) / row.poll_count
        lag_s = max(lag_s - 0.5 * between_s, 0.0)
    return HintQuality(lag_s, known.missed_share, max(known.trust, 0.01))


@dataclass(frozen=True, slots=True, kw_only=True)
class _EstimateInput:
    models: Sequence[WeightedModel]
    model: Hawkes
    covered: int
    slots_per_s: float
    hints_per_s: float
    source: HintQuality
    requests: float
    beside: HintQuality | None
    min_s: float


def _estimate(given: _EstimateInput) -> tuple[float | None, float] | None:
    """Return the best interval and the gain, None if too few models are known; runs in a thread."""
    pages = _sample(given)
    if pages is None:
        return None
    found = plan_polls(
        pages,
        given.slots_per_s,
        given.source,
        requests=given.requests,
        covered=max(given.covered, len(pages)),
        beside=given.beside,
        least_s=given.min_s,
    )
    return found.interval_s, found.gain


def _sample(given: _EstimateInput) -> SurvivalCurves | None:
    """Return the survival curves of some pages, scaled up if recent hints exceed their rates."""
    held = [each for each in given.models if is_current(each.record)]
    hints_per_s = given.hints_per_s / max(given.covered, 1)
    if len(held) < MIN_MODELS:
        return None
    records = records_of(each.record for each in held)
    rates = np.maximum(records["rate"].astype(np.float64), 1e-12)
    rates *= max(hints_per_s / float(rates.mean()), 1.0)
    weights = [each.importance for each in held]
    return survival_curves(rates, weights, model=given.model)
