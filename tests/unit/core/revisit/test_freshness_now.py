"""The present freshness: coverage of its interval in worlds that the formulas do not know."""

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from crawld.core.change.arrivals import Arrivals
from crawld.core.change.reliability import HintGroup
from crawld.core.revisit.freshness_now import (
    EditedTemplate,
    FanOut,
    QuietCopies,
    ReportedCopies,
    ShareEvidence,
    SiteEvidence,
    estimate_freshness,
)
from crawld.core.revisit.quiet_visits import QuietVisits
from crawld.core.revisit.template_sizes import like_others
from tests.unit.core.revisit.freshness_world import World, WorldSettings

STORM = WorldSettings(pages=500, edits=0.5, templates=(5, 50, 200), template_edits=1 / 120)
WORLDS = {
    "skewed edits": WorldSettings(edits=0.3, zipf=1.1),
    "storm": STORM,
    "bursts": WorldSettings(edits=0.8, bursts=(60.0, 180.0)),
    "invisible templates": replace(STORM, pages=300, templates=(5, 20, 80), visible=0.5),
    "late listings": replace(STORM, template_edits=1 / 90, listing=0.05),
    "a tenth is missed": WorldSettings(missed=0.1),
    "silent source": WorldSettings(edits=0.1, silent_from=0.0),
    "no source": WorldSettings(edits=0.2, hints=False),
    "outages": replace(STORM, outages=((400.0, 460.0), (900.0, 1_020.0))),
    "slow host": WorldSettings(edits=0.02, delay_s=15, poll_s=60),
    "calm": WorldSettings(edits=0.002),
    # Six edits of a page between two polls.
    "rare polls": WorldSettings(pages=60, edits=1.2, zipf=0.3, delay_s=4, poll_s=300),
}
SEEDS = (11, 12, 13)
FROM_S, UNTIL_S = 300.0, 1_800.0


@dataclass
class Probes:
    """What an estimate said, and the truth, at random times of several worlds."""

    inside: list[bool]
    width: list[float]
    model_error: list[float]

    @property
    def coverage(self):
        return float(np.mean(self.inside))


def probe(settings, estimate=estimate_freshness, seeds=SEEDS):
    found = Probes([], [], [])
    for seed in seeds:
        world, rng = World(settings, seed), random.Random(seed)
        at = FROM_S
        while at < UNTIL_S:
            world.run(at)
            says = estimate(world.evidence())
            found.inside.append(says.low - 1e-9 <= world.truth <= says.high + 1e-9)
            found.width.append(says.high - says.low)
            found.model_error.append(abs(says.modelled - world.truth))
            at += rng.uniform(40.0, 90.0)
    return found


@pytest.fixture(scope="module")
def all_probes():
    return {name: probe(settings) for name, settings in WORLDS.items()}


def test_the_interval_covers_as_claimed_over_all_worlds(all_probes):
    inside = [each for found in all_probes.values() for each in found.inside]
    assert len(inside) >= 600
    # Two standard deviations below .95 for so many independent probes.
    assert np.mean(inside) >= 0.95 - 2.0 * np.sqrt(0.95 * 0.05 / len(inside))


@pytest.mark.parametrize("name", WORLDS)
def test_each_world_is_covered(all_probes, name):
    # Probes of one world depend on each other: what misleads one misleads the next, above all
    # templates half of whose edits nobody sees.
    assert all_probes[name].coverage >= (0.65 if name == "invisible templates" else 0.9)


def test_a_storm_is_known_to_a_tenth(all_probes):
    assert np.mean(all_probes["storm"].width) <= 0.06
    assert np.mean(np.array(all_probes["storm"].model_error) <= 0.05) >= 0.95
    assert np.mean(all_probes["no source"].width) <= 0.2


