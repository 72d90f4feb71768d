"""Answers about the present freshness: when a new estimate is made, and how long they wait."""

import pytest
import trio

from crawld.core.change.reliability import Reliability
from crawld.core.revisit.freshness_now import EditedTemplate
from crawld.core.revisit.quiet_visits import QuietVisits
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.jobs import present_freshness
from crawld.daemon.jobs.present_freshness import (
    KEPT_EVERY_S,
    KEPT_S,
    MAX_AGE_S,
    WAIT_S,
    PresentFreshness,
)
from crawld.sources.mediawiki_changes import PendingTemplates
from crawld.store.changes import hint
from crawld.store.changes.fan_out import ListedTemplate
from crawld.store.changes.freshness import CopyHint, CopyRate, CopySample, SampledCopy
from crawld.store.changes.hint_source import SourceRow

STILL = CopyRate(1e-9, 10.0)


class Counting(PresentFreshness):
    """Estimates that take a set time and tell their number."""

    def __init__(self, takes_s=0.0):
        super().__init__(CrawlContext(*[None] * 7))
        self.takes_s = takes_s
        self.made = 0

    async def _estimate(self):
        await trio.sleep(self.takes_s)
        self.made += 1
        return [self.made]


async def test_an_answer_does_not_wait_for_a_slow_estimate(nursery, autojump_clock):
    slow = Counting(takes_s=5.0)
    nursery.start_soon(slow.run)
    began_at = trio.current_time()
    assert await slow.get() == []
    assert trio.current_time() - began_at == WAIT_S
    await trio.sleep(5.5)
    assert await slow.get() == [1]
    await trio.sleep(200.0)
    assert await slow.get() != [1]


async def test_answers_share_an_estimate_for_a_while(nursery, autojump_clock):
    quick = Counting()
    nursery.start_soon(quick.run)
    answers = []

    async def ask():
        answers.append(await quick.get())

    async with trio.open_nursery() as at_once:
        for _ in range(50):
            at_once.start_soon(ask)
    assert answers == [[1]] * 50
    await trio.sleep(0.9 * MAX_AGE_S)
    assert await quick.get() == [1]
    await trio.sleep(0.2 * MAX_AGE_S)
    assert await quick.get() == [2]


async def test_an_estimate_that_waited_while_the_daemon_started_is_not_kept_for_long(
    nursery, autojump_clock
):
    late = Counting(takes_s=1.5)
    nursery.start_soon(late.run)
    assert await late.get() == []
    late.takes_s = 0.01
    await trio.sleep(4.0)
    [number] = await late.get()
    assert number > 1


async def test_estimates_that_take_long_are_rare(nursery, autojump_clock):
    slow = Counting(takes_s=1.5)
    nursery.start_soon(slow.run)
    await slow.get()
    await trio.sleep(100.0)
    made = slow.made
    await trio.sleep(300.0)
    assert 9 <= slow.made - made <= 11


async def test_a_question_during_an_estimate_makes_no_second_one(nursery, autojump_clock):
    slow = Counting(takes_s=0.5)
    nursery.start_soon(slow.run)
    for _ in range(4):
        await slow.get()
    await trio.sleep(1.0)
    assert slow.made == 1


async def test_a_question_that_is_forgotten_while_an_estimate_is_made_is_none(
    nursery, autojump_clock
):
    slow = Counting(takes_s=0.5)
    nursery.start_soon(slow.run)
    await trio.sleep(0.1)
    await slow.get()
    slow.forget_question()
    await trio.sleep(KEPT_S / 2.0)
    assert slow.made == 1
    await slow.get()
    await trio.sleep(1.0)
    assert slow.made == 2


async def test_estimates_go_on_for_a_while_and_end_when_nobody_asks(nursery, autojump_clock):
    quick = Counting()
    nursery.start_soon(quick.run)
    await quick.get()
    await trio.sleep(2 * KEPT_S)
    made = quick.made
    assert 0.9 * KEPT_S / KEPT_EVERY_S <= made <= 1.1 * KEPT_S / KEPT_EVERY_S
    await trio.sleep(10 * KEPT_S)
    assert quick.made == made
    assert await quick.get() == [made + 1]


