"""Visits as a crawl stores them, made without requests."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.page import Outcome, PageState
from crawld.store.frontier.host import HostUpdate
from crawld.store.versions import body, headers
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord


def page_response(
    lines: Iterable[tuple[bytes, bytes]] = (), *, content_type: str = "text/html"
) -> StoredResponse:
    """Return the response that brought a page.

    Args:
        lines: names and values of its headers.
        content_type: of its body.
    """
    return StoredResponse(
        status=200,
        http_version="HTTP/1.1",
        headers=headers.pack(tuple(lines)),
        content_type=content_type,
        charset="utf-8",
    )


def first_visit(
    page_id: int, at: float, address: str, html: str, redirect_url: str | None = None
) -> VisitRecord:
    """Return the visit that found a page of one paragraph, or a redirect.

    Args:
        page_id: the page.
        at: Unix seconds.
        address: of its host.
        html: its text; unused if it redirects.
        redirect_url: where it leads; None: it does not.
    """
    record = partial(
        VisitRecord,
        page_id=page_id,
        visited_at=at,
        state=PageState.VISITED,
        host=HostUpdate(last_fetch_at=at, address=address),
    )
    if redirect_url is not None:
        return record(outcome=Outcome.MOVED, redirect_url=redirect_url)
    encoded = body.encode(html.encode())
    text = html.partition("<p>")[2].partition("</p>")[0]
    return record(
        outcome=Outcome.CHANGED,
        response=page_response(),
        digest=encoded.digest,
        body=encoded,
        cleaned_digest=cleaned_digest(text),
        sketch=sketch(text),
    )