def test_a_sudden_storm_is_covered_from_its_second_poll():
    inside = []
    for seed in range(30):
        world = World(WorldSettings(pages=100, edits=0.5, calm_until=FROM_S), seed)
        for since_s in (12.0, 24.0, 36.0, 48.0, 60.0):
            world.run(FROM_S + since_s)
            says = estimate_freshness(world.evidence())
            inside.append(says.low - 1e-9 <= world.truth <= says.high + 1e-9)
    assert np.mean(inside) >= 0.93


def test_a_pooled_figure_of_the_past_would_not_cover():
    """The figure of the past: the share that audits found, whatever is known of the present."""

    def pooled(evidence):
        visits = replace(evidence.visits, stale=0.0, expected=0.0)
        quiet = replace_quiet(evidence, evidence.sampled)
        return estimate_freshness(
            replace(evidence, quiet=quiet, reported=(), fan_out=FanOut(), visits=visits)
        )

    assert probe(STORM, pooled, seeds=SEEDS[:1]).coverage < 0.5


def replace_quiet(evidence, count):
    """Return that many quiet copies, each like the mean one."""
    quiet = evidence.quiet
    each = (quiet.rate, quiet.changes, quiet.covered_s, quiet.open_s)
    means = (float(values.mean()) for values in each)
    return QuietCopies(*(np.full(count, mean) for mean in means))


def quiet(count, *, rate=1e-9, changes=10.0, covered_s=100.0, open_s=1.0):
    return QuietCopies(*(np.full(count, each) for each in (rate, changes, covered_s, open_s)))


def site(**more):
    given = {
        "copies": 100,
        "quiet": quiet(100),
        "unreported_s": 1.0,
        "missed": ShareEvidence(0.1, 100),
    }
    return SiteEvidence(**given | more)


def test_without_copies_nothing_is_known():
    assert estimate_freshness(site(copies=0, quiet=quiet(0))) is None


def test_known_stale_copies_are_stale_in_all_figures():
    found = estimate_freshness(site(quiet=quiet(60), known_stale=40))
    assert found.high <= 0.605  # half a copy more
    assert found.modelled == pytest.approx(0.6, abs=0.01)
    assert found.reported == 40
    sure = [ReportedCopies(40, ShareEvidence(12.0, 0.1))]
    found = estimate_freshness(site(quiet=quiet(60), reported=sure))
    assert found.modelled == pytest.approx(0.6, abs=0.02)
    assert found.low == pytest.approx(0.6, abs=0.04)


def test_a_false_source_makes_no_copy_stale():
    doubtful = [ReportedCopies(40, ShareEvidence(0.1, 12.0))]
    assert estimate_freshness(site(quiet=quiet(60), reported=doubtful)).freshness > 0.95


def test_changes_since_the_last_poll_are_expected():
    busy = Arrivals()
    for _ in range(60):
        busy.add(5.0, 10.0)
    for unreported_s in (4.0, 40.0):
        found = estimate_freshness(
            site(unreported_s=unreported_s, arrivals=busy, quiet=quiet(100, open_s=unreported_s))
        )
        # Half a page each second, some twice.
        assert found.unreported == pytest.approx(0.5 * unreported_s, rel=0.2)
        assert found.low < found.freshness - 0.01


def test_reports_of_an_unknown_or_silent_span_hide_no_change():
    told = quiet(100, open_s=40.0)
    silent = Arrivals()
    silent.add(0.0, 1e7)
    for arrivals in (silent, Arrivals(long=1.0, long_s=1e6)):
        found = estimate_freshness(site(unreported_s=1e-6, arrivals=arrivals, quiet=told))
        assert found.low > 0.95


def test_a_pending_template_counts_as_many_pages_as_it_had():
    for size in (5.0, 50.0):
        known = FanOut(pending=[EditedTemplate(size, 100)])
        found = estimate_freshness(site(fan_out=known))
        assert found.fan_out == pytest.approx(0.95 * size, rel=0.05)
    unknown = estimate_freshness(
        site(fan_out=FanOut(pending=[EditedTemplate(like_others([], 100.0), 100)]))
    )
    assert 10.0 < unknown.fan_out < 35.0
    assert unknown.low < 0.4 < 0.9 < unknown.high


