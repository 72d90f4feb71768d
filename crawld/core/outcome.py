"""Judges HTTP responses: the outcome of a visit, and how long to wait before the next.

Follows RFC 9110 as it applies to a mirror. The meaning of a status for the *page* (gone, moved,
changed) is separate from its meaning for the *host* (trouble, back off). A remote fault is a value,
never an exception.
"""

from __future__ import annotations

from crawld.core.page import GOOD_COPY, Failure, Outcome
from crawld.core.units import DAY_S
from crawld.core.value_type import value_type

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
"""Statuses that send the client to the Location (RFC 9110, section 15.4)."""

RETRY_BASE_S = 60.0
"""Wait after a transient failure; doubles with each failure in a row."""

RETRY_MAX_S = DAY_S
"""Longest wait after transient failures."""

RETRY_TOLD_BASE_S = 5.0
"""The same if the server said when to return: the page waits for that time, and hardly longer."""

PERSISTENT_RETRY_BASE_S = 7 * DAY_S
"""The same after a failure that rarely resolves itself: wrong type, forbidden, too large."""

KNOWN_RETRY_BASE_S = 3_600.0
"""The same of a page that has a copy: an hour of redirect loops or 403s must not cost it a week."""

PERSISTENT_RETRY_MAX_S = 60 * DAY_S

GONE_RETRY_S = DAY_S
"""Wait after a `gone` outcome before the page is retired ..."""

LOST_REQUISITE_RETRY_S = 20.0
"""Wait after the first such outcome of a requisite that had a copy, four times as long after each
further one: a wiki makes the thumbnails of a new file when a page that shows it is read."""

RETIRED_RETRY_S = 30 * DAY_S
"""... and after it is retired, because pages come back."""

AGE_SHARE = 0.5
MIN_REQUISITE_INTERVAL_S = DAY_S
MAX_REQUISITE_INTERVAL_S = 180 * DAY_S

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
"""Failures that concern the whole host; they raise its back-off."""

TRANSIENT = HOST_TROUBLE | {
    Failure.PROTOCOL,
    Failure.TRUNCATED,
    Failure.DECODING,
    Failure.HTTP_STATUS,
    Failure.MEMORY,
    Failure.UNWANTED_FORM,
}
"""Failures that may pass within a minute; all others are persistent."""


@value_type
class Judgement:
    """The judged result of a visit.

    Attributes:
        failure: the reason, if the outcome is blocked or failed.
        detail: short text for the operator; empty if the outcome is enough.
        of_host: whether many pages of the host fail so, and not this one only.
    """

    outcome: Outcome
    failure: Failure | None = None
    detail: str = ""
    of_host: bool = False

    @property
    def host_trouble(self) -> bool:
        """Whether the failure concerns the host and not only the page."""
        return self.of_host or self.failure in HOST_TROUBLE

    @property
    def transient(self) -> bool:
        """Whether the visit failed for a reason that may pass within a minute."""
        return self.failure in TRANSIENT

    @property
    def good_copy(self) -> bool:
        """Whether the copy matches the page after this visit."""
        return self.outcome in GOOD_COPY


@value_type(kw_only=True)
class ResponseFacts:
    """The parts of a response that decide the outcome.

    Attributes:
        digest: digest of the decoded body.
        held_digest: digest of the last good copy, None without one.
        conditional: whether validators were sent.
        location: canonical target of a redirect, None if absent or unusable.
    """

    status: int
    digest: bytes
    held_digest: bytes | None
    conditional: bool
    location: str | None
    url: str
    retry_after: bool


def judge_response(response: ResponseFacts) -> Judgement:
    """Return the outcome of a complete response."""
    status = response.status
    if status in (200, 203):
        same = response.digest == response.held_digest
        return Judgement(Outcome.UNCHANGED if same else Outcome.CHANGED)
    if status == 304:
        return _not_modified(response)
    if status in REDIRECT_STATUSES:
        return _redirect(response)
    if status in (404, 410):
        return Judgement(Outcome.GONE, detail=f"status {status}")
    return _refused_or_failed(response)


def _not_modified(response: ResponseFacts) -> Judgement:
    if response.conditional and response.held_digest is not None:
        return Judgement(Outcome.NOT_MODIFIED)
    return Judgement(Outcome.FAILED, Failure.PROTOCOL, "304 to an unconditional request")


def _redirect(response: ResponseFacts) -> Judgement:
    if response.location is None:
        return Judgement(Outcome.FAILED, Failure.BAD_REDIRECT, "redirect without a usable target")
    if response.location == response.url:
        return Judgement(Outcome.FAILED, Failure.BAD_REDIRECT, "redirect to itself")
    return Judgement(Outcome.MOVED, detail=response.location)


def _refused_or_failed(response: ResponseFacts) -> Judgement:
    status, detail = response.status, f"status {response.status}"
    if status in (401, 403, 407, 451):
        return Judgement(Outcome.BLOCKED, Failure.UNAUTHORIZED, detail)
    if status == 429:
        return Judgement(Outcome.BLOCKED, Failure.RATE_LIMITED, detail)
    if status == 503 and response.retry_after:
        return Judgement(Outcome.BLOCKED, Failure.UNAVAILABLE, detail)
    if status in (502, 503, 504):
        return Judgement(Outcome.FAILED, Failure.UNAVAILABLE, detail)
    return Judgement(Outcome.FAILED, Failure.HTTP_STATUS, detail)


def retry_wait_s(
    failure: Failure,
    failure_count: int,
    retry_after_s: float | None = None,
    *,
    has_copy: bool = False,
) -> float:
    """Return the wait before the next visit after a blocked or failed one, seconds.

    It doubles with each failure in a row (this one included) up to a cap, and is never shorter than
    a Retry-After. A host that is overloaded and says when to return says it for all its pages: the
    one that happened to be asked then does not wait longer than the others.

    Args:
        has_copy: whether the page has been read before.
    """
    steps = min(failure_count - 1, 32)
    if failure in TRANSIENT:
        told = retry_after_s is not None and failure in HOST_TROUBLE
        base_s, most_s = RETRY_TOLD_BASE_S if told else RETRY_BASE_S, RETRY_MAX_S
    else:
        base_s = KNOWN_RETRY_BASE_S if has_copy else PERSISTENT_RETRY_BASE_S
        most_s = PERSISTENT_RETRY_MAX_S
    return float(max(retry_after_s or 0.0, min(base_s * 2.0**steps, most_s)))


def lost_requisite_wait_s(gone_count: int) -> float:
    """Return the wait before the next visit to a requisite that was there and is gone, seconds.

    >>> [lost_requisite_wait_s(count) for count in (1, 2, 3, 99)]
    [20.0, 80.0, 320.0, 86400.0]
    """
    steps = min(max(gone_count - 1, 0), 16)
    return float(min(LOST_REQUISITE_RETRY_S * 4.0**steps, GONE_RETRY_S))


def requisite_interval_s(age_s: float) -> float:
    """Return the time between visits to an image, style sheet or script, seconds.

    Half of its age (the time since its last change), within bounds: a file unchanged for years is
    unlikely to change this month.

    Source: the update threshold of the Alex file system (Cate, "Alex - a Global Filesystem", 1992).

    >>> requisite_interval_s(10 * 86_400.0) / 86_400.0
    5.0
    """
    return min(max(AGE_SHARE * age_s, MIN_REQUISITE_INTERVAL_S), MAX_REQUISITE_INTERVAL_S)
