"""A host of a universe: a simulated site with a changing robots.txt and periods of faults.

It tells the auditor of each request, and of each answer that was sent whole.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol

from crawld.simweb import fault
from crawld.simweb.change_process import SiteChangeRates
from crawld.simweb.fault import Fault
from crawld.simweb.graph import SiteGraph
from crawld.simweb.message import AbnormalEnd, SimRequest, SimResponse, Step
from crawld.simweb.site import SimSite
from crawld.universe.plan import FaultKind, FaultPeriod, HostPlan, RobotsEdition

START_AT: Final = 1_767_225_600.0
"""The Unix time at which every universe begins: 2026-01-01."""

_FAULTS: Final[dict[FaultKind, Fault]] = {
    FaultKind.RESET: fault.close_unanswered(reset=True),
    FaultKind.STALL: fault.hang(),
    FaultKind.STALL_MID_BODY: fault.hang_mid_body(),
}
_CHANGES: Final = SiteChangeRates(600.0, 86_400.0, static_share=0.25, bursty_share=0.25)


class Witness(Protocol):
    """Is told what a host sees; the auditor."""

    def request_arrived(self, plan: HostPlan, request: SimRequest) -> None:
        """Note a request before it is answered."""

    def answer_sent(
        self,
        plan: HostPlan,
        request: SimRequest,
        status: int,
        robots: RobotsEdition,
        retry_after_s: int | None,
    ) -> None:
        """Note an answer whose last byte was sent; `robots` is the edition it was made from."""


class SimulatedHost:
    """One host; a `HostedSite` of the simulated web."""

    def __init__(self, plan: HostPlan, witness: Witness, rng: random.Random) -> None:
        self._plan = plan
        self._witness = witness
        self._rng = rng
        self._site = SimSite(
            (plan.name,),
            SiteGraph(plan.pages, seed=plan.site_seed),
            changes=_CHANGES.changes(start_at=START_AT, seed=plan.site_seed),
            start_at=START_AT,
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names it answers to."""
        return self._site.hosts

    def handle(self, request: SimRequest) -> SimResponse:
        """Answer a request, unless it meets a fault."""
        self._witness.request_arrived(self._plan, request)
        at_s = request.at - START_AT
        robots = self._plan.robots_at(at_s)
        self._site.robots = robots.text()
        period = self._fault(at_s)
        retry_after_s = None
        if period is None:
            response = self._site.handle(request)
        elif period.kind is FaultKind.BUSY:
            retry_after_s = period.retry_after_s
            response = fault.busy(retry_after_s=retry_after_s)(request, self._site.handle)
        else:
            response = _FAULTS[period.kind](request, self._site.handle)
            if response.status == 304:  # it has no body to stop in
                response = _FAULTS[FaultKind.STALL](request, self._site.handle)
        return replace(response, wire=self._sent(request, response, robots, retry_after_s))

    def _fault(self, at_s: float) -> FaultPeriod | None:
        met = [each for each in self._plan.faults_at(at_s) if self._rng.random() < each.share]
        return met[0] if met else None

    def _sent(
        self,
        request: SimRequest,
        response: SimResponse,
        robots: RobotsEdition,
        retry_after_s: int | None,
    ) -> Iterator[Step]:
        wire = response.wire
        for step in (wire,) if isinstance(wire, bytes) else wire:
            yield step
            if isinstance(step, AbnormalEnd):
                return
        self._witness.answer_sent(self._plan, request, response.status, robots, retry_after_s)