def test_a_template_that_is_edited_again_counts_the_pages_that_wait_once():
    waiting = [(40, HintGroup(1.0, 5.0, 0.0))]
    again = FanOut(pending=[EditedTemplate(40.0, 60, 40)], waiting=waiting)
    found = estimate_freshness(site(quiet=quiet(60), fan_out=again))
    # The 40 that wait are stale; of 40 pages of the next edit most are among them.
    assert found.fan_out < 15.0
    assert found.low < 0.6 <= found.high


def test_copies_made_since_the_edit_of_a_template_show_it():
    for older in (0, 30, 100):
        pending = FanOut(pending=[EditedTemplate(80.0, older)])
        found = estimate_freshness(site(fan_out=pending))
        assert found.fan_out == pytest.approx(0.95 * 0.8 * older, rel=0.05)


def test_a_page_of_two_edited_templates_is_stale_once():
    pending = FanOut(pending=[EditedTemplate(80.0, 100), EditedTemplate(50.0, 100)])
    found = estimate_freshness(site(fan_out=pending))
    # Any of the pages: one half of the fifth that the first leaves.
    assert found.fan_out == pytest.approx(0.97 * 90.0, rel=0.05)


def test_the_pages_of_a_template_are_not_shared_evenly_by_the_sites_of_a_wiki():
    # Of 50 pages among 200, 18 to 32 belong to one of two sites.
    pending = FanOut(pending=[EditedTemplate(50.0, 100)])
    whole = estimate_freshness(site(fan_out=pending))
    half = estimate_freshness(site(covered_copies=200, fan_out=pending))
    assert whole.high - whole.low < 0.1
    assert half.low < 0.71
    assert half.high > 0.81
    assert half.fan_out == pytest.approx(0.5 * whole.fan_out, rel=0.05)


def test_the_next_edit_is_of_a_template_that_was_listed_or_of_another_one():
    often = Arrivals()
    for _ in range(60):
        often.add(1.0, 30.0)
    more = {"unreported_s": 30.0, "quiet": quiet(100, open_s=30.0)}
    small = FanOut(listed=[EditedTemplate(2.0, 100)] * 30, others=[2.0] * 4, edits=often)
    surprises = FanOut(listed=[EditedTemplate(2.0, 100)] * 2, others=[80.0] * 4, edits=often)
    assert estimate_freshness(site(fan_out=small, **more)).low > 0.9
    assert estimate_freshness(site(fan_out=surprises, **more)).low < 0.4


def test_copies_that_wait_for_a_template_are_edited_as_often_and_stale_already():
    busy = Arrivals()
    for _ in range(60):
        busy.add(5.0, 10.0)
    waiting = FanOut(waiting=[(50, HintGroup(1.0, 6.0, 0.0))])
    more = {"unreported_s": 20.0, "arrivals": busy}
    alone = estimate_freshness(site(quiet=quiet(100, open_s=20.0), **more))
    half = estimate_freshness(site(quiet=quiet(50, open_s=20.0), fan_out=waiting, **more))
    assert half.unreported == pytest.approx(0.5 * alone.unreported, rel=0.1)


def test_the_next_edit_of_a_template_changes_only_pages_that_were_copied_since_the_last():
    often = Arrivals()
    for _ in range(60):
        often.add(1.0, 30.0)
    waiting = [(50, HintGroup(1.0, 6.0, 0.0))]
    more = {"unreported_s": 5.0, "quiet": quiet(50, open_s=5.0)}

    def unreported(copied):
        # All its 50 pages were reported; some were copied since, as were as many others.
        listed = [EditedTemplate(50.0, 2 * copied, 50 - copied, 2 * copied)] * 30
        fan_out = FanOut(listed=listed, others=[1.0], edits=often, waiting=waiting)
        return estimate_freshness(site(fan_out=fan_out, **more)).unreported

    assert unreported(0) < 0.1
    assert unreported(5) < 0.4 * unreported(20)


