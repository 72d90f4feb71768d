"""Shared pages, the statistic of the verdict, its thresholds, reasons, groups."""

from dataclasses import replace
from math import log

import pytest

from crawld.core.replica.groups import connected_groups
from crawld.core.replica.reasons import reasons
from crawld.core.replica.verdict import (
    DECLARED_SHARE,
    WITHDRAWN_SHARE,
    HostAgreement,
    PairEvidence,
    VerdictLevel,
    declared_by,
    is_contradicted,
    is_replica,
    is_undecided,
    is_worth_a_question,
    level_of,
    looks_like_replica,
    may_be_replica,
    pages_to_probe,
    pointing_hosts,
    shares_pages,
)

PAIR = PairEvidence(names=("a.com", "b.net"), pages=(50, 60), common=44, compared=44, equal=41)
WWW = replace(PAIR, names=("www.a.com", "a.com"))


@pytest.mark.parametrize(
    ("change", "shares"),
    [
        ({}, True),
        ({"equal": 3, "compared": 3, "common": 3, "pages": (3, 3)}, True),
        ({"equal": 2, "compared": 2, "common": 2, "pages": (2, 2)}, False),  # too few
        ({"equal": 12, "compared": 44}, True),  # a shop of a chain
        ({"equal": 10, "compared": 44}, False),  # share too uncertain
        ({"pages": (200, 200)}, True),
        ({"pages": (230, 230)}, False),  # a small part of both
        ({"equal": 0, "compared": 0}, False),  # empty and error pages are no texts
        ({"weight": 3.0}, True),
        ({"weight": 2.9}, False),  # one manual on many hosts
        ({"equal": 4, "compared": 9, "weight": 4 / 2.1}, False),
        ({"equal": 0, "compared": 9, "partial": 7.0, "weight": 7.0}, True),  # a date on each page
    ],
)
def test_shared_pages(change, shares):
    assert shares_pages(replace(PAIR, **change)) is shares


def test_names_of_one_site_share_pages_however_few():
    """The other texts may be new at each fetch; each page rests by its own comparison."""
    few = replace(PAIR, names=("srv1.a.com", "srv2.a.com"), pages=(300, 300), common=30,
                  compared=30, equal=1, weight=0.4)  # fmt: skip
    assert shares_pages(few)
    assert not shares_pages(replace(few, equal=0))
    assert not shares_pages(replace(few, names=("one.a.com", "two.a.com")))
    assert not may_be_replica(few)


def test_hosts_of_one_domain_share_pages_whatever_the_weight_of_their_texts():
    """Branches show one text on all of their hosts."""
    branches = replace(PAIR, names=("roma.a.com", "paris.a.com"), pages=(14, 20), common=13,
                       compared=13, equal=4, weight=1.6)  # fmt: skip
    assert shares_pages(branches)
    assert not shares_pages(replace(branches, names=("roma.a.com", "paris.b.com")))
    assert not shares_pages(replace(branches, compared=20))  # the share is too uncertain
    assert not shares_pages(replace(branches, equal=1, compared=2))
    assert not shares_pages(replace(branches, pages=(90, 90)))
    assert not may_be_replica(branches)
    assert not is_replica(branches, HostAgreement(13, 13, 0, True), declared=False)


def test_hosts_share_pages_that_redirect_to_the_same_path():
    few = replace(PAIR, compared=0, equal=0)
    assert shares_pages(replace(few, redirects=(0, 3)))
    assert not shares_pages(replace(few, redirects=(2, 2)))
    assert not shares_pages(replace(few, canonicals=(0, 3)))  # its texts tell


def test_a_name_points_to_another_of_its_site():
    pair = replace(WWW, redirects=(10, 0))
    assert pointing_hosts({(4, 7): pair}) == {4}
    assert pointing_hosts({(4, 7): replace(WWW, canonicals=(0, 12))}) == {7}
    for nobody in (
        replace(WWW, redirects=(9, 0)),  # a few pages that moved
        replace(WWW, redirects=(30, 0), canonicals=(0, 30)),  # both point
        replace(PAIR, redirects=(30, 0)),  # users of a site can make it point elsewhere
    ):
        assert pointing_hosts({(4, 7): nobody}) == set()


