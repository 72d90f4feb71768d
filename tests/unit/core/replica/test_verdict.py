"""Gate, reasons, groups, storms, and which host is kept."""

from dataclasses import replace

import pytest

from crawld.core.replica.canonical import HostProfile, choose_canonical
from crawld.core.replica.verdict import (
    PairEvidence,
    VerdictLevel,
    connected_groups,
    declared_by,
    is_contradicted,
    is_storm,
    level_of,
    passes_content_gate,
    passes_gate,
    reasons,
)

PAIR = PairEvidence(names=("a.com", "b.net"), pages=(50, 60), common=44, compared=44, equal=41)
DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        ({}, True),
        ({"equal": 3, "compared": 3, "common": 3, "pages": (3, 3)}, False),  # too few
        ({"equal": 12, "compared": 44}, False),  # share too uncertain
        ({"pages": (200, 200)}, False),  # a small part of both
        ({"pages": (1, 1), "common": 1, "compared": 1, "equal": 1}, False),  # hosts with one page
        ({"equal": 0, "compared": 0}, False),  # empty and error pages are no texts
    ],
)
def test_content_gate(change, passes):
    assert passes_content_gate(replace(PAIR, **change)) is passes


def test_a_low_probability_fails_the_content_gate_but_not_a_declaration():
    assert not passes_gate(replace(PAIR, probability=0.01))
    assert passes_gate(replace(PAIR, probability=0.01, redirects=(40, 0)))
    assert passes_gate(replace(PAIR, probability=0.6))


def test_a_score_alone_never_prunes():
    pair = replace(PAIR, compared=0, equal=0, probability=0.999)
    assert not passes_gate(pair)
    assert level_of(pair) is VerdictLevel.LIKELY


@pytest.mark.parametrize(("count", "declares"), [(2, False), (30, False), (34, True)])
def test_most_pages_must_declare(count, declares):
    assert replace(PAIR, redirects=(count, 0)).declares(0) is declares
    assert replace(PAIR, canonicals=(0, count)).declares(0) is False


def test_hosts_with_different_texts_are_contradicted():
    pair = replace(PAIR, equal=1, probability=0.9)
    assert is_contradicted(pair)
    assert level_of(pair) is VerdictLevel.UNLIKELY


def test_reasons_in_words():
    pair = replace(
        PAIR,
        names=("www.a.com", "a.com"),
        redirects=(48, 0),
        same_address=True,
        same_certificate=True,
    )
    assert reasons(pair) == [
        "48 of 50 pages of www.a.com redirect to a.com",
        "same content on 41 of 44 shared paths",
        "names differ by www.",
        "same address",
        "one certificate names both",
    ]
    assert reasons(replace(PAIR, compared=0, equal=0)) == ["44 shared paths, no content to compare"]


def test_connected_groups():
    assert connected_groups([(1, 2), (2, 3), (7, 8)]) == [(1, 2, 3), (7, 8)]
    assert connected_groups([]) == []


def test_a_storm_is_many_hosts_at_once():
    assert not is_storm(10, 20)
    assert is_storm(11, 20)
    assert not is_storm(900, 20_000)
    assert is_storm(1_001, 20_000)


def profiles(**hosts):
    return {
        at: HostProfile(name=name.replace("_", "."), **facts)
        for at, (name, facts) in enumerate(hosts.items())
    }


def test_the_operators_choice_comes_first():
    found = choose_canonical(profiles(a_com={}, b_com={"preferred": True}), {0: {1}, 1: set()})
    assert (found.host, found.reason) == (1, "preferred by the operator")


def test_a_redirect_retires_its_sender():
    found = choose_canonical(profiles(a_com={"https": True}, b_net={}), {0: set(), 1: {0}})
    assert (found.host, found.reason) == (1, "declared by a.com")


def test_hosts_of_one_owner_are_chosen_by_merit():
    hosts = profiles(www_a_com={"https": True}, a_com={"inlinks": 90})
    assert choose_canonical(hosts, {}).host == 0
    same = profiles(www_a_com={}, a_com={})
    assert (choose_canonical(same, {}).host, choose_canonical(same, {}).reason) == (
        1,
        "the shorter name",
    )


def test_a_copy_cannot_make_itself_canonical():
    # https, more pages, fresher: everything a copier can fake.
    copier = {"https": True, "pages": 500, "changed_at": 9e9, "first_seen_at": 100 * DAY_S}
    hosts = profiles(victim_com={"pages": 90}, copy_net=copier)
    assert choose_canonical(hosts, {}).host is None
    known = profiles(victim_com={"pages": 90, "inlinks": 40}, copy_net=copier)
    assert choose_canonical(known, {}).host == 0
    # It does not win by equal age, nor by links from its own farm.
    farm = profiles(
        victim_com={"inlinks": 40, "first_seen_at": 0.0}, copy_net={**copier, "inlinks": 900}
    )
    assert choose_canonical(farm, {}).host is None


def test_a_declaring_copy_retires_only_itself():
    hosts = profiles(victim_com={}, copy_net={"https": True, "inlinks": 900}, other_org={})
    found = choose_canonical(hosts, {0: {1}, 1: set(), 2: set()})
    assert found.host is None  # victim.com and other.org still have different owners
    assert choose_canonical({at: hosts[at] for at in (0, 1)}, {0: {1}, 1: set()}).host == 0


def test_two_hosts_that_declare_each_other_are_left_to_the_operator():
    hosts = profiles(a_com={}, b_net={})
    assert choose_canonical(hosts, {0: {1}, 1: {0}}).host is None


def test_declared_by():
    evidence = {(4, 9): replace(PAIR, redirects=(0, 55)), (4, 5): replace(PAIR, equal=44)}
    assert declared_by(evidence, (4, 5, 9)) == {4: {9}, 5: set(), 9: set()}
