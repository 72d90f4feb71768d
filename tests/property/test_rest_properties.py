"""Resting pages: the bound is exact, samples do not depend on order, hysteresis holds."""

from math import comb

from hypothesis import example, given
from hypothesis import strategies as st

from crawld.core.replica.bound import differing_bound
from crawld.core.replica.rest import decide_section, page_rests, samples_needed
from crawld.core.replica.sections import (
    NEW_SECTION,
    SAMPLE_LIMIT,
    ReplicaPage,
    SectionState,
    SectionTree,
    Standing,
)


def probability_of_at_most(found, size, differing, sampled):
    ways = sum(
        comb(differing, k) * comb(size - differing, sampled - k)
        for k in range(found + 1)
        if k <= differing and sampled - k <= size - differing
    )
    return ways / comb(size, sampled)


sizes = st.integers(1, 60).flatmap(
    lambda size: st.integers(0, size).flatmap(
        lambda sampled: st.tuples(st.just(size), st.just(sampled), st.integers(0, sampled))
    )
)


@given(sizes)
@example((16, 12, 0))  # exactly 5 %
def test_the_bound_is_the_largest_number_that_is_not_refuted(case):
    size, sampled, found = case
    possible = range(found, size - sampled + found + 1)
    expected = max(
        number
        for number in possible
        if probability_of_at_most(found, size, number, sampled) > 0.05 * (1 + 1e-9)
        or number == found
    )
    assert differing_bound(size, sampled, found) == expected


@given(st.integers(1, 60).flatmap(lambda size: st.tuples(
    st.just(size), st.integers(0, size), st.integers(0, size))))  # fmt: skip
def test_the_bound_covers_the_truth_in_95_of_100_samples(case):
    size, differing, sampled = case
    missed = sum(
        comb(differing, k) * comb(size - differing, sampled - k)
        for k in range(min(differing, sampled) + 1)
        if sampled - k <= size - differing and differing_bound(size, sampled, k) < differing
    )
    assert missed / comb(size, sampled) <= 0.05 * (1 + 1e-9)


@given(sizes)
def test_the_bound_moves_with_the_evidence(case):
    size, sampled, found = case
    bound = differing_bound(size, sampled, found)
    assert found <= bound <= size
    if found < sampled:
        assert bound <= differing_bound(size, sampled, found + 1)
    if sampled < size:
        assert bound >= differing_bound(size, sampled + 1, found)


standings = st.sampled_from(list(Standing))
webs = st.lists(
    st.tuples(st.sampled_from(["/", "/a/", "/a/b/", "/c?"]), standings, st.integers(0, 3)),
    min_size=1,
    max_size=400,
)


def tree_of(pages, now=10.0, states=None):
    tree = SectionTree(1, now, states or {})
    for page in pages:
        tree.add(page)
    return tree


def pages_of(rows):
    return [
        ReplicaPage(at, f"{prefix}{at}", standing, 5.0 * (standing is Standing.AGREES), turns)
        for at, (prefix, standing, turns) in enumerate(rows)
    ]


@given(webs, st.randoms(use_true_random=False))
def test_sections_hold_every_page_once_in_any_order(rows, rng):
    pages = pages_of(rows)
    found = tree_of(pages).sections()
    for standing, field in (("unvisited", "unvisited"), ("agrees", "agreeing")):
        counted = sum(page.standing.value == standing for page in pages)
        assert sum(getattr(section, field) for section in found.values()) == counted
    assert sum(section.size for section in found.values()) == len(pages)
    rng.shuffle(pages)
    again = tree_of(pages).sections()
    assert {key: one.drawn() for key, one in again.items()} == {
        key: one.drawn() for key, one in found.items()
    }
    assert all(len(one.sample) == min(one.size, SAMPLE_LIMIT) for one in found.values())


@given(webs)
def test_knowing_the_pages_asked_for_is_enough_if_they_agree(rows):
    """The cost that is told is the cost: with these pages known to agree, the rest is deferred."""
    pages = pages_of(rows)
    for section in tree_of(pages).sections().values():
        left = samples_needed(section)
        if left is None:
            continue
        known, _ = section.known_sample()
        asked = {page_id for page_id, _ in section.drawn()[: known + left]}
        some = {page_id for page_id, _ in section.drawn()}
        assert asked <= some
        done = tree_of(
            page._replace(standing=Standing.AGREES, compared_at=6.0)
            if page.page_id in asked and page.standing is not Standing.DIFFERS
            else page
            for page in pages
        ).sections()[section.prefix]
        assert decide_section(done, NEW_SECTION, 10.0).state.deferring


@given(webs, st.booleans())
def test_a_section_that_is_deferred_stays_so_without_news(rows, deferring):
    for section in tree_of(pages_of(rows)).sections().values():
        first = decide_section(section, SectionState(deferring=deferring), 10.0).state
        assert decide_section(section, first, 10.0).state == first


@given(standings, st.floats(0, 20), st.integers(0, 70), st.integers(0, 70),
       st.booleans(), st.floats(0, 20))  # fmt: skip
def test_a_page_rests_only_if_it_agreed(standing, compared_at, in_a_row, turns, back, returned_at):
    page = ReplicaPage(1, "/", standing, compared_at, in_a_row, turns)
    if page_rests(page, SectionState(returned=back, returned_at=returned_at)):
        assert standing is Standing.AGREES
        assert not back
        assert compared_at >= returned_at
