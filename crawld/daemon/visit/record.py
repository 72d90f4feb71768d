"""What the file, the policies and the hints are told of a finished visit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.prior import Gamma
from crawld.core.page import Outcome
from crawld.core.revisit.policies import VisitObservation as Revealed
from crawld.daemon.visit.conclude import Visit
from crawld.daemon.visit.content import PageContent
from crawld.daemon.visit.validators import NO_EVIDENCE, ValidatorEvidence
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.changes.hint import HintJudgement
from crawld.store.changes.volatile import Template
from crawld.store.frontier.frontier import Caps
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.page import PageRecord
from crawld.store.versions.headers import pack
from crawld.store.versions.response import StoredResponse as StoredAnswer
from crawld.store.visit import VisitRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitFeedback:
    """What is known after a visit beside what it found.

    Attributes:
        told: what the header of the answer taught.
        template: rules of the host, None: as they were.
        again: whether the page is to be fetched again at once, to see what changes by itself.
    """

    told: ValidatorEvidence = NO_EVIDENCE
    template: Template | None = None
    again: bool = False


def streak_after(visit: Visit) -> int:
    """Return in how many visits in a row the page was found changed; a pair is no visit more."""
    if visit.asked.pair:
        return visit.page.change_streak
    return visit.page.change_streak + 1 if _found_changed(visit) else 0


def model_after(visit: Visit, changed_at: float | None) -> PageModel:
    """Return the change model of the page after a good visit.

    Args:
        visit: a visit that tells how the page is now.
        changed_at: instant of its last change, where the server told it and is believed.
    """
    return _model_after(visit.page, visit.at, _found_changed(visit), changed_at)


def _found_changed(visit: Visit) -> bool:
    return visit.judgement.outcome is Outcome.CHANGED and not visit.first_copy


def _model_after(page: PageRecord, at: float, changed: bool, changed_at: float | None) -> PageModel:
    model = _model_of(page)
    told = changed and _is_told(page, model)
    interval_s = max(at - model.last_visit_at, 0.0) if model.visits else 0.0
    # What a visit sees of a told change is only that the page has stayed so since.
    model.update(Observation(at, changed and not told, changed_at, interval_s))
    model.changed_visits += told
    return model


def _is_told(page: PageRecord, model: PageModel) -> bool:
    """Whether the page's exact history holds a change since the copy held was last seen to hold."""
    # After failures all that is known of that is when the copy came.
    seen_at = page.last_change_at if page.failure_count else page.last_visit_at
    if page.exact_until is None or seen_at is None or not model.change_known:
        return False
    return seen_at < model.last_change_at <= page.exact_until


def observation_of(visit: Visit, learnt: VisitFeedback, model: bytes | None) -> Revealed:
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


def answered_of(visit: Visit, sources: tuple[int, ...]) -> HintJudgement | None:
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
    return HintJudgement(sources, page.last_visit_at, changed, expected)


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
    learnt: VisitFeedback,
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
    fetched = answer if isinstance(answer, FetchResponse) else None
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
        # Not of the visit: a thousand records may wait, and the tree of a page takes 0.2 MB.
        remodel=partial(
            _remodelled, visit.page, visit.at, _found_changed(visit), learnt.told.changed_at
        ),
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


def _record_of_model(visit: Visit, learnt: VisitFeedback) -> bytes | None:
    # The age of a requisite says all there is to know of it.
    if visit.page.requisite:
        return None
    return model_after(visit, learnt.told.changed_at).to_bytes()


def _remodelled(
    page: PageRecord,
    at: float,
    changed: bool,
    changed_at: float | None,
    model: bytes,
    exact_until: float | None,
) -> bytes:
    since = page._replace(model=model, exact_until=exact_until)
    return _model_after(since, at, changed, changed_at).to_bytes()


def _stored_answer(
    answer: FetchResponse | FetchFailure, reading: PageContent | None
) -> StoredAnswer | None:
    if answer.status is None:
        return None
    return StoredAnswer(
        status=answer.status,
        http_version=answer.http_version if isinstance(answer, FetchResponse) else "",
        reason=answer.reason if isinstance(answer, FetchResponse) else None,
        headers=pack(answer.headers),
        content_type=reading.content_type if reading else None,
        charset=reading.charset if reading else None,
    )
