"""Visits to requisites: images, styles, scripts and fonts that pages need.

They differ from visits to pages: no link is followed, except what a style sheet needs itself;
copies are compared by digest alone; the next visit follows from the age, without a change model.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from crawld.core.content import media
from crawld.core.outcome import Judgement
from crawld.core.page import Failure, Outcome
from crawld.core.robots import parse_robots_tags
from crawld.core.validators import Validators
from crawld.daemon.analyser import Analyser
from crawld.daemon.fetch.request import request_for, unwanted
from crawld.daemon.frontier.admission import Admission, Referrer
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.conclude import Visit, admit_needed, encoded
from crawld.daemon.visit.content import CSS, PRODUCT, PageContent
from crawld.net.exchange import PREFIX_BYTES, FetchRequest
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
    visit: Visit, site: ActiveSite, *, admission: Admission, analyser: Analyser
) -> Visit:
    """Return the visit with what the target or the content means; arguments as in `conclude`."""
    page, response, now = visit.page, visit.fetched, visit.at
    if visit.judgement.outcome is Outcome.MOVED:
        source = Referrer(page.page_id, page.depth)
        target = await admission.admit_requisites(site, [visit.judgement.detail], source, now)
        return replace(visit, needs=target, digest=None)
    declared = response.header("content-type")
    content_type = media.media_type(declared)
    if visit.readable:
        content_type = media.sniff(declared, response.body[:PREFIX_BYTES])
    content = PageContent(content_type)
    if not site.stores_requisite(content_type):
        judgement = Judgement(Outcome.FAILED, Failure.WRONG_TYPE, content_type)
        return replace(visit, judgement=judgement, content=content, digest=None)
    if parse_robots_tags([response.header("x-robots-tag") or ""], PRODUCT).noarchive:
        judgement = Judgement(Outcome.BLOCKED, Failure.ROBOTS, "noarchive")
        return replace(visit, judgement=judgement, content=content, digest=None)
    needs = None
    if content_type == CSS and visit.readable:
        needs = await admit_needed(page, site, response, content, admission, analyser, now)
    body = await encoded(page, response, visit.digest, analyser)
    return replace(visit, content=content, needs=needs, body=body)
