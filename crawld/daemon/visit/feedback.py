"""Learn from visits: noise rules, trust in validators, and when to fetch a page twice.

The visitor asks here how to request a page, passes in each response, and receives the feedback to
record with the visit. Everything is derived from the file; a restart forgets the pages that wait to
be fetched a second time.
"""

from __future__ import annotations

from dataclasses import replace

from crawld.core.page import Outcome
from crawld.daemon.analyser import Analyser
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.change_detection import ChangeDetector
from crawld.daemon.visit.comparison import BodyComparison
from crawld.daemon.visit.conclude import Visit
from crawld.daemon.visit.pairs import (
    CLOSE_PROOF,
    is_certain,
    least_proof,
    proof_of_pair,
    wants_pair,
)
from crawld.daemon.visit.record import VisitFeedback, streak_after
from crawld.daemon.visit.validators import NO_EVIDENCE, OriginValidators, RequestMode
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.changes import hint
from crawld.store.engine.database import Database
from crawld.store.frontier.page import PageRecord


class VisitLearning:
    """Learns from the visits of all hosts.

    Attributes:
        validators: tells which validators can be trusted.
    """

    def __init__(
        self,
        database: Database,
        *,
        confirm_pages: int,
        check_share: float,
        first_copies: bool,
        once: bool,
        analyser: Analyser,
    ) -> None:
        """Start with nothing in memory.

        Args:
            confirm_pages: pages of each host fetched twice to learn their noise; 0: none.
            check_share: share of the conditional requests sent without conditions.
            first_copies: whether first copies are analysed while there is time.
            once: whether that need not wait for spare time.
            analyser: runs the comparison of bodies.
        """
        self.detector = ChangeDetector(
            database,
            confirm_pages=confirm_pages,
            first_copies=first_copies,
            once=once,
            analyser=analyser,
        )
        self.validators = OriginValidators(check_share=check_share)
        self._database = database
        # By page: how many differences in a row prove noise at least.
        self._pairs: dict[int, int] = {}
        # Pages whose pair leaves open whether it shows an edit: the next copy tells.
        self._open_pairs: set[int] = set()

    def request_mode(
        self, page: PageRecord, now: float, delay_s: float, *, covered: bool = False
    ) -> RequestMode:
        """Return how to request a page from its own host.

        Args:
            delay_s: delay of its host.
            covered: whether hint sources report its changes.
        """
        # A second fetch that comes too late is a visit like any other.
        least = self._pairs.pop(page.page_id, 0)
        pair = proof_of_pair(page, now, delay_s, least=least) if least else 0
        is_third = page.page_id in self._open_pairs
        mode = self.validators.request_mode(page, pair=pair, is_third=is_third)
        if not covered:
            return mode
        reporter = self._database.look_up(hint.reporter_of, page.page_id)
        return replace(
            mode,
            reported=True,
            hinted=reporter is not None,
            certain=reporter is hint.Reporter.WIKI,
        )

    async def compare(
        self,
        page: PageRecord,
        site: ActiveSite,
        response: FetchResponse | FetchFailure,
        mode: RequestMode,
    ) -> BodyComparison | None:
        """Compare the body of a response with the copy held; None without a body."""
        if page.requisite:
            return None  # its digest is enough: nobody reads it
        return await self.detector.compare(page, site, response, mode)

    def learn(self, visit: Visit, delay_s: float) -> VisitFeedback:
        """Learn from a visit; return the feedback to record with it.

        Args:
            delay_s: delay of the host that answered.
        """
        page, response, pair = visit.page, visit.response, visit.mode.pair
        validators = NO_EVIDENCE
        good = visit.judgement.good_copy and not visit.mode.from_replica
        if good and isinstance(response, FetchResponse):
            # A pair that differs shows noise that no rule covers yet, not a lying validator.
            same = None if pair and not visit.same else visit.same
            validators = self.validators.learn(page, visit.mode, response, visit.at, same=same)
        if visit.judgement.outcome not in {Outcome.FAILED, Outcome.BLOCKED}:
            self._open_pairs.discard(page.page_id)
        again = self._wants_pair(visit)
        if again:
            self._pairs[page.page_id] = pair or least_proof(page, visit.at, delay_s)
            if pair:
                self._open_pairs.add(page.page_id)
        confirming = again and (visit.first_copy or _is_unproven(visit))
        template = self.detector.update_template(page, visit.comparison, confirming=confirming)
        return VisitFeedback(validators=validators, template=template, again=again)

    def _wants_pair(self, visit: Visit) -> bool:
        """Whether a page is to be fetched again at once, also after a pair that leaves it open."""
        if visit.mode.hinted:
            return False
        if visit.mode.pair:
            return not visit.mode.is_third and _leaves_open(visit)
        if visit.judgement.outcome is not Outcome.CHANGED:
            return False
        if visit.page.requisite or visit.mode.from_replica or not visit.readable or visit.variant:
            return False
        return wants_pair(
            visit.page,
            self.detector.template(visit.page.host_id),
            streak=streak_after(visit),
            confirm_pages=self.detector.confirm_pages,
            is_unproven=_is_unproven(visit),
        )


def _leaves_open(visit: Visit) -> bool:
    """Whether the difference of a pair may be an edit."""
    if visit.mode.pair >= CLOSE_PROOF:
        return False  # the next visit shows as much
    if visit.mode.pair > 1:
        return visit.judgement.outcome is Outcome.CHANGED
    is_by_pair = visit.comparison is not None and visit.comparison.is_by_pair
    return is_by_pair and not is_certain(visit.page, visit.at)


def _is_unproven(visit: Visit) -> bool:
    return visit.comparison is not None and visit.comparison.is_unproven
