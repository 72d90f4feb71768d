"""Fetches robots.txt (RFC 9309, section 2.3) and follows its redirects.

`core.robots.judge_status` interprets the status; the rules are not parsed here. Every redirect is a
separate request, possibly to another host: `wait_turn` is awaited before each for politeness. Of a
body beyond the size limit, the beginning is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from crawld.core.outcome import REDIRECT_STATUSES
from crawld.core.robots import ROBOTS_MAX_BYTES, ROBOTS_MAX_REDIRECTS, RobotsVerdict, judge_status
from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.net.exchange import (
    DEFAULT_LIMITS,
    FetchFailure,
    FetchLimits,
    FetchRequest,
    FetchResponse,
    PermitsPrivate,
    permits_public_only,
)

WaitTurn = Callable[[str], Awaitable[None]]
"""Returns when a request to this URL may be sent."""

Fetch = Callable[[FetchRequest], Awaitable[FetchResponse | FetchFailure]]
"""Sends a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsResponse:
    """The result of a request for robots.txt.

    Attributes:
        verdict: no rules, rules to parse, or fetch nothing.
        text: the body if there are rules; at most `ROBOTS_MAX_BYTES` plus one byte, which tells the
            parser that the body was cut.
        status: of the last response; None without one.
        redirects: how many were followed.
        arrived_at: when the server had the last request (trio clock), or later.
        detail: why the host is closed, as text for a person.
        last: the last result, for back-off and outage detection.
    """

    verdict: RobotsVerdict
    text: bytes | None
    status: int | None
    redirects: int
    arrived_at: float
    detail: str
    last: FetchResponse | FetchFailure


async def fetch_robots(
    fetch: Fetch,
    origin: str,
    *,
    wait_turn: WaitTurn,
    limits: FetchLimits = DEFAULT_LIMITS,
    permits_private: PermitsPrivate = permits_public_only,
    proxy: str | None = None,
) -> RobotsResponse:
    """Fetch the robots.txt of an origin (`scheme://host[:port]`).

    `wait_turn` is awaited before each request, redirects included. The limits, `permits_private`
    and `proxy` are those of each `FetchRequest`; sizes are lowered to the limit of robots.txt.
    """
    url = f"{origin.rstrip('/')}/robots.txt"
    most = ROBOTS_MAX_BYTES + 1
    sized = replace(limits, max_wire_bytes=most, max_body_bytes=most)
    redirects = 0
    while True:
        await wait_turn(url)
        request = FetchRequest(
            url=url, limits=sized, permits_private=permits_private, cut=True, proxy=proxy
        )
        result = await fetch(request)
        following = _redirect(result, url) if redirects < ROBOTS_MAX_REDIRECTS else None
        if following is None:
            return _answer(result, redirects)
        url = following
        redirects += 1


def _redirect(result: FetchResponse | FetchFailure, url: str) -> str | None:
    if result.status not in REDIRECT_STATUSES:
        return None
    location = result.header("location")
    if location is None:
        return None
    try:
        return canonicalize(location, url, of_page=False)
    except InvalidUrlError:
        return None


def _answer(result: FetchResponse | FetchFailure, redirects: int) -> RobotsResponse:
    if isinstance(result, FetchResponse):
        verdict = judge_status(result.status)
        closed = verdict is RobotsVerdict.CLOSED
        detail = f"robots.txt has status {result.status}" if closed else ""
        text = result.body if verdict is RobotsVerdict.RULES else None
    else:
        # The status alone shows that there is no robots.txt, even if the body failed.
        refused = result.status is not None and result.status >= 400
        verdict = judge_status(result.status if refused else None)
        detail, text = result.detail, None
    return RobotsResponse(
        verdict=verdict,
        text=text,
        status=result.status,
        redirects=redirects,
        arrived_at=result.arrived_at,
        detail=detail,
        last=result,
    )
