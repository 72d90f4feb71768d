"""What a body is beside the copy held: changed, noise, below the threshold, or not comparable."""

import os
import random

import pytest

from crawld.core.content.volatile import VolatileRules
from crawld.daemon.visit.change_detection import (
    MAX_SPARE_S,
    SPARE_SHARE,
    ComparisonBasis,
    TokenBucket,
    compare,
    is_pair,
    is_quick,
    learn_unchanged,
    wants_pair,
)
from crawld.simweb.article import make_article
from crawld.store.changes.volatile import Template
from crawld.store.frontier.page import PageRecord
from crawld.store.versions.version import StoredCopy

STEADY = "".join(
    f"<p>Paragraph {n} about rivers and banks and their long names.</p>" for n in "abc"
)
HTML = "text/html; charset=utf-8"


def page(*parts):
    return f"<html><title>t</title><body>{''.join(parts)}</body></html>".encode()


def against(body, content_type=HTML, **more):
    values = {"rules": VolatileRules(), "template": VolatileRules(), "page_id": 7}
    return ComparisonBasis(held=StoredCopy(body, content_type), **(values | more))


def record(**more):
    empty = dict.fromkeys(PageRecord._fields)
    return PageRecord(**(empty | {"page_id": 1, "visit_count": 1, "change_streak": 0} | more))


@pytest.mark.parametrize(
    ("new", "same"),
    [
        (page(STEADY, "<!-- 123 -->"), True),
        (page(STEADY, "<script>var nonce = 1;</script>"), True),
        (page(STEADY, '<form><input type="hidden" name="csrf" value="9f"></form>'), True),
        (page(STEADY.replace("rivers", "lakes", 1)), False),
        (page(STEADY, "<p>One more.</p>"), False),
        (page(STEADY[: len(STEADY) // 2]), False),
        (page(), False),
        (b"", False),
        (page(STEADY, "<p>Score 3:1</p>"), False),
    ],
)
def test_only_what_a_reader_sees_counts(new, same):
    found = compare(new, HTML, against(page(STEADY)))
    assert found.same is same
    assert (found.difference == 0.0) is same
    assert len(found.cleaned_digest) == 16
    assert len(found.analysis.sketch) == 128


def test_paragraphs_that_change_places_are_a_change():
    # Blocks of 32 bytes each, so that rsync finds every one of them again.
    lines = [f"<p>{letter * 31}</p>" for letter in "abcdef"]
    old, new = (b"<body>" + "".join(order).encode() for order in (lines, lines[::-1]))
    assert not compare(new, HTML, against(old)).same


@pytest.mark.parametrize(("threshold", "same"), [(0.0, False), (0.01, False), (0.9, True)])
def test_a_threshold_forgives_small_differences(threshold, same):
    new = page(STEADY.replace("rivers", "lakes", 1))
    found = compare(new, HTML, against(page(STEADY), threshold=threshold))
    assert found.same is same
    assert 0.01 < found.difference < 0.9
    if same:
        assert "below the threshold" in found.why_same
        # It will be compared with the same copy again: that it differs each time proves nothing.
        assert found.rules is None


def test_a_pair_proves_noise_at_once_and_only_noise():
    old, new = (page(STEADY, f"<p>Viewed {n} times</p>") for n in (10, 11))
    first = compare(new, HTML, against(old, pair=True))
    assert first.same
    assert "changes by itself" in first.why_same
    rules = VolatileRules.from_bytes(first.rules)
    later = page(STEADY, "<p>Viewed 4711 times</p>")
    assert compare(later, HTML, against(old, rules=rules)).same
    edited = page(STEADY.replace("banks", "shores", 1), "<p>Viewed 4711 times</p>")
    assert not compare(edited, HTML, against(old, rules=rules)).same


def test_what_stays_is_told_to_the_rules_too():
    old, new = (page(STEADY, f"<p>Viewed {n} times</p>") for n in (10, 11))
    rules = VolatileRules.from_bytes(compare(new, HTML, against(old, pair=True)).rules)
    for _ in range(12):
        found = learn_unchanged(new, HTML, against(b"", rules=rules))
        assert found.same
        if found.rules is not None:
            rules = VolatileRules.from_bytes(found.rules)
    assert not rules.confirmed().rules


def test_binary_bodies_are_compared_by_digest_and_teach_nothing():
    rng = random.Random(1)
    held = against(rng.randbytes(2000), "application/pdf")
    for _ in range(8):
        found = compare(b"%PDF-1.4 " + rng.randbytes(2000), "application/pdf", held)
        assert (found.same, found.difference, found.rules, found.template) == (
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
def test_any_body_can_be_compared_with_any(body, content_type):
    for old, declared in ((page(STEADY), HTML), (b"", None), (os.urandom(3000), "image/png")):
        found = compare(body, content_type, against(old, declared))
        assert 0.0 <= found.difference <= 1.0
        assert not (found.same and found.difference)


def test_large_bodies_and_those_of_many_tags_are_read_elsewhere():
    assert is_quick(make_article(1), make_article(2))
    assert not is_quick(bytes(200_000), bytes(100_000))
    assert not is_quick(b"<td>1" * 5_000, b"<td>2" * 5_000)


def test_first_pages_of_a_host_are_confirmed():
    first = record(version_id=None)
    chosen = [
        wants_pair(first, Template(b"", made), streak=0, confirm_pages=6) for made in range(8)
    ]
    assert chosen == [True] * 6 + [False] * 2
    assert not wants_pair(first, Template(), streak=0, confirm_pages=0)


def test_pages_that_always_change_are_confirmed_ever_more_seldom():
    def wanted(streak, page_id):
        seen = record(page_id=page_id, version_id=1, visit_count=streak, change_streak=streak - 1)
        return wants_pair(seen, Template(), streak=streak, confirm_pages=6)

    every = [{n for n in range(1, 1000) if wanted(n, page)} for page in range(40)]
    always = set.intersection(*every)
    assert always == {3, 12, 48, 192, 768}
    # Beside those, one visit in 64.
    extra = sum(len(each - always) for each in every) / (40 * 1000)
    assert 1 / 80 < extra < 1 / 50


def test_a_pair_is_near_in_time():
    seen = record(last_visit_at=1000.0)
    assert is_pair(seen, 1015.0, delay_s=15.0)
    assert is_pair(seen, 1000.0 + 4 * 60, delay_s=60.0)
    assert not is_pair(seen, 1000.0 + 61, delay_s=1.0)
    assert not is_pair(seen, 999.0, delay_s=15.0)
    assert not is_pair(record(last_visit_at=None), 1000.0, delay_s=15.0)


# --- time for first copies ---


def test_what_is_not_spent_is_saved_up_to_a_limit():
    spare = TokenBucket(100.0)
    assert spare.left_s(100.0) == spare.left_s(9_000.0) == MAX_SPARE_S
    spare.spend(MAX_SPARE_S)
    assert spare.left_s(9_000.0) == 0.0
    assert spare.left_s(9_001.0) == pytest.approx(SPARE_SHARE)
    assert spare.left_s(9_002.0) == pytest.approx(2 * SPARE_SHARE)


def test_a_crawl_in_a_hurry_loses_no_more_than_the_share():
    spare, spent_s, now = TokenBucket(0.0), 0.0, 0.0
    while now < 100.0:
        if spare.left_s(now) > 0.0:
            spare.spend(0.003)
            spent_s += 0.003
        now += 0.004
    assert spent_s <= SPARE_SHARE * 100.0 + MAX_SPARE_S + 0.003
    assert spent_s >= SPARE_SHARE * 100.0
