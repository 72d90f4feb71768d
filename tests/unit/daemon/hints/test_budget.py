"""Poll intervals, and the coverage of several sources."""

import json
import math
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import trio

from crawld.config.model import Config, JobsConfig
from crawld.core.change.hawkes import SHARED
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.reliability import Reliability
from crawld.core.revisit.forecast import HintQuality
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.hints.budget import (
    FIRST_AGE_S,
    IDLE_FACTOR,
    MAX_AGE_S,
    MIN_SHARE,
    PollBudget,
    PollEstimate,
    _estimate,
    _EstimateInput,
    coverage,
    source_quality,
)
from crawld.store.changes.allocation import WeightedModel
from crawld.store.changes.hint_source import SourceRow
from crawld.workers import THREADS
from tests.unit.daemon.fake_hosts import NoSharedRates, on_autojump_clock

NOW = 1_790_000_000.0
DAY_S = 86_400.0


def row(number=1, **more):
    values = dict.fromkeys(SourceRow._fields)
    values |= {"hint_source_id": number, "poll_count": 10, "hint_count": 0, "found_at": NOW}
    return SourceRow(**{**values, **more})


def known(*, missed=0, told=50, lag_s=4.0):
    """Return the stored evidence of a source with so many hints and missed changes."""
    reliability = Reliability()
    for _ in range(told):
        reliability.learn_visit(1, changed=True)
        reliability.learn_lag(lag_s)
    for _ in range(missed):
        reliability.learn_visit(0, changed=True)
    return json.dumps(reliability.as_dict())


def models(count=30, every_s=30 * DAY_S):
    """Return models of pages that changed before every visit."""
    found = []
    for number in range(count):
        model = PageModel()
        for visit in range(6):
            at = NOW - (6 - visit) * every_s
            model.update(Observation(at, visit > 0, None, every_s if visit else 0.0))
        found.append(WeightedModel(number + 1, 1, number, 1, 1.0, model.to_bytes()))
    return found


def estimate_input(**more):
    values = {
        "models": models(),
        "model": SHARED,
        "covered": 500,
        "slots_per_s": 1.0,
        "hints_per_s": 0.0,
        "source": HintQuality(1.0, 0.02, 0.95),
        "requests": 1.0,
        "beside": None,
        "min_s": 4.0,
    }
    return _EstimateInput(**{**values, **more})


@pytest.mark.parametrize(
    ("interval_s", "gain", "factor"),
    [
        (100.0, 0.2, 2.0),
        (110.0, 0.203, 2.0),
        (130.0, 0.2, None),
        (75.0, 0.2, None),
        (None, 0.2, None),
        (100.0, 0.21, None),
    ],
)
def test_an_estimate_that_is_confirmed_lasts_longer(interval_s, gain, factor):
    known = PollEstimate(100.0, 0.2, 5, 0.0, 1.0, 2.0 * FIRST_AGE_S)
    expected_s = FIRST_AGE_S if factor is None else factor * known.lasts_s
    assert known.confirmed_lasts_s(interval_s, gain) == expected_s


def test_an_estimate_without_a_gain_is_confirmed_up_to_a_longest_age():
    known = PollEstimate(None, 0.0, 5, 0.0, 1.0, MAX_AGE_S)
    assert known.confirmed_lasts_s(None, 0.0) == MAX_AGE_S
    told = row(hint_count=5)
    assert known.is_current(told, MAX_AGE_S - 1.0, 1.0)
    assert not known.is_current(told, MAX_AGE_S + 1.0, 1.0)


def test_a_quiet_wiki_is_polled_seldom_and_a_burst_often():
    calm = _estimate(estimate_input())
    storm = _estimate(estimate_input(hints_per_s=0.5))
    assert calm[0] is None or calm[0] > 60.0
    assert storm[0] < 15.0
    assert storm[1] > 0.05


def test_too_few_models_give_no_estimate():
    assert _estimate(estimate_input(models=models(2))) is None


def test_several_sources_miss_less_than_each():
    first, second = row(1, evidence=known(missed=30)), row(2, evidence=known(missed=10, lag_s=60.0))
    missed, lag_s = coverage([first, second])
    assert missed < min(coverage([first])[0], coverage([second])[0])
    assert lag_s > 30.0


