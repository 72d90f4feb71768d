"""Trust in validators is bounded and finite, falls fast and rises slowly, for any server."""

import math
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.validators import (
    HALF_LIFE_S,
    MAX_COUNT,
    MAX_MISSES,
    SKEW_SAMPLES,
    Exchange,
    KindTrust,
    Validators,
    ValidatorTrust,
)

AT = 1_780_000_000.0

texts = (
    st.none()
    | st.text(max_size=40)
    | st.sampled_from(
        ['"a"', 'W/"a"', '"b"', "0", formatdate(AT, usegmt=True), formatdate(AT + 9e6, usegmt=True)]
    )
)
validators = st.builds(Validators, texts, texts)
exchanges = st.builds(
    Exchange,
    at=st.floats(0, 4e9),
    received=validators,
    held=validators,
    sent=validators,
    not_modified=st.booleans(),
    same=st.none() | st.booleans(),
    date=texts,
    age=texts,
    check=st.booleans(),
)


def numbers(trust):
    kinds = (trust.etag, trust.last_modified)
    values = [
        getattr(kind, name)
        for kind in kinds
        for name in ("detected", "missed", "stable", "spurious")
    ]
    return [*values, trust.ahead, trust.on_time, trust.checks, trust.seen_at, *trust.skews]


@given(st.lists(exchanges, max_size=60))
def test_evidence_is_bounded_and_finite(history):
    trust = ValidatorTrust()
    for exchange in history:
        trust.observe(exchange)
        modified_at = trust.changed_at(exchange)
        assert modified_at is None or modified_at <= exchange.at
    assert all(map(math.isfinite, numbers(trust)))
    for kind in (trust.etag, trust.last_modified):
        assert 0 <= kind.missed <= MAX_MISSES
        assert kind.detected + kind.stable + kind.spurious <= MAX_COUNT + 1
    assert len(trust.skews) <= SKEW_SAMPLES
    again = ValidatorTrust.from_bytes(trust.to_bytes())
    assert again.to_bytes() == ValidatorTrust.from_bytes(again.to_bytes()).to_bytes()
    pairs = zip(numbers(trust), numbers(again), strict=True)
    assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in pairs)


@given(st.binary(max_size=200))
def test_any_stored_bytes_are_read(stored):
    assert all(map(math.isfinite, numbers(ValidatorTrust.from_bytes(stored))))


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1), st.integers(0, 200))
def test_checks_are_few(chance, share, visits):
    trust = ValidatorTrust()
    for number in range(visits):
        trust.observe(Exchange(at=AT + number, received=Validators(), check=True))
    wanted = trust.wants_check(chance, share)
    assert not wanted or share > 0
    assert wanted == (share > 0 and chance < (max(share, 0.1) if visits < 4 else share))


@given(st.integers(1, 30), st.integers(0, 30))
def test_one_missed_change_is_enough_and_detections_restore_trust(missed, detected):
    kind = KindTrust()
    for _ in range(detected):
        kind.observe(equal=False, same=False, ignored=False)
    assert kind.trusted
    for _ in range(missed):
        kind.observe(equal=True, same=False, ignored=False)
    assert kind.lies
    detections = 0
    while kind.lies:
        kind.observe(equal=False, same=False, ignored=False)
        detections += 1
    assert 3 <= detections <= 8


@given(st.integers(0, 60), st.integers(0, 60))
def test_restless_means_mostly_spurious_changes(stable, spurious):
    kind = KindTrust()
    for _ in range(stable):
        kind.observe(equal=True, same=True, ignored=False)
    for _ in range(spurious):
        kind.observe(equal=False, same=True, ignored=False)
    if spurious < 3:
        assert kind.trusted
    if stable == 0 and spurious >= 3:
        assert kind.restless


@given(st.floats(0, 50 * HALF_LIFE_S))
def test_evidence_decays_with_time(elapsed_s):
    kind = KindTrust(missed=MAX_MISSES, spurious=60.0)
    kind.forget(elapsed_s)
    # Four missed changes weigh half a one after three half-lives, sixty spurious responses three
    # after some more.
    assert kind.lies == (elapsed_s <= 3 * HALF_LIFE_S)
    assert kind.restless == (elapsed_s <= math.log2(20) * HALF_LIFE_S)


@given(
    skew_s=st.integers(-(10**8), 10**8),
    outliers=st.lists(st.integers(-(10**8), 10**8), max_size=4),
    latency_s=st.lists(st.floats(0, 1.4), min_size=5, max_size=5),
)
def test_the_clock_skew_ignores_outliers(skew_s, outliers, latency_s):
    trust = ValidatorTrust()
    samples = [*outliers, *(skew_s - late for late in latency_s)]
    for number, sample in enumerate(samples):
        at = AT + 60.0 * number
        date = formatdate(math.floor(at + sample), usegmt=True)
        trust.observe(Exchange(at=at, received=Validators(), date=date))
    assert abs(trust.skew_s - skew_s) <= 2.0
    at, modified_at = AT + 9_000.0, AT - 5_000.0
    answer = Exchange(
        at=at,
        received=Validators(None, formatdate(modified_at + skew_s, usegmt=True)),
        date=formatdate(at + skew_s, usegmt=True),
    )
    assert abs(trust.changed_at(answer) - modified_at) <= 3.0


@pytest.mark.parametrize(("skew_s", "seen_s"), [(0.0, 0.0), (3_600.0, 3_600.0), (-60.0, -53.0)])
def test_a_response_that_comes_slowly_has_no_skew(skew_s, seen_s):
    """Its Date is of any time from the request to the last byte."""
    trust = ValidatorTrust()
    for number in range(9):
        at = 1_600_000_000.0 + 60.0 * number
        date = formatdate(at - 7.0 + skew_s, usegmt=True)
        trust.observe(Exchange(at=at, received=Validators(), date=date, took_s=7.0))
    assert abs(trust.skew_s - seen_s) <= 7.5
    assert trust.skew_s == 0.0 or skew_s


def test_a_cache_that_repeats_an_old_date_with_its_age_has_no_skew():
    trust = ValidatorTrust()
    date = formatdate(AT - 5_000, usegmt=True)
    trust.observe(Exchange(at=AT, received=Validators(), date=date, age="5000"))
    assert trust.skew_s == 0.0


def test_a_last_modified_in_the_future_is_neither_sent_nor_used():
    trust = ValidatorTrust()
    answer = Exchange(
        at=AT,
        received=Validators('"a"', formatdate(AT + 86_400, usegmt=True)),
        date=formatdate(AT, usegmt=True),
    )
    trust.observe(answer)
    assert trust.changed_at(answer) is None
    held = Validators('"a"', answer.received.last_modified)
    assert trust.conditions(held) == Validators('"a"', None)
