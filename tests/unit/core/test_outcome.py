"""What an answer means, row by row."""

import pytest

from crawld.core.outcome import (
    HOST_TROUBLE,
    PASSING,
    RETRY_BASE_S,
    RETRY_MAX_S,
    STEADY_RETRY_BASE_S,
    STEADY_RETRY_MAX_S,
    Answer,
    judge,
    retry_wait_s,
)
from crawld.core.page import Failure, Outcome

URL = "http://a.test/x"
OTHER = "http://a.test/y"


def answer(status, *, same=False, conditional=False, held=True, location=None, retry_after=False):
    return Answer(
        status=status,
        digest=b"new",
        held_digest=(b"new" if same else b"old") if held else None,
        conditional=conditional,
        location=location,
        url=URL,
        retry_after=retry_after,
    )


@pytest.mark.parametrize(
    ("given", "outcome", "failure"),
    [
        (answer(200), Outcome.CHANGED, None),
        (answer(200, held=False), Outcome.CHANGED, None),
        (answer(200, same=True), Outcome.UNCHANGED, None),
        (answer(203), Outcome.CHANGED, None),
        (answer(204), Outcome.FAILED, Failure.HTTP_STATUS),
        (answer(206), Outcome.FAILED, Failure.HTTP_STATUS),
        (answer(304, conditional=True), Outcome.NOT_MODIFIED, None),
        (answer(304), Outcome.FAILED, Failure.PROTOCOL),
        (answer(304, conditional=True, held=False), Outcome.FAILED, Failure.PROTOCOL),
        (answer(301, location=OTHER), Outcome.MOVED, None),
        (answer(302, location=OTHER), Outcome.MOVED, None),
        (answer(307, location=OTHER), Outcome.MOVED, None),
        (answer(308, location=OTHER), Outcome.MOVED, None),
        (answer(301), Outcome.FAILED, Failure.BAD_REDIRECT),
        (answer(302, location=URL), Outcome.FAILED, Failure.BAD_REDIRECT),
        (answer(300, location=OTHER), Outcome.FAILED, Failure.HTTP_STATUS),
        (answer(404), Outcome.GONE, None),
        (answer(410), Outcome.GONE, None),
        (answer(401), Outcome.BLOCKED, Failure.UNAUTHORIZED),
        (answer(403), Outcome.BLOCKED, Failure.UNAUTHORIZED),
        (answer(451), Outcome.BLOCKED, Failure.UNAUTHORIZED),
        (answer(429), Outcome.BLOCKED, Failure.RATE_LIMITED),
        (answer(503), Outcome.FAILED, Failure.UNAVAILABLE),
        (answer(503, retry_after=True), Outcome.BLOCKED, Failure.UNAVAILABLE),
        (answer(500), Outcome.FAILED, Failure.HTTP_STATUS),
        (answer(502), Outcome.FAILED, Failure.UNAVAILABLE),
        (answer(999), Outcome.FAILED, Failure.HTTP_STATUS),
    ],
)
def test_judge(given, outcome, failure):
    judgement = judge(given)
    assert (judgement.outcome, judgement.failure) == (outcome, failure)


def test_a_busy_server_troubles_its_host_and_a_missing_page_does_not():
    assert judge(answer(429)).host_trouble
    assert judge(answer(503)).host_trouble
    assert not judge(answer(404)).host_trouble
    assert not judge(answer(500)).host_trouble


@pytest.mark.parametrize("failure", list(Failure))
def test_waits_grow_and_are_capped(failure):
    waits = [retry_wait_s(failure, count) for count in range(1, 60)]
    passing = failure in PASSING
    assert waits[0] == (RETRY_BASE_S if passing else STEADY_RETRY_BASE_S)
    assert waits == sorted(waits)
    assert waits[-1] == (RETRY_MAX_S if passing else STEADY_RETRY_MAX_S)


def test_what_troubles_a_host_may_pass():
    assert HOST_TROUBLE <= PASSING
