"""The trials of an origin: pairs of pages are chosen, visited, compared and counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from crawld.core.dust.learning import AskedPair, ComparedPair, HostTrials
from crawld.core.dust.likely import sections_of
from crawld.core.dust.pace import VALIDATION_SHARE
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.dust.trial import TrialEvidence, TrialResult, extra_fetches
from crawld.core.dust.watch import VisitShares, first_score
from crawld.core.url import target_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.dust.asking import PageAsking
from crawld.daemon.jobs.dust.origin_urls import OriginUrls
from crawld.daemon.jobs.dust.page_texts import Compared, PageTexts, Sameness
from crawld.store.frontier import dust, dust_page
from crawld.store.frontier.dust import DustOrigin, DustRuleRow, RuleStatus
from crawld.store.frontier.dust_page import DustPageRow, SeenPage

MOST_PAIRS: Final = 4_000
"""Pairs of the trials of an origin that are read."""

MOST_ROUNDS: Final = 12
"""Rounds of comparisons in one run."""

COMPARED_AT_ONCE: Final = 60
"""Pairs compared in one round."""

SAMPLE: Final = 16
"""Pages that show which blocks stand on many pages."""

LEAST_VALIDATION: Final = 10
"""Visits that a small host gets."""

TWIN_S: Final = 1_800.0
"""A page that stands for others and was visited so lately is not visited for a look at them."""

MAX_APART_S: Final = 3_600.0
"""Visits further apart may see two states of one page: what differs then is compared again."""

FIRST_LOOK_S: Final = 3_600.0
"""When a few of the pages that a new rule hides are visited."""


class OriginTrials(BackgroundWork):
    """Runs the trials of an origin."""

    def __init__(self, context: CrawlContext, texts: PageTexts, asking: PageAsking) -> None:
        super().__init__(context)
        self._texts = texts
        self._asking = asking
        self._shares: dict[int, VisitShares] = defaultdict(VisitShares)
        self._wanting: set[int] = set()
        self._asked: set[int] = set()

    def take_asked(self) -> int:
        """Return how many pages trials have asked for since the last call."""
        asked = len(self._asked)
        self._asked.clear()
        return asked

    async def run(
        self, origin: DustOrigin, rows: Sequence[DustRuleRow], urls: OriginUrls
    ) -> HostRules:
        """Go on with the trials of an origin; return the rules that are applied afterwards."""
        sections = origin.sections or tuple(sections_of(urls.searched()))
        applied = HostRules((row.rule for row in rows if row.applies), sections)
        pairs = await self._database.read(dust_page.of_trials, origin.origin_id, MOST_PAIRS)
        trials = HostTrials(
            applied,
            {row.rule for row in rows if row.status == "trial" and not row.applies},
            {row.rule for row in rows if not row.applies and row.status != "trial"},
            _compared_pairs(pairs, rows),
        )
        now = self._clock.now()
        await self._propose(origin, trials, urls)
        await self._database.write(dust.put_origin, origin.origin_id, sections, origin.pages, now)
        chrome = await self._host_chrome(origin, trials, urls)
        await self._answer(origin, trials, rows, pairs, chrome)
        left = self._shares_of(origin, rows).for_trials(self.visits_left(origin))
        self._wanting.discard(origin.origin_id)
        if any(pair.waits and pair.rule in trials.open for pair in trials.compared):
            self._wanting.add(origin.origin_id)  # their next step
        await self._conclude(origin, trials, urls)  # before more is asked for
        for _ in range(MOST_ROUNDS):
            asked = await self._workers.run(trials.choose, urls.is_visited, abandon_on_cancel=True)
            compared, spent = await self._compare(origin, trials, urls, asked, chrome, left)
            left -= spent
            if not await self._conclude(origin, trials, urls) and not compared:
                break
        return trials.rules

    async def _conclude(self, origin: DustOrigin, trials: HostTrials, urls: OriginUrls) -> bool:
        """End trials that are decided; return whether a rule holds: others may be likely now."""
        decided = await self._decide(origin, trials)
        holds = any(result is TrialResult.HOLDS for result in decided.values())
        if holds:
            await self._propose(origin, trials, urls)
        return holds

    async def _propose(self, origin: DustOrigin, trials: HostTrials, urls: OriginUrls) -> None:
        propose = partial(trials.propose, is_known=urls.by_target.__contains__)
        await self._workers.run(propose, urls.searched(), origin.origin_id, abandon_on_cancel=True)
        await self._database.write(
            dust.add_trials, origin.origin_id, sorted(trials.open), self._clock.now()
        )

    async def _answer(
        self,
        origin: DustOrigin,
        trials: HostTrials,
        rules: Sequence[DustRuleRow],
        pairs: Sequence[DustPageRow],
        host_chrome: frozenset[int],
    ) -> None:
        """Compare the pairs of open trials whose visits were asked for and were made."""
        is_open = {row.dust_rule_id for row in rules if row.rule in trials.open}
        by_rule: dict[int, list[DustPageRow]] = defaultdict(list)
        for row in pairs:
            if row.dust_rule_id in is_open:
                by_rule[row.dust_rule_id].append(row)
        answers: dict[int, DustPageRow] = {}
        for of_rule in by_rule.values():
            ready = [
                (row, *found)
                for row in of_rule
                if row.verdict == "asked" and (found := self.visited_pair(origin, row)) is not None
            ]
            if not ready:
                continue
            chrome = host_chrome | await self._own_chrome(
                origin, [target_of(row.url) for row in of_rule]
            )
            for row, page, canonical in ready:
                compared = await self._texts.compare(page, canonical, chrome)
                answers[row.page_id] = self.judged(origin, row, page, canonical, compared)
        await self._database.write(dust_page.put, origin.origin_id, list(answers.values()))
        trials.compared = _compared_pairs([answers.get(row.page_id, row) for row in pairs], rules)

    def visited_pair(
        self, origin: DustOrigin, row: DustPageRow
    ) -> tuple[SeenPage, SeenPage] | None:
        """Return both pages of a row once they were visited as it asked, else None."""
        page = self._database.look_up(dust_page.seen_page, row.url)
        canonical = self._database.look_up(dust_page.seen_page, f"{origin.origin}{row.canonical}")
        since = row.at if row.tries else 0.0
        if page is None or canonical is None or (page.last_visit_at or -1.0) < since:
            return None
        if (canonical.last_visit_at or -1.0) < since - TWIN_S:
            return None
        return page, canonical

    async def _compare(
        self,
        origin: DustOrigin,
        trials: HostTrials,
        urls: OriginUrls,
        asked: Sequence[AskedPair],
        host_chrome: frozenset[int],
        left: int,
    ) -> tuple[int, int]:
        """Compare pairs that were visited, ask for visits of the others.

        Args:
            left: visits that may be asked for which the crawl would not have made.

        Returns:
            how many were compared, and how many such visits were asked for.
        """
        numbers = {
            row.rule: row.dust_rule_id
            for row in await self._database.read(dust.list_rules, origin.origin_id)
        }
        by_rule: dict[DustRule, list[AskedPair]] = defaultdict(list)
        for one in asked:
            by_rule[one.rule].append(one)
        stored: list[DustPageRow] = []
        spent = 0
        for rule, some in by_rule.items():
            ready = [one for one in some if self._is_ready(one, urls)]
            targets = [one.pair.target for one in ready]
            chrome = host_chrome | await self._own_chrome(origin, targets)
            for asked_pair in some[:COMPARED_AT_ONCE]:
                extra = extra_fetches(asked_pair.pair, urls.is_visited)
                if extra:
                    self._wanting.add(origin.origin_id)
                if extra and spent + extra > left:
                    continue
                row = await self._settle(origin, numbers[rule], asked_pair, urls, chrome)
                if row is not None:
                    stored.append(row)
                    spent += extra
        await self._database.write(dust_page.put, origin.origin_id, stored)
        await self._database.write(dust.count_asked, origin.origin_id, spent)
        rows = await self._database.read(dust.list_rules, origin.origin_id)
        trials.add(_compared_pairs(stored, rows))
        return sum(row.verdict != "asked" for row in stored), spent

    def visits_left(self, origin: DustOrigin) -> int:
        """Return how many visits for validation may be asked for of an origin."""
        return self._visits_so_far(origin) - origin.asked

    def looks_left(self, origin: DustOrigin, rules: Sequence[DustRuleRow]) -> int:
        """Return how many of them looks at hidden pages may take.

        Args:
            rules: those of the origin.
        """
        trials_go_on = origin.origin_id in self._wanting
        shares = self._shares_of(origin, rules)
        return shares.for_looks(self.visits_left(origin), trials_go_on=trials_go_on)

    def _shares_of(self, origin: DustOrigin, rules: Sequence[DustRuleRow]) -> VisitShares:
        shares = self._shares[origin.origin_id]
        shares.grow(self._visits_so_far(origin), (row.watched for row in rules if row.applies))
        return shares

    def _visits_so_far(self, origin: DustOrigin) -> int:
        """Return the visits for validation of an origin, those made included.

        A host whose pages are visited again and again gets more, so that a rule that is wrong for
        few URLs is found there some day, however small the host is.
        """
        named = self._state.admission.dust.named_urls(origin.origin)
        return max(
            LEAST_VALIDATION, int(VALIDATION_SHARE * max(origin.pages, named, origin.visits))
        )

    @staticmethod
    def _is_ready(asked: AskedPair, urls: OriginUrls) -> bool:
        return urls.is_visited(asked.pair.target) and urls.is_visited(asked.pair.canonical)

    async def _host_chrome(
        self, origin: DustOrigin, trials: HostTrials, urls: OriginUrls
    ) -> frozenset[int]:
        """Return the blocks that stand on many pages of an origin."""
        sample = await self._workers.run(_distinct, trials, urls, abandon_on_cancel=True)
        return await self._texts.chrome(self._seen(origin, sample))

    async def _own_chrome(self, origin: DustOrigin, targets: Sequence[str]) -> frozenset[int]:
        """Return the blocks that stand on many of the pages that a rule would hide."""
        return await self._texts.chrome(self._seen(origin, targets[:SAMPLE]))

    async def chrome_of_rows(self, origin: DustOrigin, dust_rule_id: int | None) -> frozenset[int]:
        """Return the blocks that stand on many pages that were compared and equal.

        Args:
            origin: of the pages.
            dust_rule_id: of the rule for which they were compared; None: any.
        """
        rows = await self._database.read(
            dust_page.of_verdict, origin.origin_id, "equal", MOST_PAIRS
        )
        wanted = [row for row in rows if dust_rule_id is None or row.dust_rule_id == dust_rule_id]
        by_canonical = {row.canonical: row for row in wanted}
        some = list(by_canonical.values())[:SAMPLE]
        hidden = await self._texts.chrome(self._seen(origin, [target_of(row.url) for row in some]))
        others = list({row.canonical for row in rows})[:SAMPLE]
        return hidden | await self._texts.chrome(self._seen(origin, sorted(others)))

    def _seen(self, origin: DustOrigin, targets: Sequence[str]) -> list[SeenPage]:
        found = (
            self._database.look_up(dust_page.seen_page, f"{origin.origin}{target}")
            for target in targets
        )
        return [page for page in found if page is not None]

    async def _settle(
        self,
        origin: DustOrigin,
        dust_rule_id: int,
        asked: AskedPair,
        urls: OriginUrls,
        chrome: frozenset[int],
    ) -> DustPageRow | None:
        """Compare a pair, or ask for visits; None: one of its pages is out of scope."""
        pair, now = asked.pair, self._clock.now()
        known = urls.by_target.get(pair.target)
        page = self._database.look_up(dust_page.seen_page, f"{origin.origin}{pair.target}")
        if known is None or page is None:
            return None
        canonical = await self._asking.find(
            f"{origin.origin}{pair.canonical}", site_id=page.site_id
        )
        if canonical is None:
            return None
        row = DustPageRow(
            *(page.page_id, page.url, pair.canonical, "asked", now),
            *(dust_rule_id, pair.value, None, 0),
        )
        if not self._is_ready(asked, urls):
            for one in (page, canonical):
                if one.last_visit_at is None:
                    self._asking.visit(origin.host, one)
                    self._asked.add(one.page_id)
            return row
        return self.judged(
            origin, row, page, canonical, await self._texts.compare(page, canonical, chrome)
        )

    def judged(
        self,
        origin: DustOrigin,
        row: DustPageRow,
        page: SeenPage,
        canonical: SeenPage,
        compared: Compared,
    ) -> DustPageRow:
        """Return the row of a page after a comparison; ask again where time may explain it."""
        now = self._clock.now()
        sameness = compared.sameness
        apart_s = abs((page.last_visit_at or 0.0) - (canonical.last_visit_at or 0.0))
        unsure = sameness is Sameness.DIFFERS and apart_s > MAX_APART_S and not row.tries
        if unsure or sameness is Sameness.UNKNOWN:
            for one in (page, canonical):
                self._asking.visit(origin.host, one)
            return row._replace(verdict="asked", at=now, tries=row.tries + 1)
        return row._replace(verdict=sameness.value, at=now, digest=compared.digest)

    async def _decide(self, origin: DustOrigin, trials: HostTrials) -> dict[DustRule, TrialResult]:
        """Store the evidence and the results of trials."""
        evidence = trials.evidence()
        decided = trials.decide()
        now = self._clock.now()
        for row in await self._database.read(dust.list_rules, origin.origin_id):
            if row.status != "trial":
                continue
            own = evidence.get(row.rule, TrialEvidence())
            result = decided.get(row.rule)
            holds = result is TrialResult.HOLDS
            score = first_score(own.differing) if holds else own.score
            equal = own.equal + own.repeated if holds else own.equal
            if (equal, own.differing) != (row.equal, row.differing) or result is not None:
                await self._database.write(
                    dust.put_evidence, row.dust_rule_id, equal, own.differing, score
                )
            if result is not None:
                status: RuleStatus = "holds" if holds else "refused"
                await self._database.write(
                    dust.set_status, row.dust_rule_id, status, now, now + FIRST_LOOK_S
                )
        return decided


def _distinct(trials: HostTrials, urls: OriginUrls) -> list[str]:
    """Return visited targets of different pages, evenly drawn.

    Two URLs that may show one page count as one, whatever the trials say later.
    """
    tried = HostRules(trials.rules.rules | trials.open, trials.rules.sections)
    by_page: dict[str, str] = {}
    for target in urls.searched():
        if urls.is_visited(target):
            found = tried.apply_to_target(target)
            by_page.setdefault(target if found is None else found[0], target)
    visited = list(by_page.values())
    return visited[:: max(1, len(visited) // SAMPLE)][:SAMPLE]


def _compared_pairs(
    rows: Iterable[DustPageRow], rules: Iterable[DustRuleRow]
) -> list[ComparedPair]:
    """Return pairs of trials; those asked for, or that prove nothing, have an empty digest."""
    by_number = {one.dust_rule_id: one.rule for one in rules}
    return [
        ComparedPair(
            rule,
            row.canonical,
            row.value,
            row.digest if row.verdict in ("equal", "differs") else b"",
            waits=row.verdict == "asked",
        )
        for row in rows
        if row.dust_rule_id is not None and (rule := by_number.get(row.dust_rule_id)) is not None
    ]
