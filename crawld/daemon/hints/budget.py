"""What hint sources are worth: how often each is polled, and how completely they tell.

Polls take turns of their host that visits would have used. A source is polled as often as that buys
the most freshness (`core/revisit/polling.py`, from the change models of a fair sample of the pages)
and never takes more than the operator's share of the turns. Where it would earn nothing it is still
asked now and then, for it may have become better.

A storm is met at once: a source that told of many changes is asked again when about `HEARD_AIM`
more are to be expected, whatever the models still say.

Working that out takes a tenth of a second a source: it is done in a thread, one source at a time,
with long rests; until then a source is polled as often as its share allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import structlog
import trio

from crawld.config.model import JobsConfig
from crawld.core.change.record import RECORD_DTYPE, VERSION, records_of
from crawld.core.change.reliability import combined_missed_share
from crawld.core.revisit.forecast import HintQuality, SurvivalCurves, survival_curves
from crawld.core.revisit.polling import plan_polls
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.pacing import Pace
from crawld.store.changes import allocation, hint, hint_source
from crawld.store.changes.allocation import WeightedModel
from crawld.store.changes.hint_source import SourceRow
from crawld.store.engine.database import Database
from crawld.workers import Workers

log = structlog.get_logger(__name__)

LOOK_EVERY_S: Final = 30.0
"""How often policies are told how completely they hear of changes."""

AGAIN_S: Final = 3_600.0
"""How long an interval worked out holds, if the source has not told twice as much meanwhile."""

REST_FACTOR: Final = 9.0
"""Rest after each source, as a multiple of its work."""

SAMPLE: Final = 64
"""Pages by which a host is judged; they are read in the order of hashes, which is no order."""

LEAST_MODELS: Final = 5
LEAST_SHARE: Final = 1e-4
"""No share is taken for less; of none at all nothing is asked (`crawld/daemon/hints/poller.py`)."""

LEAST_PAUSE_S: Final = 0.5
"""No source is polled more often, however fast its host."""

IDLE_FACTOR: Final = 20.0
"""A source that earns nothing is polled so many times less often than its share allows."""

HEARD_AIM: Final = 2.0
"""Changes of pages held that a poll should bring at most."""

OTHER_SLOTS: Final = 1.5
"""What was worked out for a delay so many times longer or shorter is worked out anew."""


@dataclass(frozen=True, slots=True)
class PollEstimate:
    """What was worked out of one source.

    Attributes:
        interval_s: best pause between polls, None: it earns nothing.
        gain: share of freshness it adds to the pages it tells of.
        hints: hints it had told by then. at: when that was, trio's clock.
        slots_per_s: requests a second that the host permitted.
    """

    interval_s: float | None
    gain: float
    hints: int
    at: float
    slots_per_s: float

    def is_current(self, row: SourceRow, now: float, slots_per_s: float) -> bool:
        """Whether nothing has changed so much that it should be worked out again."""
        ratio = slots_per_s / self.slots_per_s
        return (
            now - self.at < AGAIN_S
            and row.hint_count < 2 * self.hints + 10
            and 1.0 / OTHER_SLOTS < ratio < OTHER_SLOTS
        )


class PollBudget:
    """Knows what polls are worth; derived, worked out anew after a start."""

    def __init__(
        self,
        crawl: Crawl,
        database: Database,
        *,
        workers: Workers,
        settings: Callable[[], JobsConfig],
    ) -> None:
        """Take the crawl whose turns are spent."""
        self._crawl = crawl
        self._database = database
        self._workers = workers
        self._settings = settings
        self._estimates: dict[int, PollEstimate] = {}

    def estimate(self, hint_source_id: int) -> PollEstimate | None:
        """Return what is known of a source, None before it was worked out."""
        return self._estimates.get(hint_source_id)

    def least_pause_s(self, host_name: str, requests: int) -> float:
        """Return the time after which requests keep within the share of turns that polls have."""
        host = self._crawl.hosts.get(host_name)
        delay_s = host.delay_s() if host else 0.0
        share = max(self._settings().poll_share, LEAST_SHARE)
        return max(requests * delay_s / share, LEAST_PAUSE_S)

    def pause_s(
        self, row: SourceRow, host_name: str, requests: int, *, heard: int, since_s: float
    ) -> float:
        """Return how long after a poll the next pays.

        Args:
            row: the source.
            host_name: whom it asks.
            requests: what the poll cost.
            heard: changes of pages held that it brought.
            since_s: time since the poll before.
        """
        least_s = self.least_pause_s(host_name, requests)
        estimate = self._estimates.get(row.hint_source_id)
        if estimate is None:
            return least_s
        best_s = IDLE_FACTOR * least_s if estimate.interval_s is None else estimate.interval_s
        if heard:
            best_s = min(best_s, HEARD_AIM * since_s / heard)
        return max(least_s, best_s)

    async def run(self) -> None:
        """Tell policies how completely they hear, and estimate what polls are worth."""
        while True:
            rows = await self._database.read(hint_source.list_sources)
            by_place: dict[tuple[int, str], list[SourceRow]] = defaultdict(list)
            for row in rows:
                if row.told_until is not None:
                    by_place[row.site_id, row.host].append(row)
            for (site_id, host_name), told in by_place.items():
                host = self._crawl.hosts.get(host_name)
                if host is not None and site_id in host.pages:
                    host.pages[site_id].covered(*coverage(told))
            for told in by_place.values():
                for row in told:
                    await self._update_estimate(row, told)
            await trio.sleep(LOOK_EVERY_S)

    async def _update_estimate(self, row: SourceRow, all_told: Sequence[SourceRow]) -> None:
        known, now = self._estimates.get(row.hint_source_id), trio.current_time()
        pace = Pace(REST_FACTOR)
        host = self._crawl.hosts.get(row.host)
        pages = host.pages.get(row.site_id) if host else None
        if host is None or pages is None or not row.poll_count:
            return
        slots_per_s = 1.0 / max(host.delay_s(), 0.01)
        if known and known.is_current(row, now, slots_per_s):
            return
        models = await self._database.read(
            allocation.batch, after=(host.host_id, -(2**63)), limit=SAMPLE
        )
        told, lasted_s = row.hint_count - (known.hints if known else 0), AGAIN_S
        if known is not None:
            lasted_s = max(now - known.at, 1.0)
        beside = [hint_quality(other) for other in all_told if other is not row]
        question = _EstimateInput(
            models=[each for each in models if each.host_id == host.host_id],
            covered=len(pages.policy),
            slots_per_s=slots_per_s,
            told_per_s=told / lasted_s,
            source=hint_quality(row, beyond_polls=True),
            requests=max(row.request_count / row.poll_count, 0.1),
            beside=min(beside, key=lambda told: told.missed_share, default=None),
            least_s=self.least_pause_s(row.host, 1),
        )
        found = await self._workers.run(_estimate, question)
        if found is not None:
            interval_s, gain = found
            estimate = PollEstimate(interval_s, gain, row.hint_count, now, slots_per_s)
            self._estimates[row.hint_source_id] = estimate
        await pace.rest()


def coverage(told: Sequence[SourceRow]) -> tuple[float, float]:
    """Return the share of changes none of several sources tells, and the lag of the best."""
    known = [hint.load_reliability(row.evidence) for row in told]
    best = min(known, key=lambda each: each.effective_missed_share)
    return combined_missed_share(each.effective_missed_share for each in known), best.lag_s(0.9)


def hint_quality(row: SourceRow, *, beyond_polls: bool = False) -> HintQuality:
    """Return how the hints of a source come, with or without the time they wait for a poll."""
    known = hint.load_reliability(row.evidence)
    lag_s = known.lag_s()
    if beyond_polls and row.poll_count > 1 and row.last_poll_at is not None:
        between_s = max(row.last_poll_at - row.found_at, 0.0) / row.poll_count
        lag_s = max(lag_s - 0.5 * between_s, 0.0)
    return HintQuality(lag_s, known.missed_share, max(known.trust, 0.01))


@dataclass(frozen=True, slots=True, kw_only=True)
class _EstimateInput:
    models: Sequence[WeightedModel]
    covered: int
    slots_per_s: float
    told_per_s: float
    source: HintQuality
    requests: float
    beside: HintQuality | None
    least_s: float


def _estimate(question: _EstimateInput) -> tuple[float | None, float] | None:
    """Return the best interval and the gain, None where too little is known; in a thread."""
    pages = _sample(question.models, question.told_per_s / max(question.covered, 1))
    if pages is None:
        return None
    found = plan_polls(
        pages,
        question.slots_per_s,
        question.source,
        requests=question.requests,
        covered=max(question.covered, len(pages)),
        beside=question.beside,
        least_s=question.least_s,
    )
    return found.interval_s, found.gain


def _sample(models: Sequence[WeightedModel], told_per_s: float) -> SurvivalCurves | None:
    """Return the change laws of some pages; their models lag behind what was told of late."""
    held = [
        each
        for each in models
        if len(each.record) == RECORD_DTYPE.itemsize and each.record[0] == VERSION
    ]
    if len(held) < LEAST_MODELS:
        return None
    records = records_of(each.record for each in held)
    rates = np.maximum(records["rate"].astype(np.float64), 1e-12)
    rates *= max(told_per_s / float(rates.mean()), 1.0)
    return survival_curves([None] * len(held), rates, [each.importance for each in held])
