"""One visit, end to end: ask, judge, read, and say what is to be recorded.

Nothing here waits for the database or decides when: the core loop hands over a page whose host's
turn it is, and takes back a record. Whatever the server does ends as a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crawld.core.content import html, media
from crawld.core.outcome import (
    GONE_RETRY_S,
    RETIRED_RETRY_S,
    Answer,
    Judgement,
    judge,
    retry_wait_s,
)
from crawld.core.page import Failure, Grace, Outcome, PageState, next_state
from crawld.core.politeness import parse_retry_after
from crawld.core.robots import x_robots_tag
from crawld.core.url import canonicalize, parse, resolve
from crawld.daemon.admission import Admission, Admitted, Source
from crawld.daemon.sites import ActiveSite
from crawld.errors import InvalidUrlError
from crawld.net.exchange import (
    PREFIX_BYTES,
    Fetched,
    FetchFailure,
    FetchRequest,
    Headers,
    header_value,
)
from crawld.store.body import EncodedBody, digest, encode
from crawld.store.frontier import Caps
from crawld.store.headers import pack
from crawld.store.page import PageRecord
from crawld.store.visit import Answer as StoredAnswer
from crawld.store.visit import HostUpdate, VisitRecord

IDLE_CONNECTION_DELAY_S = 5.0
"""Hosts asked less often than this have their connection closed after each answer."""

PRODUCT = "crawld"
"""The product token that robots.txt and robots tags may name."""

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What the body of a page says.

    Attributes:
        content_type: the media type believed.
        charset: the charset it was read with, None where it is no text.
        title: of an HTML page.
        urls: canonical URLs it names and lets us follow.
        noarchive: whether it asks not to be kept.
    """

    content_type: str
    charset: str | None = None
    title: str | None = None
    urls: Sequence[str] = ()
    noarchive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A finished visit.

    Attributes:
        page: the page as it was before.
        at: instant of the answer, Unix seconds.
        judgement: what it found.
        answer: what the fetch gave.
        reading: what the body says, None where it was not read.
        admitted: the URLs it named, judged.
        digest: of the body, where it is a good copy.
        body: the copy to store, None where there is none to store.
    """

    page: PageRecord
    at: float
    judgement: Judgement
    answer: Fetched | FetchFailure
    reading: Reading | None = None
    admitted: Admitted = field(default_factory=Admitted)
    digest: bytes | None = None
    body: EncodedBody | None = None

    @property
    def failure_count(self) -> int:
        """Visits in a row without a good copy or a clear answer, this one included."""
        return self.page.failure_count + 1 if self.judgement.failure else 0

    @property
    def grace(self) -> Grace:
        """How long the page has been gone, this visit included."""
        return self.page.grace.after(self.judgement.outcome, self.at)

    @property
    def state(self) -> PageState:
        """The stored state of the page after the visit."""
        return next_state(self.page.state, self.judgement.outcome, self.grace, self.at)

    @property
    def retry_after_s(self) -> float | None:
        """Seconds the server asked to be left alone."""
        value = self.answer.header("retry-after")
        return parse_retry_after(value, self.at) if value else None

    @property
    def retry_at(self) -> float | None:
        """The page's own instant of its next visit; None where the policy decides."""
        if self.judgement.failure is not None:
            wait_s = retry_wait_s(self.judgement.failure, self.failure_count)
            return self.at + max(wait_s, self.retry_after_s or 0.0)
        if self.state is PageState.GONE:
            return self.at + RETIRED_RETRY_S
        gone = self.judgement.outcome in (Outcome.GONE, Outcome.SOFT_GONE)
        return self.at + GONE_RETRY_S if gone else None


def request_for(page: PageRecord, site: ActiveSite, *, host: str, delay_s: float) -> FetchRequest:
    """Return the request of a page: validators, the site's headers, its limits."""
    headers = list(site.headers_for(host))
    if page.version_id is not None:
        if page.etag:
            headers.append(("If-None-Match", page.etag))
        if page.last_modified:
            headers.append(("If-Modified-Since", page.last_modified))
    return FetchRequest(
        url=page.url,
        headers=tuple(headers),
        limits=site.limits,
        allow_private=site.permits_private(host),
        keep_alive=delay_s <= IDLE_CONNECTION_DELAY_S,
        accept=lambda status, seen, head: _unwanted(site, status, seen, head),
    )


def _unwanted(site: ActiveSite, status: int, headers: Headers, head: bytes) -> Failure | None:
    """Stop a download whose type the site does not keep, once its first bytes are there."""
    if status != 200 or not head:
        return None
    kind = media.sniff(header_value(headers, "content-type"), head)
    return None if site.stores(kind) else Failure.WRONG_TYPE


def conclude(
    page: PageRecord,
    site: ActiveSite,
    answer: Fetched | FetchFailure,
    admission: Admission,
    now: float,
) -> Visit:
    """Return what an answer means for the page.

    Args:
        page: the page as the file knows it.
        site: its site.
        answer: what the fetch gave.
        admission: judges the URLs that the page names.
        now: instant of the answer, Unix seconds.
    """
    if isinstance(answer, FetchFailure):
        judgement = Judgement(Outcome.FAILED, answer.failure, answer.detail)
        return Visit(page=page, at=now, judgement=judgement, answer=answer)
    body_digest = digest(answer.body)
    judgement = judge(_as_answer(page, answer, body_digest))
    if judgement.outcome is Outcome.MOVED:
        found = _admit_redirect(page, site, judgement.detail, admission, now)
        return Visit(page=page, at=now, judgement=judgement, answer=answer, admitted=found)
    if judgement.outcome is not Outcome.CHANGED:
        return Visit(page=page, at=now, judgement=judgement, answer=answer, digest=body_digest)
    return _conclude_changed(page, site, answer, body_digest, admission, now=now)


