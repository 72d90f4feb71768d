"""Which pages of a replica rest, which are deferred, and which are compared next."""

import random
from dataclasses import replace

import pytest

from crawld.core.replica.rest import (
    ASKED_AT_ONCE,
    ENOUGH_SAMPLED,
    MAX_RETURN_S,
    RETURN_S,
    decide_section,
    decide_sections,
    next_sampling,
    page_is_deferred,
    page_rests,
    pages_to_sample,
    samples_needed,
    samples_per_day,
)
from crawld.core.replica.sections import (
    LEAST_SECTION,
    NEW_SECTION,
    ReplicaPage,
    Section,
    SectionState,
    SectionTree,
    Standing,
    section_of,
    section_prefixes,
)

DAY_S = 86_400.0
NOW = 100 * DAY_S
AGREES = {"standing": Standing.AGREES, "compared_at": NOW - 10 * DAY_S, "agreed_in_a_row": 1}
RECHECKED = {**AGREES, "compared_at": NOW - DAY_S, "agreed_in_a_row": 2}
DIFFERS = {"standing": Standing.DIFFERS, "compared_at": NOW - DAY_S}
TURNED = {**DIFFERS, "turns": 1, "turned_at": NOW - DAY_S}
UNVISITED = {"standing": Standing.UNVISITED}


def pages(*groups, prefix="/"):
    """Return pages of some kinds, given as (count, fields)."""
    kinds = [fields for count, fields in groups for _ in range(count)]
    return [ReplicaPage(at, f"{prefix}{at}", **fields) for at, fields in enumerate(kinds)]


def tree(found, states=None):
    built = SectionTree(7, NOW, states or {})
    for page in found:
        built.add(page)
    return built


def whole(*groups):
    """Return the only section of some pages."""
    return tree(pages(*groups)).sections()["/"]


def test_only_a_page_that_agreed_rests():
    for fields, rests in ((AGREES, True), (DIFFERS, False), (UNVISITED, False), (TURNED, False)):
        assert page_rests(ReplicaPage(1, "/", **fields), NEW_SECTION) is rests
    uncompared = ReplicaPage(1, "/", Standing.UNCOMPARED)
    assert not page_rests(uncompared, NEW_SECTION)


def test_a_page_that_turned_rests_after_more_agreements():
    page = ReplicaPage(1, "/", **{**AGREES, "turns": 2, "agreed_in_a_row": 3})
    assert not page_rests(page, NEW_SECTION)
    assert page_rests(page._replace(agreed_in_a_row=4), NEW_SECTION)
    assert page_rests(page._replace(turns=40, agreed_in_a_row=64), NEW_SECTION)


def test_comparisons_before_a_return_are_void():
    page = ReplicaPage(1, "/", **AGREES)
    returned = SectionState(returned_at=NOW - 11 * DAY_S, returns=1)
    assert page_rests(page, returned)
    assert not page_rests(page, replace(returned, returned=True))
    assert not page_rests(page, replace(returned, returned_at=NOW - 9 * DAY_S))
    section = tree([page], {"/": replace(returned, returned_at=NOW - 9 * DAY_S)}).sections()["/"]
    assert (section.size, section.compared, section.known_sample()) == (1, 0, (0, 0))


def test_unvisited_pages_are_deferred_where_a_random_sample_agrees():
    found = decide_section(whole((60, AGREES), (940, UNVISITED)), NEW_SECTION, NOW)
    # The crawl visited sixty pages, but hardly any of them is in the sample.
    assert not found.state.deferring
    assert len(found.ask) == ASKED_AT_ONCE
    assert 40 < found.left_to_ask <= 60
    known = tree(pages((1000, UNVISITED)))
    drawn = [page_id for page_id, _ in known.sections()["/"].drawn()][:60]
    agreeing = [
        page._replace(**AGREES) if page.page_id in drawn else page
        for page in pages((1000, UNVISITED))
    ]
    found = decide_sections(tree(agreeing), NOW)[0]
    assert found.state.deferring
    assert (found.ask, found.left_to_ask) == ((), 0)
    assert page_is_deferred(agreeing[next(at for at in range(1000) if at not in drawn)],
                            found.state)  # fmt: skip
    assert not page_is_deferred(agreeing[drawn[0]], found.state)


def test_a_section_stops_deferring_late():
    """Pages that differ are subtracted; the bound must fall further than it had to rise."""
    section = whole((95, AGREES), (5, UNVISITED))
    assert section.agreeing_bound() < 0.9  # five pages of hundred are too few to prove one in 20
    section = whole((100, AGREES))
    assert section.agreeing_bound() == 1.0
    some = whole((93, AGREES), (7, DIFFERS))
    assert some.agreeing_bound() == pytest.approx(0.93)
    assert not decide_section(some, NEW_SECTION, NOW).state.deferring
    assert decide_section(some, SectionState(deferring=True), NOW).state.deferring
    more = whole((89, AGREES), (11, DIFFERS))
    assert not decide_section(more, SectionState(deferring=True), NOW).state.deferring


