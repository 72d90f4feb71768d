"""One visit, concluded: what an answer means for its page.

Nothing here waits for the database or decides when: the core loop hands over a page whose host's
turn it is and what its server said, and takes back a value. Whatever the server does ends as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from crawld.core.outcome import (
    GONE_RETRY_S,
    RETIRED_RETRY_S,
    Judgement,
    ResponseFacts,
    judge,
    requisite_interval_s,
    retry_wait_s,
)
from crawld.core.page import Failure, Grace, Outcome, PageState, next_state
from crawld.core.politeness import parse_http_date, parse_retry_after
from crawld.core.url import canonicalize, parse
from crawld.daemon.frontier.admission import Admission, Admitted, Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.change_detection import BodyComparison
from crawld.daemon.visit.content import PageContent, content_of, needed_by, read_content
from crawld.daemon.visit.validators import UNCONDITIONAL, RequestMode
from crawld.errors import InvalidUrlError
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.frontier.page import PageRecord
from crawld.store.versions.body import EncodedBody, digest, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A finished visit.

    Attributes:
        page: the page as it was before.
        at: instant of the answer, Unix seconds.
        judgement: what it found.
        answer: what the fetch gave.
        asked: how the page was asked for.
        finding: what the body is beside the copy held, None without a body.
        reading: what the body says, None where it was not read.
        admitted: the URLs it named, judged.
        deleted: whether the site's own log says that it deleted the page.
        needs: the URLs that its new copy needs to be shown, judged; None without a new copy.
        digest: of the body, where it is a good copy.
        body: the copy to store, None where there is none to store.
        vanishing: whether its host loses too many pages at once, so that it is not retired;
            None: that was not asked.
    """

    page: PageRecord
    at: float
    judgement: Judgement
    answer: FetchResponse | FetchFailure
    asked: RequestMode = UNCONDITIONAL
    finding: BodyComparison | None = None
    reading: PageContent | None = None
    admitted: Admitted = field(default_factory=Admitted)
    needs: Admitted | None = None
    deleted: bool = False
    digest: bytes | None = None
    body: EncodedBody | None = None

    vanishing: bool | None = None

    @property
    def first_copy(self) -> bool:
        """Whether there was no copy to compare with."""
        return self.page.version_id is None

    @property
    def same(self) -> bool | None:
        """Whether the content is that of the copy held; None where the visit does not tell."""
        outcome = self.judgement.outcome
        if outcome is Outcome.CHANGED and not self.first_copy:
            return False
        # Below the threshold it is neither: some of it did change.
        steady = self.finding is not None and not self.finding.difference
        return True if outcome is Outcome.UNCHANGED and steady else None

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
        state = next_state(
            self.page.state, self.judgement.outcome, self.grace, self.at, deleted=self.deleted
        )
        return PageState.VISITED if self.vanishing else state

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
        if self.judgement.outcome in (Outcome.GONE, Outcome.SOFT_GONE):
            return self.at + GONE_RETRY_S
        return self.at + self._requisite_rest_s() if self.page.requisite else None

    def _requisite_rest_s(self) -> float:
        changed_at = self.page.last_change_at
        if changed_at is None or self.judgement.outcome is Outcome.CHANGED:
            stated = self.answer.header("last-modified")
            changed_at = (parse_http_date(stated, self.at) if stated else None) or self.at
        return requisite_interval_s(self.at - changed_at)


def conclude(
    page: PageRecord,
    site: ActiveSite,
    answer: FetchResponse | FetchFailure,
    *,
    asked: RequestMode,
    finding: BodyComparison | None,
    admission: Admission,
    now: float,
) -> Visit:
    """Return what an answer means for the page.

    Args:
        page: the page as the file knows it.
        site: its site.
        answer: what the fetch gave.
        asked: how it was asked for.
        finding: what its body is beside the copy held, None where there is no body.
        admission: judges the URLs that the page names.
        now: instant of the answer, Unix seconds.
    """
    visit = partial(Visit, page=page, at=now, answer=answer, asked=asked, finding=finding)
    if isinstance(answer, FetchFailure):
        return visit(judgement=Judgement(Outcome.FAILED, answer.failure, answer.detail))
    body_digest = finding.digest if finding else digest(answer.body)
    judgement = judge(as_answer(page, answer, body_digest, asked))
    if judgement.outcome is Outcome.MOVED:
        found = _admit_redirect(page, site, judgement.detail, admission, now)
        return visit(judgement=judgement, admitted=found)
    if judgement.outcome is not Outcome.CHANGED:
        return visit(judgement=judgement, digest=body_digest)
    reading = _read(page, site, answer, finding)
    if not site.stores(reading.content_type):
        judgement = Judgement(Outcome.FAILED, Failure.WRONG_TYPE, reading.content_type)
        return visit(judgement=judgement, reading=reading)
    if reading.shows_url is not None and _is_in_scope(page, site, reading.shows_url):
        source = Referrer(page.page_id, page.depth, seed=page.seed)
        found = admission.admit(site, [reading.shows_url], source, now)
        judgement = Judgement(Outcome.MOVED, detail=reading.shows_url)
        return visit(judgement=judgement, admitted=found)
    # Noise may name new pages too: the latest articles in a box that changes by itself.
    found = admission.admit(site, reading.urls, Referrer(page.page_id, page.depth + 1), now)
    if reading.noarchive:
        judgement = Judgement(Outcome.BLOCKED, Failure.ROBOTS, "noarchive")
        return visit(judgement=judgement, reading=reading, admitted=found)
    if finding is not None and finding.same:
        judgement = Judgement(Outcome.UNCHANGED, detail=finding.why_same)
        return visit(judgement=judgement, reading=reading, admitted=found, digest=body_digest)
    body, needs = encode(answer.body, body_digest), None
    if site.config.requisites:
        needs = admit_needed(page, site, answer, reading, admission, now)
    return visit(
        judgement=judgement,
        reading=reading,
        admitted=found,
        needs=needs,
        digest=body_digest,
        body=body,
    )


def _is_in_scope(page: PageRecord, site: ActiveSite, url: str) -> bool:
    return site.scope.refusal(url, parse(url).host, page.depth) is None


def admit_needed(
    page: PageRecord,
    site: ActiveSite,
    answer: FetchResponse,
    reading: PageContent,
    admission: Admission,
    now: float,
) -> Admitted:
    """Judge the URLs that a new copy needs to be shown."""
    plays = any(each.startswith(("audio/", "video/")) for each in site.config.requisite_types)
    urls = needed_by(page.url, answer, reading, most=site.max_links_per_page, media_too=plays)
    return admission.admit_requisites(site, urls, Referrer(page.page_id, page.depth + 1), now)


def _read(
    page: PageRecord, site: ActiveSite, answer: FetchResponse, finding: BodyComparison | None
) -> PageContent:
    if finding is not None and finding.analysis is not None:
        return content_of(page.url, answer, finding.analysis)
    return read_content(page.url, answer, site.max_links_per_page)


def as_answer(
    page: PageRecord, answer: FetchResponse, body_digest: bytes, asked: RequestMode
) -> ResponseFacts:
    """Return what the judgement looks at; `asked` is how the page was asked for."""
    location = answer.header("location")
    target: str | None = None
    if location:
        try:
            target = canonicalize(location, page.url)
        except InvalidUrlError:
            target = None
    return ResponseFacts(
        status=answer.status,
        digest=body_digest,
        held_digest=page.digest,
        conditional=asked.conditional,
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
    return admission.admit(site, [target], Referrer(page.page_id, page.depth, seed=page.seed), now)
