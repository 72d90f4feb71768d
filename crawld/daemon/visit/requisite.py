"""Visits to requisites: images, styles, scripts and fonts that pages need.

They differ from visits to pages: no link is followed, except what a style sheet needs itself;
copies are compared by digest alone; the next visit follows from the age, without a change model.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from crawld.core.content import media
from crawld.core.outcome import Judgement, judge_response
from crawld.core.page import Failure, Outcome
from crawld.core.robots import parse_robots_tags
from crawld.core.validators import Validators
from crawld.daemon.analyser import Analyser
from crawld.daemon.fetch.request import request_for, unwanted
from crawld.daemon.frontier.admission import Admission, Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.change_detection import BodyComparison
from crawld.daemon.visit.conclude import (
    Visit,
    admit_needed,
    body_digest_of,
    encoded,
    response_facts,
)
from crawld.daemon.visit.content import CSS, PRODUCT, PageContent
from crawld.daemon.visit.validators import RequestMode
from crawld.net.exchange import PREFIX_BYTES, FetchFailure, FetchRequest, FetchResponse
from crawld.store.frontier.page import PageRecord


def request_for_requisite(
    page: PageRecord, site: ActiveSite, sent: Validators, *, host: str, delay_s: float
) -> FetchRequest:
    """Return the request for a requisite: like that for a page, with limits of its own."""
    return replace(
        request_for(page, site, sent, host=host, delay_s=delay_s),
        limits=site.requisite_limits,
        permits_private=site.permits_private_requisite,
        accept=partial(unwanted, site.stores_requisite),
    )


async def conclude_requisite(
    page: PageRecord,
    site: ActiveSite,
    response: FetchResponse | FetchFailure,
    *,
    mode: RequestMode,
    comparison: BodyComparison | None,
    admission: Admission,
    analyser: Analyser,
    readable: bool = True,
    now: float,
) -> Visit:
    """Return the visit that results from a response; arguments as in `conclude`."""
    visit = partial(
        Visit,
        page=page,
        at=now,
        response=response,
        mode=mode,
        comparison=comparison,
        readable=readable,
    )
    if isinstance(response, FetchFailure):
        return visit(judgement=Judgement(Outcome.FAILED, response.failure, response.detail))
    body_digest = await body_digest_of(page, response, None, analyser)
    judgement = judge_response(response_facts(page, response, body_digest, mode))
    if judgement.outcome is Outcome.MOVED:
        source = Referrer(page.page_id, page.depth)
        target = await admission.admit_requisites(site, [judgement.detail], source, now)
        return visit(judgement=judgement, needs=target)
    if judgement.outcome is not Outcome.CHANGED:
        return visit(judgement=judgement, digest=body_digest)
    declared = response.header("content-type")
    content_type = media.media_type(declared)
    if readable:
        content_type = media.sniff(declared, response.body[:PREFIX_BYTES])
    content = PageContent(content_type)
    if not site.stores_requisite(content_type):
        judgement = Judgement(Outcome.FAILED, Failure.WRONG_TYPE, content_type)
        return visit(judgement=judgement, content=content)
    if parse_robots_tags([response.header("x-robots-tag") or ""], PRODUCT).noarchive:
        judgement = Judgement(Outcome.BLOCKED, Failure.ROBOTS, "noarchive")
        return visit(judgement=judgement, content=content)
    needs = None
    if content_type == CSS and readable:
        needs = await admit_needed(page, site, response, content, admission, analyser, now)
    body = await encoded(page, response, body_digest, analyser)
    return visit(judgement=judgement, content=content, needs=needs, digest=body_digest, body=body)
