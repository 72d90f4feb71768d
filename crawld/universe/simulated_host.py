"""A host of a universe: a simulated site whose robots.txt changes, with moved and deleted pages.

It tells its witness, the auditor, of each request, and of each answer that was sent whole.
"""

from __future__ import annotations

import gzip
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Protocol

from crawld.core.units import DAY_S
from crawld.simweb import fault
from crawld.simweb.change_process import SiteChangeRates, next_change
from crawld.simweb.fault import Fault
from crawld.simweb.graph import SiteGraph
from crawld.simweb.message import (
    AbnormalEnd,
    SimRequest,
    SimResponse,
    Step,
    build_error_response,
    build_response,
    http_date,
)
from crawld.simweb.render import ALL_NOISE, PageStyle
from crawld.simweb.site import SimSite
from crawld.universe.plan import (
    START_AT,
    FaultKind,
    FaultPeriod,
    HostPlan,
    PageFateKind,
    RobotsEdition,
)
from crawld.universe.simulated_feed import FEED_PATH, STREAM_PATH, feed, stream
from crawld.universe.simulated_wiki import API_PATH, WIKI_HEAD, SimulatedWiki

MOVED_PREFIX: Final = "/moved"
"""A moved page is at its path after this."""

CONNECTING: Final = (FaultKind.REFUSED, FaultKind.SILENT)
"""Faults of the connection, which the network makes."""

_FAULTS: Final[dict[FaultKind, Fault]] = {
    FaultKind.RESET: fault.close_unanswered(reset=True),
    FaultKind.STALL: fault.hang(),
    FaultKind.STALL_MID_BODY: fault.hang_mid_body(),
    FaultKind.CLOSE_MID_BODY: fault.close_mid_body(),
    FaultKind.HALF_CLOSE_MID_BODY: fault.half_close_mid_body(),
    FaultKind.DRIP: fault.drip(200, 0.5),
    FaultKind.BROKEN: fault.status(500),
    FaultKind.LENGTH: fault.wrong_length(100),
    FaultKind.GZIP: fault.corrupt_gzip(),
    FaultKind.JUNK: fault.junk(),
    FaultKind.LOOP: fault.redirect_loop(),
    FaultKind.SOFT_404: fault.soft_404(),
}
_LENGTH: Final = re.compile(rb"Content-Length: \d+")

DOCUMENTS: Final = (API_PATH, FEED_PATH, STREAM_PATH, "/robots.txt", "/sitemap")
"""Beginnings of what is no page, and has no visit."""

MID_BODY: Final = (
    FaultKind.STALL_MID_BODY,
    FaultKind.CLOSE_MID_BODY,
    FaultKind.HALF_CLOSE_MID_BODY,
)

OF_BODIES: Final = (
    *MID_BODY,
    FaultKind.RESET_AT_BYTE,
    FaultKind.HALF_CLOSE,
    FaultKind.DRIP,
    FaultKind.LENGTH,
    FaultKind.GZIP,
)
"""Faults of whole answers; an endless one has none of them."""

USELESS: Final = (FaultKind.LENGTH, FaultKind.GZIP, FaultKind.JUNK)
"""Faults whose answers are whole for the server, but not for a client."""


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """An answer whose last byte was sent.

    Attributes:
        status: 0 if no client can use it.
        robots: the edition in force when it was made.
        retry_after_s: seconds from the request to the first one permitted; None: it says nothing.
        body: decoded, of a right answer with status 200; None: any other.
        page: number of the page; None: it is no page.
        revision: of the page.
        wire_bytes: of the whole answer, as it was sent.
    """

    status: int
    robots: RobotsEdition
    retry_after_s: float | None = None
    body: bytes | None = None
    page: int | None = None
    revision: int = 0
    wire_bytes: int = 0


