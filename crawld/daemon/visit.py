"""One visit, end to end: ask, judge, read, and say what is to be recorded.

Nothing here waits for the database or decides when: the core loop hands over a page whose host's
turn it is, and takes back a record. Whatever the server does ends as a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.prior import Gamma
from crawld.core.content import media
from crawld.core.outcome import (
    GONE_RETRY_S,
    RETIRED_RETRY_S,
    Answer,
    Judgement,
    judge,
    requisite_rest_s,
    retry_wait_s,
)
from crawld.core.page import Failure, Grace, Outcome, PageState, next_state
from crawld.core.politeness import parse_http_date, parse_retry_after
from crawld.core.revisit.policies import Observation as Revealed
from crawld.core.url import canonicalize, parse
from crawld.core.validators import Validators
from crawld.daemon.admission import Admission, Admitted, Source
from crawld.daemon.detect import Finding
from crawld.daemon.reading import Reading, needed_by, read, reading_of
from crawld.daemon.sites import ActiveSite
from crawld.daemon.validators import NOTHING_TOLD, UNCONDITIONAL, Asked, Told
from crawld.errors import InvalidUrlError
from crawld.net.exchange import Fetched, FetchFailure, FetchRequest, Headers, header_value
from crawld.store.body import EncodedBody, digest, encode
from crawld.store.frontier import Caps
from crawld.store.headers import pack
from crawld.store.hint import Answered
from crawld.store.page import PageRecord
from crawld.store.visit import Answer as StoredAnswer
from crawld.store.visit import HostUpdate, VisitRecord
from crawld.store.volatile import Template

IDLE_TLS_DELAY_S = 5.0
"""Hosts asked over TLS less often than this have their connection closed: one costs 60-77 KB."""

IDLE_PLAIN_DELAY_S = 45.0
"""The same for plain connections, which cost 3 KB; opening one costs as much as the request."""


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
    answer: Fetched | FetchFailure
    asked: Asked = UNCONDITIONAL
    finding: Finding | None = None
    reading: Reading | None = None
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
        return requisite_rest_s(self.at - changed_at)


def stays_open(url: str, delay_s: float) -> bool:
    """Whether a connection is worth keeping for the next request to a host."""
    plain = url.startswith("http://")
    return delay_s <= (IDLE_PLAIN_DELAY_S if plain else IDLE_TLS_DELAY_S)


def request_for(
    page: PageRecord, site: ActiveSite, sent: Validators, *, host: str, delay_s: float
) -> FetchRequest:
    """Return the request of a page: conditions, the site's headers, its limits."""
    headers = list(site.headers_for(host))
    if sent.etag:
        headers.append(("If-None-Match", sent.etag))
    if sent.last_modified:
        headers.append(("If-Modified-Since", sent.last_modified))
    return FetchRequest(
        url=page.url,
        headers=tuple(headers),
        limits=site.limits,
        allow_private=site.permits_private(host),
        keep_alive=stays_open(page.url, delay_s),
        proxy=site.config.proxy,
        accept=partial(unwanted, site.stores),
    )


def unwanted(
    stores: Callable[[str], bool], status: int, headers: Headers, head: bytes
) -> Failure | None:
    """Stop a download whose media type is not stored, once its first bytes are there."""
    if status != 200 or not head:
        return None
    kind = media.sniff(header_value(headers, "content-type"), head)
    return None if stores(kind) else Failure.WRONG_TYPE


