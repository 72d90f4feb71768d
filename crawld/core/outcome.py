"""What one answer means: from status line and body digest to an outcome, and when to ask again.

The table follows RFC 9110 read for a mirror: what a status says about the *page* (gone, moved,
changed) is kept apart from what it says about the *host* (trouble, back off). Everything here is a
value; a remote fault never raises.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawld.core.page import Failure, Outcome

RETRY_BASE_S = 60.0
"""Wait before a page that failed for a passing reason is asked again; doubles with each failure."""

RETRY_MAX_S = 86_400.0
"""The longest such wait."""

PERSISTENT_RETRY_BASE_S = 7 * 86_400.0
"""The same for a reason that seldom passes by itself: wrong type, forbidden, too large."""

PERSISTENT_RETRY_MAX_S = 60 * 86_400.0

GONE_RETRY_S = 86_400.0
"""A page that answered `gone` is asked again after a day, until it is retired ..."""

RETIRED_RETRY_S = 30 * 86_400.0
"""... and once a month from then on, since pages come back."""

AGE_SHARE = 0.5
MIN_REQUISITE_INTERVAL_S = 86_400.0
MAX_REQUISITE_INTERVAL_S = 180 * 86_400.0

TRANSIENT = frozenset(
    {
        Failure.DNS,
        Failure.CONNECT,
        Failure.TLS,
        Failure.TIMEOUT,
        Failure.PROTOCOL,
        Failure.TRUNCATED,
        Failure.DECODING,
        Failure.HTTP_STATUS,
        Failure.RATE_LIMITED,
        Failure.UNAVAILABLE,
    }
)
"""Failures that may be over in a minute; every other one is steady."""

HOST_TROUBLE = frozenset(
    {
        Failure.DNS,
        Failure.CONNECT,
        Failure.TLS,
        Failure.TIMEOUT,
        Failure.RATE_LIMITED,
        Failure.UNAVAILABLE,
    }
)
"""Failures that speak of the whole host: its delay grows."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a visit found.

    Attributes:
        outcome: the word stored.
        failure: the finer word where the outcome is blocked or failed.
        detail: short text for a person, empty where the outcome says it all.
    """

    outcome: Outcome
    failure: Failure | None = None
    detail: str = ""

    @property
    def host_trouble(self) -> bool:
        """Whether the host, not the page, is in trouble."""
        return self.failure in HOST_TROUBLE

    @property
    def transient(self) -> bool:
        """Whether the visit failed for a reason that may be over in a minute."""
        return self.failure in TRANSIENT

    @property
    def good_copy(self) -> bool:
        """Whether the mirror holds what the page says now."""
        return self.outcome in (Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseFacts:
    """What the judgement looks at.

    Attributes:
        status: HTTP status code.
        digest: digest of the decoded body.
        held_digest: digest of the last good copy, None without one.
        conditional: whether validators were sent.
        location: canonical target of a redirect, None where absent or unusable.
        url: the page's own canonical URL.
        retry_after: whether the server named a time.
    """

    status: int
    digest: bytes
    held_digest: bytes | None
    conditional: bool
    location: str | None
    url: str
    retry_after: bool


def judge(answer: ResponseFacts) -> Judgement:
    """Return what a complete answer means for its page."""
    status = answer.status
    if status in (200, 203):
        same = answer.digest == answer.held_digest
        return Judgement(Outcome.UNCHANGED if same else Outcome.CHANGED)
    if status == 304:
        return _not_modified(answer)
    if status in (301, 302, 303, 307, 308):
        return _redirect(answer)
    if status in (404, 410):
        return Judgement(Outcome.GONE, detail=f"status {status}")
    return _refused_or_failed(answer)


def _not_modified(answer: ResponseFacts) -> Judgement:
    if answer.conditional and answer.held_digest is not None:
        return Judgement(Outcome.NOT_MODIFIED)
    return Judgement(Outcome.FAILED, Failure.PROTOCOL, "304 to an unconditional request")


def _redirect(answer: ResponseFacts) -> Judgement:
    if answer.location is None:
        return Judgement(Outcome.FAILED, Failure.BAD_REDIRECT, "redirect without a usable target")
    if answer.location == answer.url:
        return Judgement(Outcome.FAILED, Failure.BAD_REDIRECT, "redirect to itself")
    return Judgement(Outcome.MOVED, detail=answer.location)


def _refused_or_failed(answer: ResponseFacts) -> Judgement:
    status, detail = answer.status, f"status {answer.status}"
    if status in (401, 403, 407, 451):
        return Judgement(Outcome.BLOCKED, Failure.UNAUTHORIZED, detail)
    if status == 429:
        return Judgement(Outcome.BLOCKED, Failure.RATE_LIMITED, detail)
    if status == 503 and answer.retry_after:
        return Judgement(Outcome.BLOCKED, Failure.UNAVAILABLE, detail)
    if status in (502, 503, 504):
        return Judgement(Outcome.FAILED, Failure.UNAVAILABLE, detail)
    return Judgement(Outcome.FAILED, Failure.HTTP_STATUS, detail)


def retry_wait_s(failure: Failure, failure_count: int) -> float:
    """Return how long to leave a page alone after a blocked or failed visit.

    Args:
        failure: why it failed.
        failure_count: failed visits in a row, this one included; at least 1.

    Returns:
        Seconds, doubling with each failure up to a cap.
    """
    steps = min(failure_count - 1, 32)
    if failure in TRANSIENT:
        return float(min(RETRY_BASE_S * 2.0**steps, RETRY_MAX_S))
    return float(min(PERSISTENT_RETRY_BASE_S * 2.0**steps, PERSISTENT_RETRY_MAX_S))


def requisite_interval_s(age_s: float) -> float:
    """Return how long an image, style or script is left alone that last changed so long ago.

    What has stood for years will stand for months: it rests half of its age.

    Source: the update threshold of the Alex file system (Cate, "Alex - a Global Filesystem", 1992),
    with bounds.

    >>> requisite_interval_s(10 * 86_400.0) / 86_400.0
    5.0
    """
    return min(max(AGE_SHARE * age_s, MIN_REQUISITE_INTERVAL_S), MAX_REQUISITE_INTERVAL_S)
