"""What visits teach beside what they find: noise, validators, and when to look twice.

The core loop asks here how to ask for a page, hands over each answer, and takes back what is to be
recorded with the visit. Everything is derived from the file; the pages waiting to be fetched again
at once are forgotten by a restart.
"""

from __future__ import annotations

from dataclasses import replace

from crawld.core.page import Outcome
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.change_detection import BodyComparison, ChangeDetector, is_pair, wants_pair
from crawld.daemon.visit.conclude import Visit
from crawld.daemon.visit.record import VisitFeedback, streak_after
from crawld.daemon.visit.validators import NO_EVIDENCE, OriginValidators, RequestMode
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.changes import hint
from crawld.store.engine.database import Database
from crawld.store.frontier.page import PageRecord


class VisitLearning:
    """What is learnt about all hosts under crawl.

    Attributes:
        detection: tells changes from noise.
        validators: tells true servers from liars.
    """

    def __init__(self, database: Database, *, confirm_pages: int, check_share: float) -> None:
        """Start with nothing at hand.

        Args:
            database: the open file.
            confirm_pages: pages of each host fetched twice, to learn what changes by itself; 0
                fetches no page twice.
            check_share: share of the conditional requests sent without conditions.
        """
        self.detection = ChangeDetector(database, confirm_pages=confirm_pages)
        self.validators = OriginValidators(check_share=check_share)
        self._database = database
        self._pairs: set[int] = set()

    def ask(
        self, page: PageRecord, now: float, delay_s: float, *, covered: bool = False
    ) -> RequestMode:
        """Return how to ask for a page whose turn it is.

        Args:
            page: the page as the file knows it.
            now: Unix seconds.
            delay_s: delay of its host.
            covered: whether there are sources that may have told of it.
        """
        pair = page.page_id in self._pairs
        self._pairs.discard(page.page_id)
        # One that comes too late is a visit like any other.
        asked = self.validators.ask(page, pair=pair and is_pair(page, now, delay_s))
        told = covered and self._database.look_up(hint.has_hint, page.page_id)
        return replace(asked, told=True) if told else asked

    async def examine(
        self,
        page: PageRecord,
        site: ActiveSite,
        answer: FetchResponse | FetchFailure,
        asked: RequestMode,
    ) -> BodyComparison | None:
        """Return what the body of an answer is beside the copy held."""
        if page.requisite:
            return None  # its digest tells: nobody reads it
        return await self.detection.examine(
            page,
            site,
            answer,
            pair=asked.pair and not asked.told,
            told=asked.told or asked.elsewhere,
        )

    def learn(self, visit: Visit) -> VisitFeedback:
        """Take what a visit taught; return what the file should know of it."""
        page, answer, pair = visit.page, visit.answer, visit.asked.pair
        told = NO_EVIDENCE
        good = visit.judgement.good_copy and not visit.asked.elsewhere
        if good and isinstance(answer, FetchResponse):
            # Two readings of a pair that differ tell of noise not yet explained, not of a lie.
            same = None if pair and not visit.same else visit.same
            told = self.validators.learn(page, visit.asked, answer, visit.at, same=same)
        again = self._wants_pair(visit)
        if again:
            self._pairs.add(page.page_id)
        confirming = again and visit.first_copy
        template = self.detection.settle(page, visit.finding, confirming=confirming)
        return VisitFeedback(told=told, template=template, again=again)

    def _wants_pair(self, visit: Visit) -> bool:
        if visit.judgement.outcome is not Outcome.CHANGED or visit.asked.pair or visit.asked.told:
            return False
        if visit.page.requisite or visit.asked.elsewhere:
            return False
        return wants_pair(
            visit.page,
            self.detection.template(visit.page.host_id),
            streak=streak_after(visit),
            confirm_pages=self.detection.confirm_pages,
        )