class Witness(Protocol):
    """Is told what a host sees; the auditor."""

    def request_arrived(self, plan: HostPlan, request: SimRequest, address: str) -> None:
        """Note a request before it is answered, and the address it was sent to."""

    def answer_sent(self, plan: HostPlan, request: SimRequest, answer: SentAnswer) -> None:
        """Note an answer whose last byte was sent."""


class SimulatedHost:
    """One host; a `HostedSite` of the simulated web.

    Args:
        address: returns the address that the request under way was sent to.
    """

    def __init__(
        self, plan: HostPlan, witness: Witness, rng: random.Random, address: Callable[[], str]
    ) -> None:
        self.plan = plan
        self._witness = witness
        self._rng = rng
        self._address = address
        # From an expected change every 30 s to one in a year, around the mean.
        mean_s = DAY_S / plan.changes_per_day
        changes = SiteChangeRates(mean_s / 10, mean_s * 10, static_share=0.25, bursty_share=0.25)
        self._site = SimSite(
            (plan.name,),
            SiteGraph(plan.pages, seed=plan.site_seed),
            changes=changes.changes(start_at=START_AT, seed=plan.change_seed),
            start_at=START_AT,
            etag=plan.etag,
            last_modified=plan.last_modified,
            sitemap=plan.sitemap,
            compress=plan.compress,
            style=PageStyle(plan.page_bytes, noise=ALL_NOISE if plan.noise else frozenset()),
        )
        self._wiki = SimulatedWiki(plan, self._site) if plan.wiki else None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names it answers to."""
        return self._site.hosts

    def revision(self, page: int, at_s: float) -> int:
        """Return the number of changes of a page until a time."""
        return self._site.revision(page, START_AT + at_s)

    def changed_since(self, page: int, at_s: float) -> float:
        """Return when a page changed last, at or before a time; 0: not yet."""
        return self._site.modified_at(page, START_AT + at_s) - START_AT

    def changed_after(self, page: int, at_s: float) -> float:
        """Return when a page changes next after a time; inf: never."""
        return next_change(self._site.changes_of(page), START_AT + at_s) - START_AT

    def page_at(self, path: str) -> int | None:
        """Return the number of the page at its first path."""
        return self._site.page_of(path)

    def handle(self, request: SimRequest) -> SimResponse:
        """Answer a request, unless it meets a fault."""
        self._witness.request_arrived(self.plan, request, self._address())
        at_s = request.at - START_AT
        robots = self.plan.robots_at(at_s)
        self._site.robots = robots.text()
        period = self._fault(request.path, at_s)
        if period is None:
            response, answer = self._respond(request, robots)
        elif period.kind in (FaultKind.BUSY, FaultKind.TOO_MANY):
            response, closed_s = _busy(request, period)
            answer = SentAnswer(response.status, robots, closed_s)
        else:
            response, answer = self._faulty(request, period.kind, robots)
        wire = self._sent(request, response, answer)
        if period is not None and period.kind is FaultKind.HALF_CLOSE:
            wire = chain(wire, (AbnormalEnd.HALF_CLOSE,))
        return replace(response, wire=wire)

    def _faulty(
        self, request: SimRequest, kind: FaultKind, robots: RobotsEdition
    ) -> tuple[SimResponse, SentAnswer]:
        right, answer = self._respond(request, robots)
        if kind is FaultKind.HALF_CLOSE:
            return right, answer
        if kind is FaultKind.RESET_AT_BYTE:
            wire = right.to_bytes()
            cut = self._rng.randrange(len(wire))
            return SimResponse(right.status, (wire[:cut], AbnormalEnd.RESET), close=True), answer
        response = _FAULTS[kind](request, lambda _: right)
        if response.status == 304 and kind in MID_BODY:
            # It has no body to stop in.
            response = _FAULTS[FaultKind.STALL](request, lambda _: right)
        if kind in USELESS:
            return response, SentAnswer(0, robots)
        same = response.status == right.status
        return response, answer if same else SentAnswer(response.status, robots)

    def _respond(
        self, request: SimRequest, robots: RobotsEdition
    ) -> tuple[SimResponse, SentAnswer]:
        path, at_s = request.path, request.at - START_AT
        moved = path.startswith(f"{MOVED_PREFIX}/")
        page = self._site.page_of(path.removeprefix(MOVED_PREFIX) if moved else path)
        if path == API_PATH and self._wiki is not None:
            return self._wiki.answer(request), SentAnswer(200, robots)
        if path == FEED_PATH and self.plan.feed:
            response = feed(request, self._site, self.plan.name, self.plan.pages)
            return response, SentAnswer(200, robots)
        if path == STREAM_PATH and self.plan.stream:
            response = stream(request, self._site, self.plan.name, self.plan.pages)
            return response, SentAnswer(200, robots)
        if page is None:
            response = self._site.handle(request)
            body = _body(response) if response.status == 200 else None
            return response, SentAnswer(response.status, robots, None, body)
        happened = self.plan.page_event(page, at_s)
        if happened is PageFateKind.DELETED or moved != (happened is PageFateKind.MOVED):
            response = _absent(request, path, is_moved=happened is PageFateKind.MOVED)
            return response, SentAnswer(response.status, robots)
        response = self._site.handle(replace(request, target=path.removeprefix(MOVED_PREFIX)))
        if self._wiki is not None and response.status == 200:
            response = _with_head(response, WIKI_HEAD)
        body = _body(response) if response.status == 200 else None
        revision = self._site.revision(page, request.at)
        return response, SentAnswer(response.status, robots, None, body, page, revision)

    def _fault(self, path: str, at_s: float) -> FaultPeriod | None:
        excluded = (*CONNECTING, *OF_BODIES) if path == STREAM_PATH else CONNECTING
        periods = [each for each in self.plan.faults_at(at_s) if each.kind not in excluded]
        met = [each for each in periods if self._rng.random() < each.share]
        return met[0] if met else None

    def _sent(
        self, request: SimRequest, response: SimResponse, answer: SentAnswer
    ) -> Iterator[Step]:
        wire = response.wire
        steps: Iterable[Step] = (wire,) if isinstance(wire, bytes) else wire
        wire_bytes = 0
        for step in steps:
            yield step
            if isinstance(step, AbnormalEnd):
                return
            wire_bytes += len(step) if isinstance(step, bytes) else 0
        self._witness.answer_sent(self.plan, request, replace(answer, wire_bytes=wire_bytes))


def _with_head(response: SimResponse, more: bytes) -> SimResponse:
    """Return a page with more in its head; one that is compressed is left as it is."""
    head, _, body = response.to_bytes().partition(b"\r\n\r\n")
    if b"Content-Encoding" in head or not body:
        return response
    body = body.replace(b"<head>", b"<head>" + more, 1)
    head = _LENGTH.sub(b"Content-Length: %d" % len(body), head)
    return replace(response, wire=head + b"\r\n\r\n" + body)


def _busy(request: SimRequest, period: FaultPeriod) -> tuple[SimResponse, float]:
    """Answer with a Retry-After; return the seconds from the request for which it closes, too."""
    code, seconds = 503 if period.kind is FaultKind.BUSY else 429, float(period.retry_after_s)
    text = f"{seconds:.0f}"
    if period.names_date:
        opens_at = math.ceil(request.at + seconds)
        text, seconds = http_date(opens_at), opens_at - request.at
    return build_response(request, code, b"busy", extra=f"Retry-After: {text}\r\n"), seconds


def _absent(request: SimRequest, path: str, *, is_moved: bool) -> SimResponse:
    """Answer for a page that is not at the path asked for."""
    if not is_moved:
        return build_error_response(request, 404)
    return build_response(request, 301, extra=f"Location: {MOVED_PREFIX}{path}\r\n")


def _body(response: SimResponse) -> bytes:
    """Return the decoded body of a whole answer."""
    head, _, body = response.to_bytes().partition(b"\r\n\r\n")
    return gzip.decompress(body) if b"Content-Encoding: gzip" in head else body