def test_visits_to_a_templates_pages_tell_about_the_others():
    waiting = {"quiet": quiet(50)}
    shown = FanOut(waiting=[(50, HintGroup(1.0, 6.0, 0.0))])
    hidden = FanOut(waiting=[(50, HintGroup(1.0, 0.0, 6.0))])
    untold = FanOut(waiting=[(50, HintGroup(1.0))], known=[HintGroup(0.0, 0.0, 9.0)])
    assert estimate_freshness(site(**waiting, fan_out=shown)).high < 0.65
    assert estimate_freshness(site(**waiting, fan_out=hidden)).low > 0.8
    both = estimate_freshness(site(**waiting, fan_out=untold))
    assert both.low < 0.6 < 0.9 < both.high


def test_visits_reveal_changes_that_no_source_reports():
    found_none = QuietVisits(count=100, stale=0.0, expected=0.0, exposure_s=100 * 100.0)
    found_many = QuietVisits(count=100, stale=20.0, expected=0.0, exposure_s=100 * 100.0)
    assert estimate_freshness(site(visits=found_none)).low > 0.97
    told = estimate_freshness(site(visits=found_many))
    assert told.low < 0.82 < told.high
    assert told.modelled > 0.99


def test_a_single_odd_change_says_little():
    odd = QuietVisits(count=10, stale=1.0, expected=0.0, exposure_s=400.0)
    found = estimate_freshness(site(visits=odd, quiet=quiet(100, covered_s=200.0)))
    assert found.freshness > 0.9
    several = QuietVisits(count=10, stale=4.0, expected=0.0, exposure_s=400.0)
    found = estimate_freshness(site(visits=several, quiet=quiet(100, covered_s=200.0)))
    assert found.freshness < 0.6


def test_old_visits_decay():
    visits = QuietVisits()
    for _ in range(500):
        visits.add(changed=True, expected=1.0, exposure_s=10.0)
        visits.stale += 1.0
    visits.decay()
    assert visits.count == visits.stale == visits.expected == 120.0
    assert visits.exposure_s == 600.0  # a change halves the time that was free of it


def test_sources_of_several_sites_report_on_each_in_proportion():
    busy = Arrivals()
    for _ in range(60):
        busy.add(5.0, 10.0)
    more = {"unreported_s": 40.0, "arrivals": busy, "quiet": quiet(100, open_s=40.0)}
    alone, one_of_four = (
        estimate_freshness(site(covered_copies=covered, **more)) for covered in (100, 400)
    )
    assert one_of_four.unreported == pytest.approx(alone.unreported / 4, rel=0.15)
    pending = FanOut(pending=[EditedTemplate(40.0, 100)])
    alone, one_of_four = (
        estimate_freshness(site(covered_copies=covered, fan_out=pending)) for covered in (100, 400)
    )
    assert one_of_four.fan_out == pytest.approx(alone.fan_out / 4, rel=0.05)


def test_an_interval_holds_the_share_of_one_copy_more_or_less():
    # 3 of 96 copies are stale: by 95 of them, it is .9684 fresh, by 97 of them .9691.
    sure = [ReportedCopies(3, ShareEvidence(1e6, 1e-6))]
    found = estimate_freshness(site(copies=96, quiet=quiet(93), reported=sure))
    assert found.low <= 92 / 95
    assert found.high >= 94 / 97


def test_a_sample_widens_the_interval():
    half = [ReportedCopies(50, ShareEvidence(12.0, 0.1))]
    whole, part = (
        estimate_freshness(site(copies=copies, quiet=quiet(50), reported=half))
        for copies in (100, 100_000)
    )
    assert part.high - part.low > 2.0 * (whole.high - whole.low)
    assert part.reported == pytest.approx(1_000 * whole.reported)


