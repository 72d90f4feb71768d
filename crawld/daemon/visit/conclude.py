"""Conclude a visit: turn a page and the response of its server into a `Visit` value.

Nothing here waits or uses the database. A server fault is a value, not an exception.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial

from crawld.core.outcome import (
    GONE_RETRY_S,
    RETIRED_RETRY_S,
    Judgement,
    ResponseFacts,
    judge_response,
    lost_requisite_wait_s,
    requisite_interval_s,
    retry_wait_s,
)
from crawld.core.page import Failure, Grace, Outcome, PageState, next_state
from crawld.core.politeness import parse_http_date
from crawld.core.url import canonicalize, resolve, split_url
from crawld.core.value_type import value_type
from crawld.daemon.analyser import Analyser
from crawld.daemon.frontier.admission import Admission, Admitted, Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.comparison import BodyComparison
from crawld.daemon.visit.content import (
    PageContent,
    content_of,
    needed_by,
    pdf_content,
    read_content,
    unread_content,
)
from crawld.daemon.visit.response_hooks import ResponseHooks
from crawld.daemon.visit.validators import UNCONDITIONAL, RequestMode
from crawld.errors import InvalidUrlError
from crawld.net.exchange import FetchFailure, FetchResponse, retry_after_s
from crawld.plugin_host.response_stage import NO_VERDICT, JoinedVerdict
from crawld.store.frontier.page import PageRecord
from crawld.store.frontier.refusal import Refusal
from crawld.store.versions.body import EncodedBody, digest, encode
from crawld.store.versions.version_tag import VersionTag


@value_type(kw_only=True)
class Visit:
    """A finished visit.

    Attributes:
        at: time of the response, Unix seconds.
        comparison: the body compared with the copy held; None without a body.
        content: the content of the body; None if it was not parsed.
        admitted: the links it named, admitted or refused.
        needs: the requisites of a new copy, admitted or refused; None without a new copy.
        deleted: whether the site's own log says that the page was deleted.
        digest: of the body, if it is a good copy.
        body: the copy to store; None if there is nothing to store.
        readable: whether the body may be analysed; a page in quarantine is stored as it is.
        profile: name of the request profile that brought it in the wanted form; None: no profile.
        form: of the request, 8 bytes; None: the usual one.
        vanishing: whether the host loses too many pages at once, so that this one is not
            retired; None if that was not checked.
        tags: what plug-ins keep with the copy.
        retry_max_s: longest wait after a failure; None: as its kind has it.
    """

    page: PageRecord
    at: float
    judgement: Judgement
    response: FetchResponse | FetchFailure
    mode: RequestMode = UNCONDITIONAL
    comparison: BodyComparison | None = None
    content: PageContent | None = None
    admitted: Admitted = field(default_factory=Admitted)
    needs: Admitted | None = None
    deleted: bool = False
    digest: bytes | None = None
    body: EncodedBody | None = None
    readable: bool = True
    vanishing: bool | None = None
    profile: str | None = None
    form: bytes | None = None
    tags: tuple[VersionTag, ...] = ()
    retry_max_s: float | None = None

    @property
    def has_more(self) -> bool:
        """Whether a visit just begun names a target or has content."""
        return self.judgement.outcome in (Outcome.MOVED, Outcome.CHANGED)

    @property
    def asked_at(self) -> float:
        """Time of the request: the visit shows the page as of it, Unix seconds."""
        fetched = self.response
        return self.at - (fetched.duration_s if isinstance(fetched, FetchResponse) else 0.0)

    @property
    def fetched(self) -> FetchResponse:
        """The response of a visit that `has_more`."""
        assert isinstance(self.response, FetchResponse)
        return self.response

    @property
    def variant(self) -> bool:
        """Whether the copy held has another form: a new copy is no change of it."""
        return self.mode.variant

    @property
    def first_copy(self) -> bool:
        """Whether there was no copy to compare with."""
        return self.page.version_id is None or self.variant

    @property
    def same(self) -> bool | None:
        """Whether the content equals the copy held; None if the visit does not show it."""
        outcome = self.judgement.outcome
        if outcome is Outcome.CHANGED and not self.first_copy:
            return False
        # Below the threshold it is neither: a part did change.
        steady = self.comparison is not None and not self.comparison.difference
        return True if outcome is Outcome.UNCHANGED and steady else None

    @property
    def failure_count(self) -> int:
        """Visits in a row without a good copy or a clear response, including this one."""
        return self.page.failure_count + 1 if self.judgement.failure else 0

    @property
    def grace(self) -> Grace:
        """How often and since when the page has been gone, including this visit."""
        return self.page.grace.after(self.judgement.outcome, self.at)

    @property
    def state(self) -> PageState:
        """The stored state of the page after the visit."""
        state = next_state(
            self.page.state, self.judgement.outcome, self.grace, self.at, deleted=self.deleted
        )
        return PageState.VISITED if self.vanishing else state

    @property
    def retry_after_s(self) -> float | None:
        """Seconds of Retry-After, None without that field."""
        return retry_after_s(self.response, self.at)

    @property
    def retry_at(self) -> float | None:
        """When the page is retried, Unix seconds; None where the policy decides."""
        if self.judgement.failure is not None:
            told_s = self.retry_after_s
            wait_s = retry_wait_s(
                self.judgement.failure,
                self.failure_count,
                told_s,
                has_copy=not self.first_copy,
            )
            if self.retry_max_s is not None:
                wait_s = max(min(wait_s, self.retry_max_s), told_s or 0.0)
            return self.at + wait_s
        if not self.judgement.good_copy and self.state is PageState.GONE:
            return self.at + RETIRED_RETRY_S
        if self.judgement.outcome in (Outcome.GONE, Outcome.SOFT_GONE):
            lost = self.page.requisite and not self.first_copy
            return self.at + (lost_requisite_wait_s(self.grace.count) if lost else GONE_RETRY_S)
        return self.at + self._requisite_rest_s() if self.page.requisite else None

    def _requisite_rest_s(self) -> float:
        changed_at = self.page.last_change_at
        if changed_at is None or self.judgement.outcome is Outcome.CHANGED:
            stated = self.response.header("last-modified")
            changed_at = (parse_http_date(stated, self.at) if stated else None) or self.at
        return requisite_interval_s(self.at - changed_at)


async def begin_visit(
    page: PageRecord,
    response: FetchResponse | FetchFailure,
    *,
    mode: RequestMode,
    comparison: BodyComparison | None,
    analyser: Analyser,
    form: bytes | None = None,
    readable: bool = True,
    now: float,
) -> Visit:
    """Return the visit as the response alone shows it; `conclude` goes on if it `has_more`.

    Args:
        comparison: the body compared with the copy held; None without a body.
        analyser: hashes the body.
        form: of the request; None: the usual one.
        readable: whether the body may be analysed; else its type is the declared one, and it has
            no links.
        now: time of the response, Unix seconds.
    """
    body_digest = None
    if isinstance(response, FetchFailure):
        judgement = Judgement(Outcome.FAILED, response.failure, response.detail)
    else:
        body_digest = await _digest_of(page, response, comparison, analyser)
        judgement = judge_response(_response_facts(page, response, body_digest, mode))
    return Visit(
        page=page,
        at=now,
        judgement=judgement,
        response=response,
        mode=mode,
        comparison=comparison,
        digest=body_digest,
        readable=readable,
        form=form,
    )


async def conclude(
    visit: Visit,
    site: ActiveSite,
    *,
    admission: Admission,
    analyser: Analyser,
    hooks: ResponseHooks | None = None,
) -> Visit:
    """Return the visit with what the target or the content of its page means.

    Args:
        visit: a visit that `has_more`, as begun.
        admission: decides which URLs of the page become pages.
        analyser: reads the body.
        hooks: plug-ins that say what a page means; None: there are none.
    """
    page, response, comparison, now = visit.page, visit.fetched, visit.comparison, visit.at
    if visit.judgement.outcome is Outcome.MOVED:
        found = await _admit_redirect(page, site, visit.judgement.detail, admission, now)
        return replace(visit, admitted=found, digest=None)
    if visit.readable:
        content = await _content(page, site, response, comparison, analyser)
    else:
        content = unread_content(response)
    if not site.stores(content.content_type):
        judgement = Judgement(Outcome.FAILED, Failure.WRONG_TYPE, content.content_type)
        return replace(visit, judgement=judgement, content=content, digest=None)
    if content.shows_url is not None and _is_in_scope(page, site, content.shows_url):
        source = Referrer(page.page_id, page.depth, seed=page.seed)
        found = await admission.admit(site, [content.shows_url], source, now)
        judgement = Judgement(Outcome.MOVED, detail=content.shows_url)
        return replace(visit, judgement=judgement, admitted=found, digest=None)
    verdict = NO_VERDICT
    if hooks is not None and visit.readable:
        compared = None if visit.first_copy else page.version_id
        verdict = await hooks.ask(page, site, response, comparison, content, compared)
        content = _with_links(content, page, verdict)
    # Noise may name new pages too, such as a box of the latest articles.
    found = await _admit_links(page, site, content, admission, now)
    if (forbidden := _forbidden(content, verdict)) is not None:
        return replace(visit, judgement=forbidden, content=content, admitted=found, digest=None)
    if comparison is not None and verdict.changed is not None:
        comparison = comparison.decided(changed=verdict.changed, why=verdict.why)
        visit = replace(visit, comparison=comparison)
    if comparison is not None and comparison.same:
        judgement = Judgement(Outcome.UNCHANGED, detail=comparison.why_same)
        return replace(visit, judgement=judgement, content=content, admitted=found)
    body = await _copy_of(visit, comparison, analyser)
    needs = None
    if site.needs is not None and visit.readable:
        needs = await admit_needed(page, site, response, content, admission, analyser, now)
    tags = tuple(VersionTag(*tag) for tag in verdict.tags)
    return replace(visit, content=content, admitted=found, tags=tags, needs=needs, body=body)


async def _copy_of(
    visit: Visit, comparison: BodyComparison | None, analyser: Analyser
) -> EncodedBody:
    """Return the copy to store of a changed page."""
    body = await encoded(visit.page, visit.fetched, visit.digest, analyser)
    if comparison is None or comparison.pdf is None:
        return body
    return replace(body, text=encode(comparison.pdf.text.encode()))


def _forbidden(content: PageContent, verdict: JoinedVerdict) -> Judgement | None:
    """Return the judgement of a page that must not be stored; None: it may."""
    if content.noarchive:
        return Judgement(Outcome.BLOCKED, Failure.ROBOTS, "noarchive")
    if verdict.veto:
        return Judgement(Outcome.BLOCKED, Failure.PLUGIN, verdict.veto)
    return None


def _with_links(content: PageContent, page: PageRecord, verdict: JoinedVerdict) -> PageContent:
    """Return the content with the links that plug-ins put in place of its own."""
    if verdict.links is None:
        return content
    return replace(content, urls=resolve(content.base or page.url, verdict.links))


def _is_in_scope(page: PageRecord, site: ActiveSite, url: str) -> bool:
    return site.scope.refusal(url, split_url(url).host, page.depth) is None


async def _digest_of(
    page: PageRecord,
    response: FetchResponse,
    comparison: BodyComparison | None,
    analyser: Analyser,
) -> bytes:
    """Return the digest of the body."""
    if comparison is not None:
        return comparison.digest
    return await analyser.pack(digest, response.body, url=page.url, body=response.body)


async def encoded(
    page: PageRecord, response: FetchResponse, body_digest: bytes | None, analyser: Analyser
) -> EncodedBody:
    """Return the stored form of the body."""
    body = response.body
    return await analyser.pack(encode, body, body_digest, url=page.url, body=body)


async def admit_needed(
    page: PageRecord,
    site: ActiveSite,
    response: FetchResponse,
    content: PageContent,
    admission: Admission,
    analyser: Analyser,
    now: float,
) -> Admitted:
    """Admit the requisites of a new copy."""
    urls = content.needs
    if urls is None and site.needs is not None:
        url, body = page.url, response.body
        urls = await analyser.read(
            needed_by, url, response, content, site.needs, url=url, bodies=(body,)
        )
    source = Referrer(page.page_id, page.depth + 1)
    return await admission.admit_requisites(site, urls or (), source, now)


async def _content(
    page: PageRecord,
    site: ActiveSite,
    response: FetchResponse,
    comparison: BodyComparison | None,
    analyser: Analyser,
) -> PageContent:
    url, body = page.url, response.body
    if comparison is not None and comparison.pdf is not None:
        return pdf_content(response, comparison.pdf)
    if comparison is not None and comparison.analysis is not None:
        analysis = comparison.analysis
        links = len(analysis.page.links) if analysis.page is not None else 0
        needs = None if comparison.same else site.needs
        return await analyser.run(
            content_of, url, response, analysis, needs, url=url, size_bytes=0, tags=links
        )
    page_bytes = analyser.memory.page_bytes
    call = partial(read_content, max_links=site.max_links_per_page, needs=site.needs)
    if page_bytes is not None and len(body) > page_bytes:
        body = body[:page_bytes]
        response = replace(response, body=body)
    return await analyser.read(call, url, response, url=url, bodies=(body,))


def _response_facts(
    page: PageRecord, response: FetchResponse, body_digest: bytes, mode: RequestMode
) -> ResponseFacts:
    """Return the facts of a response that its judgement needs."""
    location = response.header("location")
    target: str | None = None
    if location:
        try:
            target = canonicalize(location, page.url)
        except InvalidUrlError:
            target = None
    return ResponseFacts(
        status=response.status,
        digest=body_digest,
        held_digest=page.digest,
        conditional=mode.conditional,
        location=target,
        url=page.url,
        retry_after=response.header("retry-after") is not None,
    )


async def _admit_links(
    page: PageRecord, site: ActiveSite, content: PageContent, admission: Admission, now: float
) -> Admitted:
    found = await admission.admit(site, content.urls, Referrer(page.page_id, page.depth + 1), now)
    if content.page is not None and len(content.page.links) >= site.max_links_per_page:
        host = split_url(page.url).host
        found.refusals.append(Refusal(host, "max_links_per_page", page.url, now))
    return found


async def _admit_redirect(
    page: PageRecord, site: ActiveSite, target: str, admission: Admission, now: float
) -> Admitted:
    if site.admits_redirect(target, page.url, seed=page.seed):
        site = site.with_host(split_url(target).host)
    # The target replaces the page: it has the same depth, and is a seed if the page is one.
    return await admission.admit(
        site, [target], Referrer(page.page_id, page.depth, seed=page.seed), now
    )