def test_a_page_of_two_sites_counts_once_among_those_that_a_source_covers():
    # Ten pages of one site, five of them another site's, too: the source covers ten.
    now = 1_000.0
    own, shared = (SampledCopy(1.0, "changed", is_own, STILL, ()) for is_own in (True, False))
    source = SourceRow(**dict.fromkeys(SourceRow._fields))._replace(
        hint_source_id=7, kind=hint.FAN_OUT, hint_count=0, site_ids=(1, 2)
    )
    pending = PendingTemplates((("Template:T", now),))
    listed = {7: {"Template:T": ListedTemplate(10, 1.0)}}
    stored = [
        present_freshness._Stored(
            site_id,
            CopySample(len(copies), copies),
            QuietVisits(),
            [source._replace(cursor=pending.to_json())],
            listed,
            {7: None},
        )
        for site_id, copies in ((1, [own] * 10), (2, [shared] * 5))
    ]
    whole, part = present_freshness._estimate_all(stored, set(), now)
    assert whole.now.fan_out == pytest.approx(9.7, abs=0.3)
    assert part.now.fan_out == pytest.approx(4.85, abs=0.2)


def test_a_template_that_was_listed_can_change_only_what_was_copied_since():
    now, listed_at, number = 1_000.0, 500.0, 7
    waiting = CopyHint(number, 450.0, 450.0, listed_at)
    copies = [
        *([SampledCopy(100.0, "changed", True, STILL, ())] * 30),  # no pages of it
        *([SampledCopy(900.0, "changed", True, STILL, ())] * 10),
        *([SampledCopy(100.0, "changed", True, STILL, (waiting,))] * 20),
        *([SampledCopy(100.0, "changed", True, STILL, (waiting._replace(heard_at=300.0),))] * 5),
    ]
    source = SourceRow(**dict.fromkeys(SourceRow._fields))._replace(
        hint_source_id=number, kind=hint.FAN_OUT, hint_count=1, site_ids=(1,), evidence=None
    )
    stored = present_freshness._Stored(
        1,
        CopySample(len(copies), copies),
        QuietVisits(),
        [source],
        {number: {"Template:T": ListedTemplate(28, listed_at)}},
        {number: None},
    )
    [known] = present_freshness._evidence(stored, set(), now).fan_out.listed
    assert known == EditedTemplate(pages=28.0, older=10, waiting=20, among=5 + 10)


def reporting(kind, number, told_until, *counts):
    known = Reliability()
    for count in counts:
        known.arrivals.add(count, 60.0)
    return SourceRow(**dict.fromkeys(SourceRow._fields))._replace(
        hint_source_id=number,
        kind=kind,
        hint_count=1,
        site_ids=(1,),
        told_until=told_until,
        evidence=hint.dump_reliability(known),
    )


def evidence_of(copies, *sources, now=1_000.0):
    sample = CopySample(len(copies), list(copies))
    stored = present_freshness._Stored(1, sample, QuietVisits(), sources, {}, {})
    covering = {each.hint_source_id for each in sources}
    return present_freshness._evidence(stored, covering, now)


def test_the_rate_of_reports_is_that_of_the_source_that_reported_last():
    quick, slow = reporting("probe", 1, 900.0, 0.0), reporting("recent_changes", 2, 990.0, 3.0)
    for sources in ((quick, slow), (slow, quick)):
        found = evidence_of([SampledCopy(800.0, "changed", True, STILL, ())], *sources)
        assert found.unreported_s == 10.0
        assert found.arrivals.long > 2.9


@pytest.mark.parametrize(("kind", "unreported_s"), [("recent_changes", 100.0), ("sitemap", 700.0)])
def test_recent_changes_that_are_read_in_part_are_known_up_to_there(kind, unreported_s):
    reported = SampledCopy(200.0, "changed", True, STILL, (CopyHint(1, 400.0, 900.0, 950.0),))
    quiet = SampledCopy(200.0, "changed", True, STILL, ())
    found = evidence_of([reported, quiet], reporting(kind, 1, 300.0, 1.0))
    assert found.unreported_s == unreported_s
    assert found.quiet.open_s.tolist() == [unreported_s]
    assert found.quiet.covered_s.tolist() == [800.0 - unreported_s]


def test_a_copy_of_a_gap_is_one_whose_changes_nobody_reported_then():
    feed = reporting("feed", 1, 1_000.0, 1.0)
    gap = SourceRow(**dict.fromkeys(SourceRow._fields))._replace(
        hint_source_id=2, kind=hint.GAP, hint_count=3, site_ids=(1,)
    )
    missed = CopyHint(2, 400.0, 700.0, 750.0)
    copies = [
        SampledCopy(200.0, "changed", True, STILL, hints)
        for hints in ((), (missed,), (missed, CopyHint(1, 900.0, 900.0, 950.0)))
    ]
    copies.append(SampledCopy(600.0, "changed", True, STILL, (missed,)))
    found = evidence_of(copies, feed, gap)
    assert found.quiet.covered_s.tolist() == [800.0, 500.0, 300.0]
    assert found.quiet.open_s.tolist() == [0.0, 300.0, 100.0]
    assert [each.copies for each in found.reported] == [1]