@pytest.mark.parametrize(
    ("change", "may"),
    [
        ({}, True),
        ({"equal": 3, "compared": 3, "common": 3, "pages": (3, 3)}, False),  # too few
        ({"equal": 12, "compared": 44}, False),  # share too uncertain
        ({"pages": (200, 200)}, False),  # a small part of both
        ({"pages": (1, 1), "common": 1, "compared": 1, "equal": 1}, False),  # hosts with one page
        ({"equal": 0, "compared": 0}, False),  # empty and error pages are no texts
        ({"weight": 5.9}, False),  # one manual on many hosts
        ({"equal": 40, "weight": 40 / 3.9}, True),  # twenty hosts with all else equal
        ({"equal": 20, "weight": 20 / 3.9}, False),  # twenty hosts, half of the pages differ
        ({"equal": 4, "partial": 30.0}, True),  # a date on each page
        ({"equal": 4, "partial": 1.0}, False),
    ],
)
def test_possible_replicas(change, may):
    pair = replace(PAIR, **change)
    assert may_be_replica(pair) is may
    assert shares_pages(pair) or not may


def test_little_is_needed_to_share_pages_and_more_to_be_declared():
    whole = HostAgreement(50, 50, 0, True)
    small = replace(PAIR, pages=(9, 9), common=9, compared=4, equal=4)
    assert shares_pages(small)
    assert not may_be_replica(small)
    # Once the pages were compared, their number counts, and not what was known at first.
    assert is_replica(small, whole, declared=False)
    assert not is_replica(small, HostAgreement(5, 5, 0, True), declared=False)
    assert not is_replica(replace(small, weight=0.4), whole, declared=False)
    assert not is_replica(replace(small, common=3), whole, declared=False)
    assert is_replica(replace(small, common=3), whole, declared=True)


def test_pages_count_by_how_rare_their_texts_are():
    some = replace(PAIR, weight=0.6 * 41)
    assert is_replica(some, HostAgreement(10, 10, 0, True), declared=False)
    assert not is_replica(some, HostAgreement(9, 9, 0, True), declared=False)
    # A declared host needs no weight, but as many pages.
    assert is_replica(some, HostAgreement(6, 6, 0, True), declared=True)
    assert not is_replica(some, HostAgreement(5, 5, 0, True), declared=True)


def test_a_score_proves_nothing():
    pair = replace(PAIR, compared=0, equal=0, probability=0.999)
    assert not shares_pages(pair)
    assert level_of(pair) is VerdictLevel.LIKELY
    assert level_of(replace(PAIR, probability=0.001)) is VerdictLevel.CERTAIN


@pytest.mark.parametrize(
    ("agreement", "declared", "withdrawn"),
    [
        ((50, 45, 5), True, False),
        ((50, 44, 6), False, False),
        ((50, 40, 10), False, False),  # one manual, own news
        ((50, 39, 11), False, True),
        ((51, 20, 31), False, True),  # versions of a documentation
        ((200, 30, 0), True, False),  # a sample
        ((200, 20, 0), False, False),
        ((10, 5, 0), False, True),
        ((50, 49, 1, False), False, False),  # the root pages differ
        ((50, 46, 4, False), False, True),
        ((50, 49, 1, True), True, False),
    ],
)
def test_one_statistic_declares_and_withdraws(agreement, declared, withdrawn):
    found = HostAgreement(*agreement)
    assert is_replica(PAIR, found, declared=False) is declared
    assert is_replica(PAIR, found, declared=True) is not withdrawn


def test_a_few_pages_declare_nothing():
    assert not is_replica(PAIR, HostAgreement(5, 5, 0, True), declared=False)
    assert is_replica(PAIR, HostAgreement(6, 6, 0, True), declared=False)


def test_thresholds_are_apart():
    assert DECLARED_SHARE - WITHDRAWN_SHARE >= 0.05
    for size in (10, 50, 300):
        for differing in range(size):
            found = HostAgreement(size, size - differing, differing)
            if is_replica(PAIR, found, declared=False):
                assert is_replica(PAIR, found, declared=True)