def test_a_mirror_without_visits_and_sources_knows_little():
    blank = quiet(10, rate=4e-7, changes=0.5, open_s=600.0)
    new = site(copies=10, quiet=blank, unreported_s=np.inf)
    found = estimate_freshness(new)
    assert found.high == 1.0
    assert found.low < 0.75
    # Visits after as long a time as the copies are old tell how it is.
    seen = QuietVisits(count=40, stale=0.0, expected=0.01, exposure_s=40 * 600.0)
    assert estimate_freshness(replace(new, visits=seen)).low > 0.85


def test_models_that_expect_far_too_much_are_corrected():
    lively = quiet(100, rate=1e-3, open_s=1_000.0)
    seen = QuietVisits(count=100, stale=2.0, expected=60.0, exposure_s=1e5)
    found = estimate_freshness(site(quiet=lively, unreported_s=np.inf, visits=seen))
    assert found.low > 0.9
    assert found.modelled < 0.5


def test_copies_that_differ_vary_less_together_than_copies_alike():
    rate = np.where(np.arange(100) < 30, 1.0, 1e-9)  # a part changes always, the rest never
    differing = QuietCopies(rate, *np.full((3, 100), 1_000.0))
    seen = QuietVisits(count=2_000, stale=600.0, expected=600.0, exposure_s=2e6)
    alike = quiet(100, rate=0.3567e-3, changes=1_000.0, covered_s=0.0, open_s=1_000.0)
    widths = [
        found.high - found.low
        for each in (differing, alike)
        if (found := estimate_freshness(site(quiet=each, unreported_s=np.inf, visits=seen)))
    ]
    assert widths[0] < 0.7 * widths[1]


def test_a_page_that_was_not_reported_for_long_is_one_of_the_still_ones():
    """Of pages with few known changes, those without a report lately change seldom."""
    rate, changes = 1e-4, 0.5
    silent, new = (
        estimate_freshness(
            site(
                quiet=quiet(100, rate=rate, changes=changes, covered_s=covered_s, open_s=2_000.0),
                unreported_s=2_000.0,
            )
        ).unreported
        for covered_s in (100_000.0, 10.0)
    )
    assert silent < 0.2 * new


def test_a_burst_does_not_last_for_a_long_time_without_reports():
    burst = Arrivals()
    for _ in range(2_000):
        burst.add(0.0, 60.0)
    for _ in range(6):
        burst.add(10.0, 60.0)
    at_once, later = (
        estimate_freshness(
            site(
                copies=1_000,
                arrivals=burst,
                unreported_s=open_s,
                quiet=quiet(1_000, open_s=open_s),
            )
        ).unreported
        for open_s in (60.0, 36_000.0)
    )
    assert at_once > 5.0
    assert later < 60.0 * at_once  # of 600 times as long


def test_the_models_count_where_reports_are_old():
    """A source that was read for ten minutes, then not for hours, says little of the present."""
    lively = quiet(12, rate=40.0 / 86_400.0, changes=20.0, covered_s=0.0, open_s=2_000.0)
    silent = Arrivals()
    silent.add(0.0, 600.0)
    given = {"copies": 12, "quiet": lively, "unreported_s": 10_000.0}
    modelled = estimate_freshness(site(**given))
    says = estimate_freshness(site(**given, arrivals=silent))
    assert says.low < modelled.freshness < says.freshness
    # After a day of reports, those of the last minute are worth more than the models.
    silent.add(0.0, 86_400.0)
    just_now = quiet(12, rate=40.0 / 86_400.0, changes=20.0, covered_s=0.0, open_s=60.0)
    says = estimate_freshness(site(copies=12, quiet=just_now, unreported_s=60.0, arrivals=silent))
    assert says.freshness > 0.99