def test_the_bound_is_that_of_the_pages_nobody_compared():
    """Ninety of hundred agree: at most one differs, but that may be one of the ten left."""
    drawn = [page_id for page_id, _ in whole((100, AGREES)).drawn()]
    last = set(drawn[90:])
    found = [
        page._replace(standing=Standing.UNVISITED) if page.page_id in last else page
        for page in pages((100, AGREES))
    ]
    section = tree(found).sections()["/"]
    assert section.known_sample() == (90, 0)
    assert section.agreeing_bound() == pytest.approx(0.9)
    assert samples_needed(section) == 5
    assert not decide_section(section, NEW_SECTION, NOW).state.deferring


def test_pages_known_to_differ_beyond_the_sample_forbid_deferral():
    section = Section("/", size=1000, agreeing=60, differing=60, unvisited=880)
    section.sample = [(-at, at, Standing.AGREES) for at in range(60)]
    assert section.known_sample() == (60, 0)
    assert section.agreeing_bound() == 0.0
    assert samples_needed(section) is None


def test_no_sample_is_enough_where_much_differs():
    assert samples_needed(whole((30, AGREES), (30, DIFFERS), (940, UNVISITED))) is None
    found = decide_section(whole((10, DIFFERS), (10, UNVISITED)), NEW_SECTION, NOW)
    assert (found.ask, found.left_to_ask) == ((), None)
    assert samples_needed(whole((10, AGREES))) is None  # nothing is left to defer


@pytest.mark.parametrize(
    ("groups", "comes_back"),
    [
        (((100, AGREES),), False),
        (((1, TURNED), (4, AGREES)), False),  # a single page proves nothing
        (((2, TURNED), (18, AGREES)), True),  # a tenth is known to differ
        (((2, TURNED), (198, AGREES)), True),  # both pages sampled: more differ than seen
        (((2, TURNED), (10, RECHECKED), (188, AGREES)), False),
        (((3, TURNED), (20, RECHECKED), (177, AGREES)), True),
        (((3, TURNED), (40, RECHECKED), (157, AGREES)), False),
        (((30, DIFFERS), (70, AGREES)), False),  # these never agreed: nobody trusted them
    ],
)
def test_a_section_returns_where_a_tenth_begins_to_differ(groups, comes_back):
    found = decide_section(whole(*groups), NEW_SECTION, NOW)
    assert found.has_returned is comes_back
    assert found.state.returned is comes_back


def test_slow_divergence_returns_a_section_too():
    old = {**TURNED, "turned_at": NOW - 50 * DAY_S}
    assert decide_section(whole((10, old), (90, AGREES)), NEW_SECTION, NOW).has_returned
    assert not decide_section(whole((9, old), (91, AGREES)), NEW_SECTION, NOW).has_returned
    always = whole((2, old), (30, DIFFERS), (100, AGREES))  # most of these never agreed
    assert not decide_section(always, NEW_SECTION, NOW).has_returned


def test_a_page_that_turned_has_others_compared_at_once():
    found = decide_section(whole((1, TURNED), (99, AGREES)), NEW_SECTION, NOW)
    assert len(found.recheck) == 46  # as many as settle the test if all of them agree
    some = decide_section(whole((1, TURNED), (20, RECHECKED), (99, AGREES)), NEW_SECTION, NOW)
    assert len(some.recheck) == 26
    settled = decide_section(whole((1, TURNED), (46, RECHECKED), (53, AGREES)), NEW_SECTION, NOW)
    assert settled.recheck == ()
    assert decide_section(whole((100, AGREES)), NEW_SECTION, NOW).recheck == ()


def test_a_returned_section_stays_until_it_recovers_and_longer_each_time():
    first = decide_section(whole((5, TURNED), (45, AGREES)), NEW_SECTION, NOW).state
    assert (first.returned, first.returned_at, first.returns) == (True, NOW, 1)
    good, bad = whole((50, RECHECKED)), whole((5, TURNED), (45, RECHECKED))
    assert decide_section(good, first, NOW + RETURN_S - 1).state.returned
    assert decide_section(bad, first, NOW + 9 * RETURN_S).state.returned
    rests = decide_section(good, first, NOW + RETURN_S).state
    assert not rests.returned
    again = decide_section(bad, rests, NOW + RETURN_S).state
    assert (again.returned, again.returns) == (True, 2)
    assert decide_section(good, again, NOW + 3 * RETURN_S - 1).state.returned
    assert not decide_section(good, again, NOW + 3 * RETURN_S).state.returned
    often = replace(again, returns=30, returned_at=NOW)
    assert not decide_section(good, often, NOW + MAX_RETURN_S).state.returned