def test_www_is_declared_sooner():
    old = HostAgreement(50, 26, 24)
    assert not is_replica(PAIR, old, declared=False)
    assert is_replica(WWW, old, declared=False)
    assert not is_replica(WWW, HostAgreement(50, 22, 28), declared=False)
    assert is_replica(WWW, HostAgreement(50, 22, 28), declared=True)
    assert not is_replica(WWW, HostAgreement(50, 18, 32), declared=True)


def test_redirects_declare_no_name_of_which_every_text_differs():
    half = replace(WWW, pages=(23, 14), common=12, compared=2, equal=0, weight=0.0, rare=(2, 0),
                   redirects=(12, 0))  # fmt: skip
    agreement = HostAgreement(22, 12, 10, True)
    assert not is_replica(half, agreement, declared=False)
    assert is_replica(replace(half, equal=1, weight=1.0), agreement, declared=False)
    assert is_replica(replace(half, compared=0), agreement, declared=False)
    assert shares_pages(half)


def test_editions_are_no_replicas_however_equal():
    pair = replace(PAIR, names=("v1.docs.a.com", "v2.docs.a.com"), equal=44)
    assert not is_replica(pair, HostAgreement(44, 44, 0, True), declared=True)
    assert shares_pages(pair)
    assert level_of(pair) is VerdictLevel.LIKELY
    assert is_replica(replace(pair, redirects=(44, 0)), HostAgreement(0, 0, 0), declared=False)


def test_texts_of_many_hosts_declare_only_names_of_one_site():
    """Sample pages of one program are equal word for word on all its new installations."""
    whole = HostAgreement(44, 44, 0, True)

    def weighed(hosts):
        return replace(PAIR, equal=44, weight=44 / (1 + log(hosts - 1)))

    for names, hosts, declared, stays in (
        (("one.a.com", "two.a.com"), 3, True, True),
        (("one.a.com", "two.a.com"), 4, False, True),
        (("one.a.com", "two.a.com"), 6, False, False),
        (("web1.a.com", "web2.a.com"), 6, True, True),
        (("www.a.com", "staging.a.com"), 30, True, True),
    ):
        pair = replace(weighed(hosts), names=names)
        assert is_replica(pair, whole, declared=False) is declared, hosts
        assert is_replica(pair, whole, declared=True) is stays, hosts
        assert looks_like_replica(pair) is declared
        # Pages that agree rest, and a person may be asked, whatever the verdict on the host.
        assert shares_pages(pair)
        assert is_worth_a_question(pair)


def test_pages_that_only_the_two_have_must_agree():
    whole = HostAgreement(60, 57, 3, True)
    assert is_replica(replace(PAIR, rare=(10, 9)), whole, declared=False)
    assert not is_replica(replace(PAIR, rare=(10, 8)), whole, declared=False)
    assert is_replica(replace(PAIR, rare=(4, 0)), whole, declared=False)
    # A counter makes every text differ a little.
    assert is_replica(replace(PAIR, rare=(20, 0), partial=19.0), whole, declared=False)
    assert is_replica(replace(PAIR, rare=(10, 8)), whole, declared=True)


def test_pages_that_only_the_two_have_agree_if_hardly_any_page_differs_any_more():
    # The texts of pages at rest age: a name showed another site when they were read.
    joined = replace(WWW, pages=(23, 23), common=23, compared=23, equal=3, rare=(22, 3), root=False)
    for differing, declared in ((0, True), (2, True), (3, False)):
        agreement = HostAgreement(23, 23 - differing, differing, True)
        assert is_replica(joined, agreement, declared=False) is declared, differing
    assert not is_replica(joined, HostAgreement(40, 20, 0, True), declared=False)  # some compared


@pytest.mark.parametrize(("count", "declares"), [(2, False), (30, False), (34, True)])
def test_most_pages_must_declare(count, declares):
    assert replace(PAIR, redirects=(count, 0)).declares(0) is declares
    assert replace(PAIR, canonicals=(0, count)).declares(0) is False
    nothing = replace(PAIR, equal=0, compared=0, redirects=(count, 0))
    assert looks_like_replica(nothing) is declares


