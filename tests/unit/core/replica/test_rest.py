"""Which pages of a replica rest, which are deferred, and which sections return."""

from dataclasses import replace

import pytest

from crawld.core.replica.rest import (
    ASKED_AT_ONCE,
    MAX_RETURN_S,
    RETURN_S,
    decide_section,
    decide_sections,
    page_is_deferred,
    page_rests,
    samples_needed,
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


def test_what_was_compared_before_the_first_page_turned_is_compared_again():
    """It may have begun to differ since: nothing but what came after tells of the section now."""
    before = {**RECHECKED, "compared_at": NOW - 1.5 * DAY_S}
    same_run = {**RECHECKED, "compared_at": NOW - DAY_S - 300.0}
    small = decide_section(whole((1, TURNED), (20, before), (10, AGREES)), NEW_SECTION, NOW)
    assert set(small.recheck) == set(range(1, 31))
    known = decide_section(whole((1, TURNED), (20, same_run), (10, AGREES)), NEW_SECTION, NOW)
    assert set(known.recheck) == set(range(21, 31))
    groups = ((2, TURNED), (40, before), (188, AGREES))
    assert decide_section(whole(*groups), NEW_SECTION, NOW).has_returned
    first = {**TURNED, "turned_at": NOW - 2 * DAY_S}  # before them, so that they count
    assert not decide_section(whole((1, first), *groups[1:]), NEW_SECTION, NOW).has_returned
    found = pages((1, TURNED), (20, before), (20, AGREES), prefix="/docs/")
    assert len(decide_section(tree(found).sections()["/"], NEW_SECTION, NOW).recheck) == 40
    many = decide_section(whole((1, TURNED), (900, before), (99, AGREES)), NEW_SECTION, NOW)
    assert len(many.recheck) == 46


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


def test_a_share_too_small_to_return_a_section_keeps_it_returned():
    out = decide_section(whole((5, TURNED), (45, AGREES)), NEW_SECTION, NOW).state
    some, few = whole((3, TURNED), (47, RECHECKED)), whole((2, TURNED), (48, RECHECKED))
    assert not decide_section(some, NEW_SECTION, NOW).state.returned
    assert decide_section(some, out, NOW + 9 * RETURN_S).state.returned
    assert not decide_section(few, out, NOW + 9 * RETURN_S).state.returned


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