def test_sections_by_prefix_and_small_ones_in_their_parent():
    found = pages((LEAST_SECTION, AGREES), prefix="/docs/")
    found += [page._replace(page_id=1000 + page.page_id) for page in
              pages((LEAST_SECTION - 1, DIFFERS), prefix="/docs/old/")]  # fmt: skip
    found += [page._replace(page_id=2000 + page.page_id) for page in
              pages((3, UNVISITED), prefix="/cal.php?day=")]  # fmt: skip
    sections = tree(found).sections()
    assert {prefix: one.size for prefix, one in sections.items()} == {"/docs/": 99, "/": 3}
    assert (sections["/docs/"].agreeing, sections["/docs/"].differing) == (50, 49)
    assert section_of("/docs/old/1", sections) == "/docs/"
    assert section_of("/cal.php?day=1", sections) == "/"
    assert section_prefixes("/a/b/c/d/e") == ["/a/", "/a/b/", "/a/b/c/"]
    assert section_prefixes("/") == []


def test_a_new_section_has_the_state_of_its_parent():
    states = {"/": SectionState(returned=True, returned_at=5.0, returns=1), "/b/": NEW_SECTION}
    built = tree(pages((60, AGREES), prefix="/a/x/"), states)
    assert built.state_of("/a/x/") == states["/"]
    assert built.state_of("/b/c/") == NEW_SECTION


def test_many_prefixes_count_for_their_parents():
    found = tree(ReplicaPage(at, f"/{at}/page", **AGREES) for at in range(5000)).sections()
    assert found["/"].size == 5000
    assert found["/"].known_sample() == (160, 0)


def sampling(*saved, late_s=0.0, least=1, most=100, place=0.5):
    per_day = [samples_per_day(one) for one in saved]
    return next_sampling(per_day, late_s=late_s, least=least, most=most, place=place)


def test_sampling_spends_a_share_of_the_saved_visits():
    for saved in (20.0, 100.0, 180.0):
        some = sampling(saved)
        assert sum(some.counts) * DAY_S / some.interval_s == pytest.approx(0.06 * saved, rel=0.01)
    assert samples_per_day(50_000.0) == ENOUGH_SAMPLED
    # A copy that differs as a whole is seen within two days, however small it is.
    assert sampling(0.0, 0.0) == ((1, 0), 1.25 * DAY_S)
    assert sampling() == ((), 1.25 * DAY_S)


def test_a_late_sampling_takes_the_pages_of_the_time_that_was_missed():
    """The job may run once a day only: as many pages are sampled as with a run every hour."""
    every, late = sampling(100.0), sampling(100.0, late_s=DAY_S)
    assert every.counts == (1,)
    assert late.counts == (7,)
    assert sampling(100.0, late_s=900 * DAY_S, most=8).counts == (8,)
    assert sampling(100.0, least=3).counts == (3,)


def test_each_section_has_its_part_of_the_samples():
    drawn = [sampling(100.0, 25.0, 1_000.0, place=at / 200).counts for at in range(200)]
    means = [sum(counts[at] for counts in drawn) / 200 for at in range(3)]
    total = 6.0 + 1.5 + ENOUGH_SAMPLED
    interval_days = 1.0 / total
    assert means == pytest.approx(
        [6.0 * interval_days, 1.5 * interval_days, ENOUGH_SAMPLED * interval_days], abs=0.01
    )
    assert {sum(counts) for counts in drawn} == {1}


def days_until_seen(size, differing, seed):
    """Return after how many days a sample meets one of the pages that differ since day 0."""
    found = [
        ReplicaPage(at, f"/{at}", Standing.AGREES, compared_at=-2.0 + at / size)
        for at in range(size)
    ]
    chosen = set(random.Random(seed).sample(range(size), differing))
    now = random.Random(seed).random() * sampling(size / 2).interval_s / DAY_S
    while True:
        some = sampling(size / 2, place=now % 1.0)
        for page_id in pages_to_sample(found, some.counts[0], seed + int(now * 1e6)):
            if page_id in chosen:
                return now
            found[page_id] = found[page_id]._replace(compared_at=now)
        now += some.interval_s / DAY_S


@pytest.mark.parametrize(
    ("size", "share", "within_days"), [(12, 1.0, 1.25), (100, 1.0, 0.4), (400, 0.1, 2.0)]
)
def test_a_section_that_differs_is_seen_in_time(size, share, within_days):
    """Each page would be visited every second day."""
    days = [days_until_seen(size, round(share * size), seed) for seed in range(100)]
    assert sum(one <= within_days for one in days) >= 85


def test_no_page_waits_for_chance_alone():
    found = pages((40, AGREES))
    sampled = set()
    for turn in range(120):
        (page_id,) = pages_to_sample(found, 1, seed=turn)
        found[page_id] = found[page_id]._replace(compared_at=NOW + turn)
        sampled.add(page_id)
    assert len(sampled) == 40


def test_pages_with_a_changed_twin_are_sampled_first():
    found = pages((5, {**AGREES, "twin_changed": True}), (500, AGREES))
    chosen = pages_to_sample(found, 8, seed=3)
    assert len(set(chosen)) == 8
    assert sum(page_id < 5 for page_id in chosen) >= 4
    assert pages_to_sample(found, 8, seed=3) == chosen
    assert pages_to_sample(found, 8, seed=4) != chosen
    assert len(pages_to_sample(found[:3], 8, seed=3)) == 3
