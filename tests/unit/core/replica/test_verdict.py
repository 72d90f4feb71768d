"""Gate, reasons, groups and storms."""

from dataclasses import replace

import pytest

from crawld.core.replica.verdict import (
    PairEvidence,
    VerdictLevel,
    connected_groups,
    declared_by,
    is_contradicted,
    is_undecided,
    level_of,
    passes_content_gate,
    passes_gate,
    reasons,
)

PAIR = PairEvidence(names=("a.com", "b.net"), pages=(50, 60), common=44, compared=44, equal=41)


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


def test_declared_by():
    evidence = {(4, 9): replace(PAIR, redirects=(0, 55)), (4, 5): replace(PAIR, equal=44)}
    assert declared_by(evidence, (4, 5, 9)) == {4: {9}, 5: set(), 9: set()}


def test_undecided_pairs():
    promising = PairEvidence(
        names=("a.test", "b.test"), pages=(20, 20), common=9, compared=4, equal=3, probability=0.5
    )
    assert is_undecided(promising)
    assert is_undecided(replace(promising, probability=None))
    assert not is_undecided(replace(promising, probability=0.02, equal=1))
    assert not is_undecided(replace(promising, common=20, compared=20, equal=19))
    assert not is_undecided(replace(promising, common=20, compared=20, equal=0))
    assert not is_undecided(replace(promising, canonicals=(20, 0)))
