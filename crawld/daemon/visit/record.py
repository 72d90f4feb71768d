"""Turn a finished visit into its rows for the file and its observation for the policy."""

from __future__ import annotations

import math
from functools import partial

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.prior import Gamma
from crawld.core.page import Outcome, PageState
from crawld.core.revisit.policies import VisitObservation
from crawld.core.value_type import value_type
from crawld.daemon.visit.conclude import Visit
from crawld.daemon.visit.validators import NO_EVIDENCE, ValidatorEvidence
from crawld.net.exchange import FetchResponse
from crawld.store.changes.hint_answer import HintJudgement
from crawld.store.changes.volatile import Template
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.page import PageRecord
from crawld.store.versions.headers import pack
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord


@value_type(kw_only=True)
class VisitFeedback:
    """What was learnt from a visit.

    Attributes:
        validators: evidence from the header of the response.
        template: noise rules of the host; None: unchanged.
        again: whether to fetch the page again at once, to learn its noise.
    """

    validators: ValidatorEvidence = NO_EVIDENCE
    template: Template | None = None
    again: bool = False


def streak_after(visit: Visit) -> int:
    """Return how many visits in a row found the page changed; a pair counts once."""
    if visit.mode.pair:
        return visit.page.change_streak
    return visit.page.change_streak + 1 if _found_changed(visit) else 0


def model_after(visit: Visit, changed_at: float | None) -> PageModel:
    """Return the change model of the page after a good visit.

    Args:
        visit: a visit that shows the present state of the page.
        changed_at: when the page last changed, as a trusted server states; None: not known.
    """
    return _model_after(
        _model_of(visit.page), visit.page, visit.at, _found_changed(visit), changed_at
    )


def _found_changed(visit: Visit) -> bool:
    changed = visit.judgement.outcome is Outcome.CHANGED
    return changed and not visit.first_copy


def _model_after(
    model: PageModel, page: PageRecord, at: float, changed: bool, changed_at: float | None
) -> PageModel:
    known = changed and _is_in_history(page, model)
    interval_s = max(at - model.last_visit_at, 0.0) if model.visits else 0.0
    # The exact history holds this change already: the visit only shows no change since.
    model.update(Observation(at, changed and not known, changed_at, interval_s))
    model.changed_visits += known
    return model


def _is_in_history(page: PageRecord, model: PageModel) -> bool:
    """Whether the page's exact history holds a change since the copy held was last valid."""
    # After failures only the time of the copy itself is known.
    seen_at = page.last_change_at if page.failure_count else page.last_visit_at
    if page.exact_until is None or seen_at is None or not model.change_known:
        return False
    return seen_at < model.last_change_at <= page.exact_until


def observation_of(visit: Visit, feedback: VisitFeedback, model: bytes | None) -> VisitObservation:
    """Return the observation of a visit for the policy.

    Args:
        model: the page's change model after the visit, for policies that learn.
    """
    changed_at = feedback.validators.changed_at
    return VisitObservation(
        visit.judgement.outcome is Outcome.CHANGED and not visit.variant,
        () if changed_at is None else (changed_at,),
        None if model is None else PageModel.from_bytes(model),
    )


_DISAPPEARED = (Outcome.GONE, Outcome.SOFT_GONE, Outcome.MOVED)


def hint_judgement_of(
    visit: Visit, sources: tuple[int, ...] | None, model: PageModel
) -> HintJudgement | None:
    """Judge the hints of a page by a visit; None if the visit is no evidence.

    Args:
        model: of the page before the visit.
        sources: numbers of the hint sources that cover its site and host; None: there is none.
    """
    outcome, page = visit.judgement.outcome, visit.page
    if page.last_visit_at is None or outcome in (Outcome.FAILED, Outcome.BLOCKED):
        return None
    if page.state is PageState.DISCOVERED:
        return None  # its history is that of another URL: the page was renamed
    changed: bool | None
    if outcome in _DISAPPEARED:
        changed = page.last_outcome is not outcome
    elif outcome is Outcome.NOT_MODIFIED:
        changed = False
    else:
        changed = None if visit.same is None else not visit.same
    if page.left_at is not None:
        changed = None  # it came back to its part; outside of it no source reports it
    if page.requisite and sources is not None:
        # Sources report pages, not what pages are shown with: they miss nothing there.
        sources = ()
    expected = -math.expm1(-model.rate * max(visit.at - page.last_visit_at, 0.0))
    return HintJudgement(sources, page.last_visit_at, changed, expected)


