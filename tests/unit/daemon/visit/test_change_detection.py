"""Comparison of a body with the copy held: changed, only noise, or below the threshold."""

import itertools
import os
import random

import pytest

from crawld.core.content.volatile import VolatileRules
from crawld.core.page import Outcome
from crawld.daemon.visit.change_detection import rules_before
from crawld.daemon.visit.comparison import ComparisonBasis, compare, learn_unchanged
from crawld.daemon.visit.pairs import CLOSE_PROOF, least_proof, proof_of_pair, wants_pair
from crawld.daemon.visit.spare_time import MAX_SPARE_S, SPARE_SHARE, TokenBucket, is_quick
from crawld.simweb.article import make_article
from crawld.store.changes.volatile import Template
from crawld.store.frontier.page import PageRecord
from crawld.store.versions.version import StoredCopy

TEXT = "".join(f"<p>Paragraph {n} about rivers and banks and their long names.</p>" for n in "abc")
HTML = "text/html; charset=utf-8"


def page(*parts):
    return f"<html><title>t</title><body>{''.join(parts)}</body></html>".encode()


def make_basis(body, content_type=HTML, **more):
    """Return the basis for a comparison with `body`; without noise rules unless given."""
    values = {"rules": VolatileRules(), "template": VolatileRules(), "page_id": 7}
    return ComparisonBasis(held=StoredCopy(body, content_type), **(values | more))


