"""What tells of the changes of a simulated site: an Atom feed, and a stream of events.

Source: RFC 4287; HTML Living Standard, section 9.2; Wikimedia's schema `mediawiki/recentchange`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from crawld.simweb.change_process import next_change
from crawld.simweb.message import (
    AbnormalEnd,
    SimRequest,
    SimResponse,
    Step,
    build_response,
)
from crawld.simweb.site import SimSite

FEED_PATH: Final = "/changes.atom"
STREAM_PATH: Final = "/stream"

KEEP_S: Final = 30.0
"""A silent stream sends a comment so often, by which a client knows that it lives."""

ENTRIES: Final = 20
"""Changes that a feed lists: on a lively site, those of a short time."""


def feed(request: SimRequest, site: SimSite, name: str, pages: int) -> SimResponse:
    """Return the feed of a host with so many pages."""
    changed = []
    for page in range(pages):
        count = site.revision(page, request.at)
        if count:
            changed.append((site.modified_at(page, request.at), page, count))
    entries = "".join(
        f"<entry><id>http://{name}{site.graph.path(page)}#{count}</id><title>{page}</title>"
        f'<link href="http://{name}{site.graph.path(page)}"/><updated>{_time(at)}</updated></entry>'
        for at, page, count in sorted(changed, reverse=True)[:ENTRIES]
    )
    text = (
        '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>http://{name}/</id><title>{name}</title>"
        f"<updated>{_time(request.at)}</updated>{entries}</feed>"
    )
    return build_response(request, 200, text.encode(), content_type="application/atom+xml")


def stream(request: SimRequest, site: SimSite, name: str, pages: int) -> SimResponse:
    """Return the endless stream of a host's changes, from the last event that the client has on."""
    last = request.headers.get("last-event-id", "")
    since = float(last.strip("[]")) if last else request.at
    return SimResponse(200, _events(request.at, since, site, name, pages), close=True)


def _events(now: float, since: float, site: SimSite, name: str, pages: int) -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n:ok\n\n"
    while True:
        at, page = min((next_change(site.changes_of(each), since), each) for each in range(pages))
        if at == math.inf:
            break
        while at > now:
            yield min(at - now, KEEP_S)
            now = min(at, now + KEEP_S)
            yield b":\n\n"
        since = at
        path = site.graph.path(page)
        fields = {
            "meta": {"domain": name, "dt": _time(at)},
            "type": "edit",
            "title": path.rpartition("/")[2] or "Home",
            "title_url": f"http://{name}{path}",
            "timestamp": int(at),
            "wiki": name,
        }
        yield f"event: message\nid: [{at!r}]\ndata: {json.dumps(fields)}\n\n".encode()
    yield AbnormalEnd.HANG


def _time(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