@pytest.mark.parametrize(
    ("agreement", "declared", "stays"),
    [
        ((0, 0, 0), True, True),  # nothing to compare
        ((900, 9, 1, True), True, True),  # its own word: no bound is needed
        ((900, 8, 1, True), False, True),
        ((40, 31, 9, True), False, False),  # it moved in part
        ((40, 39, 1, False), False, True),  # it quotes another, under a root of its own
        ((40, 36, 4, False), False, False),
    ],
)
def test_a_host_that_declares_itself_must_agree_where_it_was_compared(agreement, declared, stays):
    pair, found = replace(PAIR, canonicals=(44, 0), weight=1.0), HostAgreement(*agreement)
    assert is_replica(pair, found, declared=False) is declared
    assert is_replica(pair, found, declared=True) is stays
    assert is_replica(replace(pair, redirects=(44, 0)), found, declared=False) is declared


def test_hosts_with_different_texts_are_contradicted():
    pair = replace(PAIR, equal=1, probability=0.9)
    assert is_contradicted(pair)
    assert level_of(pair) is VerdictLevel.UNLIKELY


def test_levels():
    assert level_of(PAIR) is VerdictLevel.CERTAIN
    assert level_of(replace(PAIR, root=False)) is VerdictLevel.LIKELY
    assert level_of(replace(PAIR, equal=30)) is VerdictLevel.LIKELY
    assert level_of(replace(PAIR, equal=3)) is VerdictLevel.UNLIKELY


def test_reasons_in_words():
    pair = replace(WWW, redirects=(48, 0), same_address=True, same_certificate=True)
    assert reasons(pair) == [
        "48 of 50 pages of www.a.com redirect to a.com",
        "same text on 41 of 44 shared paths",
        "names differ by www.",
        "same address",
        "one certificate names both",
    ]
    assert reasons(replace(PAIR, compared=0, equal=0)) == ["44 shared paths, no content to compare"]
    doubtful = replace(PAIR, names=("v1.a.com", "v2.a.com"), weight=10.54, root=False)
    assert reasons(doubtful)[1:] == [
        "both under a.com",
        "these texts are on other hosts too and count as 10.5",
        "the root pages differ",
        "the names are those of versions or languages of one thing",
    ]
    dated = replace(PAIR, equal=0, partial=41.8)  # a date on each page
    assert reasons(dated, HostAgreement(44, 43, 1)) == [
        "43 of 44 pages agree, compared one by one",
        "same text on 0 of 44 shared paths, similar on 41",
    ]
    assert reasons(dated, HostAgreement(44, 0, 0)) == reasons(dated)
    few = replace(PAIR, pages=(20, 20), common=9, compared=4, equal=3)
    assert reasons(few)[-1] == (
        "3 more shared paths with equal texts would show that one may copy the other"
    )
    # What the comparison of their pages shows counts more than what was expected of it.
    rooted = replace(few, root=False)
    assert reasons(rooted, HostAgreement(9, 9, 0, True)) == [
        "9 of 9 pages agree, compared one by one",
        "same text on 3 of 4 shared paths",
    ]
    assert reasons(rooted, HostAgreement(9, 8, 1, False))[-1] == "the root pages differ"
    assert reasons(rooted, HostAgreement(9, 8, 1))[-1] == "the root pages differ"


def test_connected_groups():
    assert connected_groups([(1, 2), (2, 3), (7, 8)]) == [(1, 2, 3), (7, 8)]
    assert connected_groups([]) == []


def test_declared_by():
    evidence = {(4, 9): replace(PAIR, redirects=(0, 55)), (4, 5): replace(PAIR, equal=44)}
    assert declared_by(evidence, (4, 5, 9)) == {4: {9}, 5: set(), 9: set()}


def test_undecided_pairs_and_how_many_pages_they_cost():
    promising = PairEvidence(
        names=("a.test", "b.test"), pages=(20, 20), common=9, compared=4, equal=3, probability=0.5
    )
    assert is_undecided(promising)
    assert pages_to_probe(promising) == 3
    assert pages_to_probe(replace(promising, weight=1.0)) == 15  # texts of many hosts
    assert is_undecided(replace(promising, probability=None))
    assert not is_undecided(replace(promising, probability=0.02, equal=1))
    assert not is_undecided(replace(promising, common=20, compared=20, equal=19))
    assert not is_undecided(replace(promising, common=20, compared=20, equal=0))
    assert not is_undecided(replace(promising, canonicals=(20, 0)))
    assert pages_to_probe(replace(promising, compared=400, common=400, equal=40)) is None