def make_record(**more):
    empty = dict.fromkeys(PageRecord._fields)
    return PageRecord(**(empty | {"page_id": 1, "visit_count": 1, "change_streak": 0} | more))


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (page(TEXT, "<!-- 123 -->"), True),
        (page(TEXT, "<script>var nonce = 1;</script>"), True),
        (page(TEXT, '<form><input type="hidden" name="csrf" value="9f"></form>'), True),
        (page(TEXT.replace("rivers", "lakes", 1)), False),
        (page(TEXT, "<p>One more.</p>"), False),
        (page(TEXT[: len(TEXT) // 2]), False),
        (page(), False),
        (b"", False),
        (page(TEXT, "<p>Score 3:1</p>"), False),
    ],
)
def test_only_visible_text_counts_as_change(new, same):
    result = compare(new, HTML, make_basis(page(TEXT)))
    assert result.same is same
    assert (result.difference == 0.0) is same
    assert len(result.cleaned_digest) == 16
    assert len(result.analysis.sketch) == 128


def test_a_new_order_of_paragraphs_is_a_change():
    # Blocks of 32 bytes each, so that rsync finds each of them.
    lines = [f"<p>{letter * 31}</p>" for letter in "abcdef"]
    old, new = (b"<body>" + "".join(order).encode() for order in (lines, lines[::-1]))
    assert not compare(new, HTML, make_basis(old)).same


@pytest.mark.parametrize(("threshold", "same"), [(0.0, False), (0.01, False), (0.9, True)])
def test_differences_below_the_threshold_are_no_change(threshold, same):
    new = page(TEXT.replace("rivers", "lakes", 1))
    result = compare(new, HTML, make_basis(page(TEXT), threshold=threshold))
    assert result.same is same
    assert 0.01 < result.difference < 0.9
    if same:
        assert "below the threshold" in result.why_same
        # The same copy is compared again next time: a repeated difference is no evidence of noise.
        assert result.rules is None


def test_a_pair_proves_noise_at_once_and_edits_still_count():
    old, new = (page(TEXT, f"<p>Viewed {n} times</p>") for n in (10, 11))
    first = compare(new, HTML, make_basis(old, pair=True))
    assert first.same
    assert "changes by itself" in first.why_same
    rules = VolatileRules.from_bytes(first.rules)
    later = page(TEXT, "<p>Viewed 4711 times</p>")
    assert compare(later, HTML, make_basis(old, rules=rules)).same
    edited = page(TEXT.replace("banks", "shores", 1), "<p>Viewed 4711 times</p>")
    assert not compare(edited, HTML, make_basis(old, rules=rules)).same


def test_an_edit_within_a_slow_pair_is_no_noise_and_later_ones_are_seen():
    old, new, next_, last = (page(TEXT, f"<p>Score {n} points</p>") for n in (10, 11, 12, 13))
    edit = compare(new, HTML, make_basis(old, pair=2))
    assert not edit.same
    rules = VolatileRules.from_bytes(edit.rules)
    assert not compare(next_, HTML, make_basis(new, rules=rules)).same
    # A counter differs in the third fetch, too.
    counter = compare(next_, HTML, make_basis(new, rules=rules, pair=2))
    assert counter.same
    rules = VolatileRules.from_bytes(counter.rules)
    assert compare(last, HTML, make_basis(new, rules=rules)).same


@pytest.mark.parametrize(
    ("noise", "at_once", "unproven"),
    [("Viewed {} times", 0, [False, True]), ("Viewed {} times", 1, [False, False]),
     ("Made at {}:00", 0, [False, False])],
)  # fmt: skip
def test_noise_is_unproven_until_a_page_is_read_twice_at_once(noise, at_once, unproven):
    bodies = [page(TEXT, f"<p>{noise.format(10 + n)}</p>") for n in range(4)]
    known = {}
    for old, new in itertools.pairwise(bodies[: at_once + 1]):
        known = learnt(compare(new, HTML, make_basis(old, pair=3, **known)))
    found = []
    for old, new in itertools.pairwise(bodies[at_once : at_once + 3]):
        compared = compare(new, HTML, make_basis(old, **known))
        known = learnt(compared)
        found.append(compared.is_unproven)
    assert found == unproven


def learnt(compared):
    return {
        "rules": VolatileRules.from_bytes(compared.rules),
        "template": VolatileRules.from_bytes(compared.template),
    }


def test_what_a_wiki_reports_is_a_change_whatever_the_rules_say():
    old, new = (page(TEXT, f"<p>Viewed {n} times</p>") for n in (10, 11))
    rules = VolatileRules.from_bytes(compare(new, HTML, make_basis(old, pair=True)).rules)
    reported = make_basis(old, rules=rules, expected=True, certain=True)
    assert compare(new, HTML, make_basis(old, rules=rules, expected=True)).same
    found = compare(new, HTML, reported)
    assert not found.same
    assert found.difference > 0.0
    assert compare(old + b"<!-- cached -->", HTML, reported).same


@pytest.mark.parametrize("between", [Outcome.UNCHANGED, Outcome.NOT_MODIFIED])
def test_edits_with_a_304_between_them_are_no_noise(between):
    stored, bodies = b"", [page(TEXT, f"<p>Score {n} points</p>") for n in range(7)]
    for old, new in itertools.pairwise(bodies):
        rules = rules_before(make_record(last_outcome=between), stored)
        found = compare(new, HTML, make_basis(old, rules=rules))
        stored = found.rules if found.rules is not None else stored
    assert found.same is (between is not Outcome.NOT_MODIFIED)


def test_noise_rules_end_when_their_blocks_stay_unchanged():
    old, new = (page(TEXT, f"<p>Viewed {n} times</p>") for n in (10, 11))
    rules = VolatileRules.from_bytes(compare(new, HTML, make_basis(old, pair=True)).rules)
    for _ in range(12):
        result = learn_unchanged(new, HTML, make_basis(b"", rules=rules))
        assert result.same
        if result.rules is not None:
            rules = VolatileRules.from_bytes(result.rules)
    assert not rules.confirmed().rules


def test_binary_bodies_are_compared_by_digest_without_learning():
    rng = random.Random(1)
    basis = make_basis(rng.randbytes(2000), "application/pdf")
    for _ in range(8):
        result = compare(b"%PDF-1.4 " + rng.randbytes(2000), "application/pdf", basis)
        assert (result.same, result.difference, result.rules, result.template) == (
            False,
            1.0,
            None,
            None,
        )


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", None),
        (b"\xff\xfe\x00", "text/html; charset=utf-16"),
        (os.urandom(5000), HTML),
        ("<p>für".encode("latin-1"), "text/html; charset=utf-8"),
        (b"<" * 20_000, "nonsense"),
        (b"<div>" * 30_000, HTML),
    ],
)
def test_any_two_bodies_can_be_compared(body, content_type):
    for old, declared in ((page(TEXT), HTML), (b"", None), (os.urandom(3000), "image/png")):
        result = compare(body, content_type, make_basis(old, declared))
        assert 0.0 <= result.difference <= 1.0
        assert not (result.same and result.difference)