def conclude(
    page: PageRecord,
    site: ActiveSite,
    answer: Fetched | FetchFailure,
    *,
    asked: Asked,
    finding: Finding | None,
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
        source = Source(page.page_id, page.depth, seed=page.seed)
        found = admission.admit(site, [reading.shows_url], source, now)
        judgement = Judgement(Outcome.MOVED, detail=reading.shows_url)
        return visit(judgement=judgement, admitted=found)
    # Noise may name new pages too: the latest articles in a box that changes by itself.
    found = admission.admit(site, reading.urls, Source(page.page_id, page.depth + 1), now)
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
    answer: Fetched,
    reading: Reading,
    admission: Admission,
    now: float,
) -> Admitted:
    """Judge the URLs that a new copy needs to be shown."""
    plays = any(each.startswith(("audio/", "video/")) for each in site.config.requisite_types)
    urls = needed_by(page.url, answer, reading, most=site.max_links_per_page, media_too=plays)
    return admission.admit_requisites(site, urls, Source(page.page_id, page.depth + 1), now)


def _read(page: PageRecord, site: ActiveSite, answer: Fetched, finding: Finding | None) -> Reading:
    if finding is not None and finding.analysis is not None:
        return reading_of(page.url, answer, finding.analysis)
    return read(page.url, answer, site.max_links_per_page)