def test_the_lag_of_a_source_excludes_the_wait_for_a_poll():
    polled = row(evidence=known(lag_s=60.0), last_poll_at=NOW + 900.0)
    whole, own = source_quality(polled), source_quality(polled, beyond_polls=True)
    assert own.lag_s == pytest.approx(max(whole.lag_s - 45.0, 0.0))


@dataclass
class Host:
    """A host with a delay, whether most of its pages have no copy yet, and its stale pages."""

    delay: float
    filling: bool
    stale: bool
    hinted_at: float

    def delay_s(self):
        return self.delay

    def has_many_new(self, active):
        return self.filling

    def has_stale(self, active):
        return self.stale


def budget(
    estimate=None, *, share=0.25, delay_s=1.0, filling=True, stale=False, hinted_at=-math.inf
):
    config = Config(jobs=JobsConfig(poll_share=share))
    state = SimpleNamespace(
        hosts={"a.test": Host(delay_s, filling, stale, hinted_at)},
        active=frozenset(),
        rates=NoSharedRates(),
    )
    clock = Clock(wall=lambda: NOW)
    made = PollBudget(CrawlContext(state, None, clock, THREADS, None, None, lambda: config))
    if estimate is not None:
        made._estimates[1] = estimate
    return made


def pause_s(made, *, kind="recent_changes", new_hints=0, since_s=0.0):
    return made.pause_s(row(kind=kind), "a.test", 1, new_hints=new_hints, since_s=since_s)


def test_polls_keep_within_their_share():
    assert pause_s(budget()) == 4.0
    assert pause_s(budget(delay_s=15.0)) == 60.0
    assert pause_s(budget(share=0.0)) == 1.0 / MIN_SHARE


def test_a_source_without_gain_is_polled_seldom():
    nothing = PollEstimate(None, 0.0, 0, 0.0, 1.0)
    assert pause_s(budget(nothing)) == 4.0 * IDLE_FACTOR
    # Forty changes in one poll shorten the pause despite the estimate.
    assert pause_s(budget(nothing), new_hints=40, since_s=80.0) == 4.0


@pytest.mark.parametrize("interval_s", [None, 2.0, 900.0])
def test_a_wiki_is_polled_at_one_pace_once_it_is_mirrored(interval_s):
    known = budget(PollEstimate(interval_s, 0.0, 0, 0.0, 1.0), filling=False)
    assert pause_s(known) == 5.0
    assert pause_s(known, new_hints=40, since_s=10.0) == 5.0
    assert pause_s(known, kind="feed") == max(4.0, interval_s or 4.0 * IDLE_FACTOR)
    slow = budget(PollEstimate(interval_s, 0.0, 0, 0.0, 1.0), delay_s=15.0, filling=False)
    assert pause_s(slow) == 60.0


def test_a_wiki_is_polled_less_often_while_stale_pages_wait_and_nothing_new_is_told():
    assert pause_s(budget(filling=False, stale=True)) == 8.0
    assert pause_s(budget(filling=False, stale=True), new_hints=1) == 5.0
    assert pause_s(budget(filling=False)) == 5.0


@on_autojump_clock
async def test_the_longer_it_is_silent_while_stale_pages_wait_the_less_often_a_wiki_is_polled():
    told_at = trio.current_time()
    pauses = []
    while trio.current_time() < told_at + 100.0:
        pauses.append(pause_s(budget(filling=False, stale=True, hinted_at=told_at)))
        await trio.sleep(pauses[-1])
    assert pauses[0] == 8.0
    assert pauses == sorted(pauses)
    assert pauses[-2:] == [15.0, 15.0]
    assert len(pauses) == 8


def test_a_wiki_is_polled_as_often_as_it_pays_while_most_pages_have_no_copy():
    assert pause_s(budget(PollEstimate(None, 0.0, 0, 0.0, 1.0))) == 4.0 * IDLE_FACTOR
    assert pause_s(budget(PollEstimate(30.0, 0.0, 0, 0.0, 1.0))) == 30.0


def test_an_estimate_holds_until_something_changed():
    estimate = PollEstimate(60.0, 0.1, 20, 0.0, 1.0)
    assert estimate.is_current(row(hint_count=30), 100.0, 1.0)
    assert not estimate.is_current(row(hint_count=80), 100.0, 1.0)
    assert not estimate.is_current(row(hint_count=30), 1e6, 1.0)
    assert not estimate.is_current(row(hint_count=30), 100.0, 50.0)