def test_large_bodies_and_bodies_with_many_tags_are_not_quick():
    assert is_quick(make_article(1))
    assert not is_quick(bytes(400_000))
    assert not is_quick(b"<td>1" * 8_000)


def test_the_first_pages_of_a_host_want_a_pair():
    first = make_record(version_id=None)
    chosen = [
        wants_pair(first, Template(b"", made), streak=0, confirm_pages=6) for made in range(8)
    ]
    assert chosen == [True] * 6 + [False] * 2
    assert not wants_pair(first, Template(), streak=0, confirm_pages=0)


def test_noise_that_no_pair_has_shown_wants_one():
    page = make_record(page_id=1, version_id=1, visit_count=2, change_streak=1)

    def wants(made, confirm_pages=6, **more):
        return wants_pair(page, Template(b"", made), streak=2, confirm_pages=confirm_pages, **more)

    assert [wants(made, is_unproven=True) for made in (6, 11, 12)] == [True, True, False]
    assert not wants(6)
    assert not wants(0, confirm_pages=0, is_unproven=True)


def test_pages_that_always_change_want_a_pair_ever_less_often():
    def wants(streak, page_id):
        record = make_record(
            page_id=page_id, version_id=1, visit_count=streak, change_streak=streak - 1
        )
        return wants_pair(record, Template(), streak=streak, confirm_pages=6)

    streaks_by_page = [{n for n in range(1, 1000) if wants(n, page)} for page in range(40)]
    always = set.intersection(*streaks_by_page)
    assert always == {3, 12, 48, 192, 768}
    # In addition, one visit in 64.
    extra = sum(len(each - always) for each in streaks_by_page) / (40 * 1000)
    assert 1 / 80 < extra < 1 / 50


def test_a_pair_is_close_in_time():
    record = make_record(last_visit_at=1000.0)
    assert proof_of_pair(record, 1015.0, delay_s=15.0) == 1
    assert proof_of_pair(record, 1000.0 + 60, delay_s=60.0) == 2
    assert proof_of_pair(record, 1000.0 + 4 * 60, delay_s=60.0) == 2
    assert proof_of_pair(record, 1000.0 + 61, delay_s=1.0) == 0
    assert proof_of_pair(record, 999.0, delay_s=15.0) == 0
    assert proof_of_pair(make_record(last_visit_at=None), 1000.0, delay_s=15.0) == 0


@pytest.mark.parametrize(
    ("last_visit_at", "proof"), [(None, 1), (1000.0 - 120.0, 1), (1000.0 - 119.0, CLOSE_PROOF)]
)
def test_a_pair_proves_less_of_a_page_that_changed_nearly_as_soon(last_visit_at, proof):
    least = least_proof(make_record(last_visit_at=last_visit_at), 1000.0, delay_s=7.5)
    assert least == proof
    again = make_record(last_visit_at=1000.0)
    assert proof_of_pair(again, 1007.5, delay_s=7.5, least=least) == proof
    assert proof_of_pair(again, 1061.0, delay_s=7.5, least=least) == 0


# --- time for first copies ---


def test_a_token_bucket_saves_unused_time_up_to_a_limit():
    bucket = TokenBucket(100.0)
    assert bucket.left_s(100.0) == bucket.left_s(9_000.0) == MAX_SPARE_S
    bucket.spend(MAX_SPARE_S)
    assert bucket.left_s(9_000.0) == 0.0
    assert bucket.left_s(9_001.0) == pytest.approx(SPARE_SHARE)
    assert bucket.left_s(9_002.0) == pytest.approx(2 * SPARE_SHARE)


def test_a_token_bucket_permits_no_more_than_its_share_of_time():
    bucket, spent_s, now = TokenBucket(0.0), 0.0, 0.0
    while now < 100.0:
        if bucket.left_s(now) > 0.0:
            bucket.spend(0.003)
            spent_s += 0.003
        now += 0.004
    assert spent_s <= SPARE_SHARE * 100.0 + MAX_SPARE_S + 0.003
    assert spent_s >= SPARE_SHARE * 100.0
