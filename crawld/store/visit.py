"""One visit, stored whole: the attempt, what it says of the page, the copy, the links.

Rule 1: only `CHANGED` writes digest, validators of a new copy and a version. Rule 2: a visit that
failed, was blocked or met a (soft) gone answer leaves the last good copy and what is known of it
as they are. Both are kept by the statements below, not by their callers: each outcome has its own
UPDATE, and only that of `CHANGED` names those columns.

A visit, its version and its links are one transaction, so that after a crash either all of it is
there or the page is visited again. Response headers lie with the version where there is one, else
with the visit (304s too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import apsw

from crawld.core.page import Grace, Outcome, PageState
from crawld.store import body, frontier, refusal, tally
from crawld.store.body import EncodedBody
from crawld.store.frontier import NO_CAPS, Caps, Discovery, NewPage
from crawld.store.refusal import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server sent, however the visit ended.

    Attributes:
        status: HTTP status code.
        http_version: as `HTTP/1.1`.
        reason: reason phrase, None for the standard one.
        headers: packed header lines (`store.headers.pack`).
        content_type: declared or sniffed type of the body.
        charset: charset it was read with.
    """

    status: int
    http_version: str
    headers: bytes
    reason: str | None = None
    content_type: str | None = None
    charset: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUpdate:
    """State of the host after the visit.

    Attributes:
        last_fetch_at: instant of the request; None if none reached the wire.
        address: address connected to; None keeps the known one.
        backoff_level: multiplier steps.
        backoff_at: instant of the last trouble.
        closed_until: end of a Retry-After.
    """

    last_fetch_at: float | None = None
    address: str | None = None
    backoff_level: int = 0
    backoff_at: float | None = None
    closed_until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitRecord:
    """Everything one visit leaves behind.

    Attributes:
        page_id: the page.
        visited_at: instant of the visit, Unix seconds.
        outcome: what it found.
        state: stored state of the page after it (`core.page.next_state`).
        failure: the finer word of a failed or blocked visit.
        detail: short text for a person.
        answer: what the server sent, None if no complete response header came.
        address: address connected to.
        duration_s: the whole fetch.
        wire_bytes: body bytes as sent.
        body_bytes: body bytes decoded.
        digest: digest of the content, 16 bytes; kept on the page only by `CHANGED`.
        body: the new copy; None where `CHANGED` may not be stored (noarchive).
        etag: validator of the answer.
        last_modified: validator of the answer.
        redirect_url: where a moved page points to.
        title: title of the new copy.
        failure_count: failed visits in a row, this one included.
        retry_at: own instant of the next visit, None: the policy decides.
        grace: how long the page has been gone.
        host: state of its host; None leaves the host as it is (nothing was sent).
        discoveries: admitted links.
        caps: the most pages a site and a host may have.
        refusals: links that were not admitted.
    """

    page_id: int
    visited_at: float
    outcome: Outcome
    state: PageState
    failure: str | None = None
    detail: str | None = None
    answer: Answer | None = None
    address: str | None = None
    duration_s: float | None = None
    wire_bytes: int = 0
    body_bytes: int = 0
    digest: bytes | None = None
    body: EncodedBody | None = None
    etag: str | None = None
    last_modified: str | None = None
    redirect_url: str | None = None
    title: str | None = None
    failure_count: int = 0
    retry_at: float | None = None
    grace: Grace = field(default_factory=Grace)
    host: HostUpdate | None = None
    discoveries: Sequence[Discovery] = ()
    caps: Caps = NO_CAPS
    refusals: Sequence[Refusal] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of it.

    Attributes:
        visit_id: the stored attempt; None if the page was removed meanwhile, and nothing stored.
        version_id: the stored copy, None if none was stored.
        new_pages: discoveries that were not known.
    """

    visit_id: int | None
    version_id: int | None
    new_pages: list[NewPage]