def _model_of(page: PageRecord) -> PageModel:
    if page.model is not None:
        try:
            return PageModel.from_bytes(page.model)
        except ValueError:
            pass  # a record of another version: the model starts again
    if page.prior_shape is None or page.prior_exposure_s is None:
        return PageModel()
    return PageModel(prior=Gamma(page.prior_shape, page.prior_exposure_s))


def record_of(
    visit: Visit,
    feedback: VisitFeedback,
    host: HostUpdate,
    caps: Caps,
    sources: tuple[int, ...] | None = None,
) -> VisitRecord:
    """Return the record of a visit for the file.

    Args:
        host: changes of its host's row.
        caps: the most pages that its site and host may have.
        sources: the hint sources that cover the page; None: there are none.
    """
    response, judgement, content = visit.response, visit.judgement, visit.content
    fetched = response if isinstance(response, FetchResponse) else None
    comparison = visit.comparison
    analysis = comparison.analysis if comparison else None
    good, model = judgement.good_copy, _model_of(visit.page)
    hint_judgement = hint_judgement_of(visit, sources, model)
    return VisitRecord(
        page_id=visit.page.page_id,
        visited_at=visit.at,
        outcome=judgement.outcome,
        state=visit.state,
        renamed=_is_renamed(visit),
        vanishing=visit.vanishing,
        failure=judgement.failure,
        detail=judgement.detail or None,
        response=_stored_answer(visit),
        address=response.address,
        duration_s=fetched.duration_s if fetched else None,
        wire_bytes=fetched.wire_bytes if fetched else 0,
        body_bytes=len(fetched.body) if fetched else 0,
        digest=visit.digest,
        body=visit.body,
        form=visit.form,
        compared_id=visit.page.version_id,
        variant=visit.variant,
        cleaned_digest=comparison.cleaned_digest if comparison and good else None,
        sketch=analysis.sketch if analysis and good else None,
        difference=comparison.difference if comparison and good else None,
        change_streak=streak_after(visit),
        model=_record_of_model(visit, feedback, model) if good else None,
        model_before=visit.page.model,
        # Must not hold the visit: a thousand records may wait, and a parsed page takes 0.2 MB.
        remodel=partial(
            _remodelled, visit.page, visit.at, _found_changed(visit), feedback.validators.changed_at
        ),
        rules=comparison.rules if comparison else None,
        template=feedback.template,
        validators=feedback.validators.evidence,
        etag=response.header("etag"),
        last_modified=response.header("last-modified"),
        redirect_url=judgement.detail if judgement.outcome is Outcome.MOVED else None,
        title=content.title if content else None,
        failure_count=visit.failure_count,
        retry_at=visit.retry_at,
        grace=visit.grace,
        host=host,
        discoveries=visit.admitted.found,
        requisites=visit.needs.found if visit.needs else None,
        caps=caps,
        refusals=[*visit.admitted.refusals, *(visit.needs.refusals if visit.needs else ())],
        hint_judgement=hint_judgement,
        left_at=visit.page.left_at,
        unread=not visit.readable,
    )


def _is_renamed(visit: Visit) -> bool:
    """Whether the page moved permanently, so that its history follows."""
    if visit.judgement.outcome is not Outcome.MOVED or visit.page.requisite:
        return False
    # A wiki serves the text of the new title under the old one with status 200.
    return visit.response.status in (200, 301, 308)


def _record_of_model(visit: Visit, feedback: VisitFeedback, model: PageModel) -> bytes | None:
    """Return the record of the page's model, to which the visit is added; None: it stays."""
    # A requisite has no model: its next visit follows from its age. A variant shows no change, and
    # not that there was none.
    if visit.page.requisite or (visit.variant and visit.judgement.outcome is Outcome.CHANGED):
        return None
    changed_at = feedback.validators.changed_at
    return _model_after(model, visit.page, visit.at, _found_changed(visit), changed_at).to_bytes()


def _remodelled(
    page: PageRecord,
    at: float,
    changed: bool,
    changed_at: float | None,
    model: bytes,
    exact_until: float | None,
) -> bytes:
    since = page._replace(model=model, exact_until=exact_until)
    return _model_after(_model_of(since), since, at, changed, changed_at).to_bytes()


def _stored_answer(visit: Visit) -> StoredResponse | None:
    response, content = visit.response, visit.content
    if response.status is None:
        return None
    return StoredResponse(
        status=response.status,
        http_version=response.http_version if isinstance(response, FetchResponse) else "",
        reason=response.reason if isinstance(response, FetchResponse) else None,
        headers=pack(response.headers),
        content_type=content.content_type if content else None,
        charset=content.charset if content else None,
        truncated=isinstance(response, FetchResponse) and response.cut,
        profile=visit.profile,
        tags=visit.tags,
    )
