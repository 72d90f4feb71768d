"""Build the request for a page: conditions, headers, limits, and when to end a download early."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from crawld.core.content import media
from crawld.core.page import Failure
from crawld.core.validators import Validators
from crawld.daemon.frontier.site import ActiveSite
from crawld.net.exchange import FetchRequest, Headers, HeaderValue, header_value
from crawld.store.frontier.page import PageRecord

IDLE_TLS_DELAY_S = 5.0
"""Longest delay for which a TLS connection (60-77 KB) is kept open between two requests."""

IDLE_PLAIN_DELAY_S = 45.0
"""The same for a plain connection, which takes 3 KB and costs one request to open."""


def stays_open(url: str, delay_s: float) -> bool:
    """Whether a connection is worth keeping until the next request to a host."""
    plain = url.startswith("http://")
    return delay_s <= (IDLE_PLAIN_DELAY_S if plain else IDLE_TLS_DELAY_S)


def request_for(
    page: PageRecord, site: ActiveSite, sent: Validators, *, host: str, delay_s: float
) -> FetchRequest:
    """Return the request for a page: conditions, the site's headers, its limits."""
    headers: list[tuple[str, HeaderValue]] = list(site.headers_for(page.url))
    if sent.etag:
        headers.append(("If-None-Match", sent.etag))
    if sent.last_modified:
        headers.append(("If-Modified-Since", sent.last_modified))
    return FetchRequest(
        url=page.url,
        headers=tuple(headers),
        limits=site.limits,
        permits_private=site.permits_private,
        keep_alive=stays_open(page.url, delay_s),
        proxy=site.config.proxy,
        accept=partial(unwanted, site.stores),
        cut=site.config.truncate,
        keeps_partial=True,
    )


def unwanted(
    stores: Callable[[str], bool], status: int, headers: Headers, head: bytes
) -> Failure | None:
    """Reject a download by its first bytes if its media type is not stored."""
    if status != 200 or not head:
        return None
    kind = media.sniff(header_value(headers, "content-type"), head)
    return None if stores(kind) else Failure.WRONG_TYPE
