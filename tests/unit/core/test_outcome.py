"""Outcomes of responses, and waits after outcomes."""

from dataclasses import replace
from itertools import pairwise

import pytest

from crawld.core.outcome import (
    HOST_TROUBLE,
    KNOWN_RETRY_BASE_S,
    PERSISTENT_RETRY_BASE_S,
    PERSISTENT_RETRY_MAX_S,
    RETRY_BASE_S,
    RETRY_MAX_S,
    TRANSIENT,
    Judgement,
    ResponseFacts,
    judge_response,
    retry_wait_s,
)
from crawld.core.page import Failure, Outcome

OLD, NEW = b"o" * 16, b"n" * 16
URL = "http://a.test/"
PLAIN = ResponseFacts(
    status=200,
    digest=NEW,
    held_digest=OLD,
    conditional=False,
    location=None,
    url=URL,
    retry_after=False,
)


def check(outcome, failure=None, **answer):
    judged = judge_response(replace(PLAIN, **answer))
    assert (judged.outcome, judged.failure) == (outcome, failure)
    return judged


@pytest.mark.parametrize("status", [200, 203])
def test_a_body_is_changed_or_unchanged(status):
    check(Outcome.CHANGED, status=status)
    check(Outcome.CHANGED, status=status, held_digest=None)
    check(Outcome.UNCHANGED, status=status, digest=OLD)


def test_not_modified_needs_a_condition_and_a_copy():
    check(Outcome.NOT_MODIFIED, status=304, conditional=True)
    check(Outcome.FAILED, Failure.PROTOCOL, status=304)
    check(Outcome.FAILED, Failure.PROTOCOL, status=304, conditional=True, held_digest=None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_move_a_page(status):
    assert check(Outcome.MOVED, status=status, location=URL + "x").detail == URL + "x"
    check(Outcome.FAILED, Failure.BAD_REDIRECT, status=status)
    check(Outcome.FAILED, Failure.BAD_REDIRECT, status=status, location=URL)


@pytest.mark.parametrize(
    ("status", "outcome", "failure"),
    [
        (404, Outcome.GONE, None),
        (410, Outcome.GONE, None),
        (401, Outcome.BLOCKED, Failure.UNAUTHORIZED),
        (403, Outcome.BLOCKED, Failure.UNAUTHORIZED),
        (407, Outcome.BLOCKED, Failure.UNAUTHORIZED),
        (451, Outcome.BLOCKED, Failure.UNAUTHORIZED),
        (429, Outcome.BLOCKED, Failure.RATE_LIMITED),
        (502, Outcome.FAILED, Failure.UNAVAILABLE),
        (503, Outcome.FAILED, Failure.UNAVAILABLE),
        (504, Outcome.FAILED, Failure.UNAVAILABLE),
    ],
)
def test_statuses_with_a_meaning_of_their_own(status, outcome, failure):
    check(outcome, failure, status=status)
    # even if the body equals the copy
    check(outcome, failure, status=status, digest=OLD)


def test_a_503_with_retry_after_is_blocked():
    check(Outcome.BLOCKED, Failure.UNAVAILABLE, status=503, retry_after=True)
    check(Outcome.FAILED, Failure.UNAVAILABLE, status=502, retry_after=True)


KNOWN = {200, 203, 304, 301, 302, 303, 307, 308, 404, 410, 401, 403, 407, 451, 429, 502, 503, 504}


def test_every_other_status_is_a_failure_of_the_page():
    for status in sorted(set(range(100, 1000)) - KNOWN):
        judged = check(Outcome.FAILED, Failure.HTTP_STATUS, status=status, location=URL + "x")
        assert str(status) in judged.detail
        assert not judged.host_trouble


@pytest.mark.parametrize(("digest", "conditional"), [(OLD, False), (NEW, True), (OLD, True)])
def test_only_three_outcomes_are_good_copies(digest, conditional):
    good = {Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED}
    for status in range(100, 1000):
        judged = judge_response(
            replace(PLAIN, status=status, digest=digest, conditional=conditional)
        )
        assert judged.good_copy == (judged.outcome in good)
        assert (judged.failure is None) == (judged.outcome not in (Outcome.FAILED, Outcome.BLOCKED))


@pytest.mark.parametrize("has_copy", [False, True])
@pytest.mark.parametrize("failure", Failure)
def test_waits_double_up_to_the_cap_of_their_kind_of_failure(failure, has_copy):
    waits = [retry_wait_s(failure, count, has_copy=has_copy) for count in range(1, 100)]
    transient = failure in TRANSIENT
    persistent_s = KNOWN_RETRY_BASE_S if has_copy else PERSISTENT_RETRY_BASE_S
    first, most = (
        (RETRY_BASE_S, RETRY_MAX_S) if transient else (persistent_s, PERSISTENT_RETRY_MAX_S)
    )
    assert waits[:2] == [first, 2 * first]
    assert all(b == min(2 * a, most) for a, b in pairwise(waits))
    assert waits[-1] == most
    assert Judgement(Outcome.FAILED, failure).transient == transient
    assert Judgement(Outcome.FAILED, failure).host_trouble == (failure in HOST_TROUBLE)


def test_host_trouble_is_transient():
    assert HOST_TROUBLE <= TRANSIENT


def test_a_page_of_an_overloaded_host_waits_for_its_retry_after_and_hardly_longer():
    waits = [retry_wait_s(Failure.UNAVAILABLE, count, 20.0) for count in range(1, 6)]
    assert waits == [20.0, 20.0, 20.0, 40.0, 80.0]
    assert retry_wait_s(Failure.UNAVAILABLE, 60, 20.0) == RETRY_MAX_S
    assert retry_wait_s(Failure.UNAVAILABLE, 1) == 60.0
    assert retry_wait_s(Failure.HTTP_STATUS, 2, 20.0) == 120.0