def as_answer(page: PageRecord, answer: Fetched, body_digest: bytes, asked: Asked) -> Answer:
    """Return what the judgement looks at; `asked` is how the page was asked for."""
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
    return admission.admit(site, [target], Source(page.page_id, page.depth, seed=page.seed), now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What is known after a visit beside what it found.

    Attributes:
        told: what the header of the answer taught.
        template: rules of the host, None: as they were.
        again: whether the page is to be fetched again at once, to see what changes by itself.
    """

    told: Told = NOTHING_TOLD
    template: Template | None = None
    again: bool = False


def streak_after(visit: Visit) -> int:
    """Return in how many visits in a row the page was found changed; a pair is no visit more."""
    if visit.asked.pair:
        return visit.page.change_streak
    changed = visit.judgement.outcome is Outcome.CHANGED and not visit.first_copy
    return visit.page.change_streak + 1 if changed else 0


def model_after(visit: Visit, changed_at: float | None) -> PageModel:
    """Return the change model of the page after a good visit.

    Args:
        visit: a visit that tells how the page is now.
        changed_at: instant of its last change, where the server told it and is believed.
    """
    page = visit.page
    model = _model_of(page)
    changed = visit.judgement.outcome is Outcome.CHANGED and not visit.first_copy
    told = changed and _is_told(page, model)
    interval_s = max(visit.at - model.last_visit_at, 0.0) if model.visits else 0.0
    # What a visit sees of a told change is only that the page has stayed so since.
    model.update(Observation(visit.at, changed and not told, changed_at, interval_s))
    model.changed_visits += told
    return model


def _is_told(page: PageRecord, model: PageModel) -> bool:
    """Whether the page's exact history holds a change since the copy held was last seen to hold."""
    # After failures all that is known of that is when the copy came.
    seen_at = page.last_change_at if page.failure_count else page.last_visit_at
    if page.exact_until is None or seen_at is None or not model.change_known:
        return False
    return seen_at < model.last_change_at <= page.exact_until


def observation_of(visit: Visit, learnt: Learnt, model: bytes | None) -> Revealed:
    """Return what a policy is told of a visit.

    Args:
        visit: the visit.
        learnt: what is known after it.
        model: the page's change model after it, for policies that learn.
    """
    told_at = learnt.told.changed_at
    return Revealed(
        visit.judgement.outcome is Outcome.CHANGED,
        () if told_at is None else (told_at,),
        None if model is None else PageModel.from_bytes(model),
    )


_WENT = (Outcome.GONE, Outcome.SOFT_GONE, Outcome.MOVED)


def answered_of(visit: Visit, sources: tuple[int, ...]) -> Answered | None:
    """Return what a visit says to the hints of its page; None where it found nothing out.

    Args:
        visit: the visit.
        sources: numbers of the sources that tell of pages of its site and host.
    """
    outcome, page = visit.judgement.outcome, visit.page
    if page.last_visit_at is None or outcome in (Outcome.FAILED, Outcome.BLOCKED):
        return None
    changed: bool | None
    if outcome in _WENT:
        changed = page.last_outcome is not outcome
    elif outcome is Outcome.NOT_MODIFIED:
        changed = False
    else:
        changed = None if visit.same is None else not visit.same
    rate = _model_of(page).rate
    expected = -math.expm1(-rate * max(visit.at - page.last_visit_at, 0.0))
    return Answered(sources, page.last_visit_at, changed, expected)


def _model_of(page: PageRecord) -> PageModel:
    if page.model is not None:
        try:
            return PageModel.from_bytes(page.model)
        except ValueError:
            pass  # a record of another version: the page is learnt anew
    if page.prior_shape is None or page.prior_exposure_s is None:
        return PageModel()
    return PageModel(prior=Gamma(page.prior_shape, page.prior_exposure_s))


def record_of(
    visit: Visit,
    learnt: Learnt,
    host: HostUpdate,
    caps: Caps,
    sources: tuple[int, ...] | None = None,
) -> VisitRecord:
    """Return what the file should know of a visit.

    Args:
        visit: the visit.
        learnt: what is known after it.
        host: what its host came to.
        caps: the most pages there may be.
        sources: the hint sources that tell of such pages; None: there are none.
    """
    answer, judgement, reading = visit.answer, visit.judgement, visit.reading
    fetched = answer if isinstance(answer, Fetched) else None
    finding = visit.finding
    analysis = finding.analysis if finding else None
    good = judgement.good_copy
    return VisitRecord(
        page_id=visit.page.page_id,
        visited_at=visit.at,
        outcome=judgement.outcome,
        state=visit.state,
        renamed=_is_renamed(visit),
        vanishing=visit.vanishing,
        failure=judgement.failure,
        detail=judgement.detail or None,
        answer=_stored_answer(answer, reading),
        address=answer.address,
        duration_s=fetched.duration_s if fetched else None,
        wire_bytes=fetched.wire_bytes if fetched else 0,
        body_bytes=len(fetched.body) if fetched else 0,
        digest=visit.digest,
        body=visit.body,
        cleaned_digest=finding.cleaned_digest if finding and good else None,
        sketch=analysis.sketch if analysis and good else None,
        difference=finding.difference if finding and good else None,
        change_streak=streak_after(visit),
        model=_record_of_model(visit, learnt) if good else None,
        model_before=visit.page.model,
        remodel=partial(_remodelled, visit, learnt.told.changed_at),
        rules=finding.rules if finding else None,
        template=learnt.template,
        validators=learnt.told.evidence,
        etag=answer.header("etag"),
        last_modified=answer.header("last-modified"),
        redirect_url=judgement.detail if judgement.outcome is Outcome.MOVED else None,
        title=reading.title if reading else None,
        failure_count=visit.failure_count,
        retry_at=visit.retry_at,
        grace=visit.grace,
        host=host,
        discoveries=visit.admitted.found,
        requisites=visit.needs.found if visit.needs else None,
        caps=caps,
        refusals=[*visit.admitted.refusals, *(visit.needs.refusals if visit.needs else ())],
        answered=None if sources is None else answered_of(visit, sources),
    )


def _is_renamed(visit: Visit) -> bool:
    """Whether the page has another name for good: its history goes there."""
    if visit.judgement.outcome is not Outcome.MOVED or visit.page.requisite:
        return False
    # A wiki shows the text of the new title under the old one, with 200.
    return visit.answer.status in (200, 301, 308)


def _record_of_model(visit: Visit, learnt: Learnt) -> bytes | None:
    # The age of a requisite says all there is to know of it.
    if visit.page.requisite:
        return None
    return model_after(visit, learnt.told.changed_at).to_bytes()


def _remodelled(
    visit: Visit, changed_at: float | None, model: bytes, exact_until: float | None
) -> bytes:
    page = visit.page._replace(model=model, exact_until=exact_until)
    return model_after(replace(visit, page=page), changed_at).to_bytes()


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