def _as_answer(page: PageRecord, answer: Fetched, body_digest: bytes) -> Answer:
    location = answer.header("location")
    target: str | None = None
    if location:
        try:
            target = canonicalize(location, page.url)
        except InvalidUrlError:
            target = None
    return Answer(
        status=answer.status,
        digest=body_digest,
        held_digest=page.digest,
        conditional=bool(page.etag or page.last_modified),
        location=target,
        url=page.url,
        retry_after=answer.header("retry-after") is not None,
    )


def _admit_redirect(
    page: PageRecord, site: ActiveSite, target: str, admission: Admission, now: float
) -> Admitted:
    if site.admits_redirect(target, page.url, seed=page.seed):
        site = site.with_host(parse(target).host)
    # The target stands in for the page: it is as deep, and where the page is a seed it is one too.
    return admission.admit(site, [target], Source(page.page_id, page.depth, seed=page.seed), now)


def _conclude_changed(
    page: PageRecord,
    site: ActiveSite,
    answer: Fetched,
    body_digest: bytes,
    admission: Admission,
    *,
    now: float,
) -> Visit:
    reading = read(page.url, answer, site.max_links_per_page)
    judgement = Judgement(Outcome.CHANGED)
    if not site.stores(reading.content_type):
        judgement = Judgement(Outcome.FAILED, Failure.WRONG_TYPE, reading.content_type)
        return Visit(page=page, at=now, judgement=judgement, answer=answer, reading=reading)
    if reading.noarchive:
        judgement = Judgement(Outcome.BLOCKED, Failure.ROBOTS, "noarchive")
    body = None if reading.noarchive else encode(answer.body, body_digest)
    return Visit(
        page=page,
        at=now,
        judgement=judgement,
        answer=answer,
        reading=reading,
        admitted=admission.admit(site, reading.urls, Source(page.page_id, page.depth + 1), now),
        digest=body.digest if body else None,
        body=body,
    )


def read(url: str, answer: Fetched, max_links: int) -> Reading:
    """Return what a body says: its type, title, the links we may follow."""
    declared = answer.header("content-type")
    content_type = media.sniff(declared, answer.body[:PREFIX_BYTES])
    tags = x_robots_tag([answer.header("x-robots-tag") or ""], PRODUCT)
    if content_type not in HTML_TYPES:
        return Reading(content_type, noarchive=tags.noarchive)
    decoded = media.decode(answer.body, media.charset_parameter(declared))
    page = html.parse(decoded.text, max_links=max_links)
    nofollow = tags.nofollow or "nofollow" in page.robots
    base = url
    if page.base:
        base = _base(page.base, url)
    followed = () if nofollow else page.links
    if page.nofollow_links:
        followed = tuple(href for href in followed if href not in page.nofollow_links)
    return Reading(
        content_type,
        charset=decoded.charset,
        title=page.title or None,
        urls=resolve(base, followed),
        noarchive=tags.noarchive or "noarchive" in page.robots,
    )


def _base(href: str, url: str) -> str:
    try:
        return canonicalize(href, url)
    except InvalidUrlError:
        return url


def record_of(visit: Visit, host: HostUpdate, caps: Caps) -> VisitRecord:
    """Return what the file should know of a visit.

    Args:
        visit: the visit.
        host: what its host came to.
        caps: the most pages there may be.
    """
    answer, judgement, reading = visit.answer, visit.judgement, visit.reading
    fetched = answer if isinstance(answer, Fetched) else None
    return VisitRecord(
        page_id=visit.page.page_id,
        visited_at=visit.at,
        outcome=judgement.outcome,
        state=visit.state,
        failure=judgement.failure,
        detail=judgement.detail or None,
        answer=_stored_answer(answer, reading),
        address=answer.address,
        duration_s=fetched.duration_s if fetched else None,
        wire_bytes=fetched.wire_bytes if fetched else 0,
        body_bytes=len(fetched.body) if fetched else 0,
        digest=visit.digest,
        body=visit.body,
        etag=answer.header("etag"),
        last_modified=answer.header("last-modified"),
        redirect_url=judgement.detail if judgement.outcome is Outcome.MOVED else None,
        title=reading.title if reading else None,
        failure_count=visit.failure_count,
        retry_at=visit.retry_at,
        grace=visit.grace,
        host=host,
        discoveries=visit.admitted.found,
        caps=caps,
        refusals=visit.admitted.refusals,
    )


def _stored_answer(answer: Fetched | FetchFailure, reading: Reading | None) -> StoredAnswer | None:
    if answer.status is None:
        return None
    return StoredAnswer(
        status=answer.status,
        http_version=answer.http_version if isinstance(answer, Fetched) else "",
        reason=answer.reason if isinstance(answer, Fetched) else None,
        headers=pack(answer.headers),
        content_type=reading.content_type if reading else None,
        charset=reading.charset if reading else None,
    )
