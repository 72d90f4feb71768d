"""Whether the rules of an origin still hold: pages that they hide are looked at, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crawld.core.dust.learning import ContestedUrls
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.dust.watch import looks_of, suspects_of, watch_pair
from crawld.core.page import Outcome, PageState
from crawld.core.units import DAY_S
from crawld.core.url import target_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.dust.asking import PageAsking
from crawld.daemon.jobs.dust.hiding import IDS_AT_ONCE, REST_FACTOR, WRITTEN_AT_ONCE, hide_rows
from crawld.daemon.jobs.dust.page_texts import PageTexts, Sameness, shows_text
from crawld.daemon.jobs.dust.trials import MOST_PAIRS, TWIN_S, OriginTrials
from crawld.daemon.pacing import LoopSlices, PacedReader, parts_of
from crawld.store.frontier import dust, dust_page
from crawld.store.frontier.dust import DustOrigin, DustRuleRow
from crawld.store.frontier.dust_page import DustPageRow, KnownUrl

ASKED_S: Final = 3 * DAY_S
"""How long a page waits for a visit before it is compared no more."""

COMPARED_IDS: Final = 12_000
"""Range of page_ids in which a run searches for visited pages to compare."""

MOST_COMPARED: Final = 100
"""Visited pages that a run compares with the pages that stand for them."""

MOST_SETTLED: Final = 400
"""Pages asked for that a run reads."""

LOOKED_AT: Final = 3
"""Hidden pages of a rule that are visited at a time, once many were compared."""

SHORTEST_LOOK_S: Final = 3_600.0
LONGEST_LOOK_S: Final = 7 * DAY_S
"""Times between two looks at the pages of a rule; they grow with the age of the rule."""

MOST_CONTESTED: Final = 200
"""Contested URLs under which hidden pages are searched."""

SAMPLED: Final = 200
"""Hidden pages from which those to look at are drawn."""


class OriginLooks(BackgroundWork):
    """Looks at hidden pages of an origin, and compares them; withdraws rules."""

    def __init__(
        self, context: CrawlContext, texts: PageTexts, asking: PageAsking, trials: OriginTrials
    ) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._texts = texts
        self._asking = asking
        self._trials = trials
        self._compared_up_to: dict[int, int] = {}

    async def look(self, origin: DustOrigin, rows: Sequence[DustRuleRow], rules: HostRules) -> None:
        """Let some hidden pages be visited again, with their twins.

        First those that are the most likely to differ. Then rules of which few pairs were compared
        take what their trials left of the visits; each rule has some looks on a schedule.
        """
        now = self._clock.now()
        in_force = {row.rule: row for row in rows if row.applies}
        due = [row for row in in_force.values() if row.look_at <= now]
        watched = {rule: row.watched for rule, row in in_force.items()}
        visits = self._trials.looks_left(origin, rows)
        doubted = (await self._doubted(origin, rows, rules))[:visits]
        left = looks_of(watched, visits - len(doubted))
        left |= {row.rule: max(LOOKED_AT, left.get(row.rule, 0)) for row in due}
        if not doubted and not any(left.values()):
            return
        chosen = {row.page_id: row for row in doubted}
        for row in await self._choose(origin, rules, left, suspects_of(watched)):
            chosen.setdefault(row.page_id, row)
        asked = [
            row._replace(verdict="asked", at=now, dust_rule_id=None, tries=1)
            for row in chosen.values()
        ]
        await self._database.write(dust_page.put, origin.origin_id, asked)
        await self._asking.resume(origin.host, list(chosen))
        twins = 0
        for row in asked:
            page = self._database.look_up(dust_page.seen_page, row.url)
            if page is not None:
                self._asking.visit(origin.host, page)  # else it waits behind all other new pages
            twin = self._database.look_up(dust_page.seen_page, f"{origin.origin}{row.canonical}")
            if twin is not None and (twin.last_visit_at or 0.0) < now - TWIN_S:
                self._asking.visit(origin.host, twin)
                twins += twin.last_visit_at is not None  # a first visit is one of the crawl
        await self._database.write(dust.count_asked, origin.origin_id, len(asked) + twins)
        for one in due:
            pause_s = min(max(now - one.since, SHORTEST_LOOK_S), LONGEST_LOOK_S)
            await self._database.write(dust.look_again, one.dust_rule_id, now + pause_s)

    async def _contested(self, origin: DustOrigin, rows: Sequence[DustRuleRow]) -> ContestedUrls:
        """Return the URLs whose pages were seen to change with a parameter."""
        by_number = {row.dust_rule_id: row.rule for row in rows}
        differing = await self._database.read(
            dust_page.of_verdict, origin.origin_id, "differs", MOST_PAIRS
        )
        return ContestedUrls(
            (by_number[row.dust_rule_id], row.canonical)
            for row in differing
            if row.dust_rule_id in by_number
        )

    async def _doubted(
        self, origin: DustOrigin, rows: Sequence[DustRuleRow], rules: HostRules
    ) -> list[DustPageRow]:
        """Return hidden pages that stand under contested URLs, one for each of these and rule.

        None where the pages of the rule agreed.
        """
        contested = await self._contested(origin, rows)
        targets = {url for row in rows if row.applies for url in contested.of(row.rule)}
        if not targets:
            return []
        there = await self._database.read(
            dust_page.of_canonicals, origin.origin_id, sorted(targets)[:MOST_CONTESTED]
        )
        there.sort(key=lambda row: row.verdict == "hidden")  # what was compared comes first
        agreed: set[tuple[DustRule, str]] = set()
        found = []
        for row in there:
            mapped = rules.apply(row.url)
            used = () if mapped is None else mapped.used
            doubts = {(rule, row.canonical) for rule in used if row.canonical in contested.of(rule)}
            if row.verdict == "hidden" and doubts - agreed:
                found.append(row)
            if row.verdict != Sameness.DIFFERS.value:
                agreed |= doubts
        return found

    async def _choose(
        self,
        origin: DustOrigin,
        rules: HostRules,
        left: dict[DustRule, int],
        suspects: frozenset[DustRule],
    ) -> list[DustPageRow]:
        """Draw hidden pages to look at.

        Args:
            left: how many of each rule are wanted; changed.
            suspects: rules of which a page is to use one alone, if there is such a page.
        """
        first, last = await self._database.read(dust_page.page_range, origin.host_id)
        start = self._rng.randint(first - 1, max(first - 1, last))
        found = await self._database.read(dust_page.hidden, origin.origin_id, start, SAMPLED)
        found += await self._database.read(dust_page.hidden, origin.origin_id, 0, SAMPLED)
        self._rng.shuffle(found)
        pages = [
            (row, () if mapped is None else mapped.used)
            for row in found
            for mapped in [rules.apply(row.url)]
        ]
        pages.sort(key=lambda page: len(suspects.intersection(page[1])) > 1)
        chosen: dict[int, DustPageRow] = {}
        for row, used in pages:
            if row.page_id not in chosen and any(left.get(rule, 0) > 0 for rule in used):
                chosen[row.page_id] = row
                for rule in used:
                    left[rule] = left.get(rule, 0) - 1
        return list(chosen.values())

    async def compare_visited(self, origin: DustOrigin, rules: HostRules) -> None:
        """Let visited pages be compared with the visited pages that stand for them: no visit more.

        Each run reads a part of the pages; the next one goes on after it.
        """
        first, last = await self._database.read(dust_page.page_range, origin.host_id)
        begin = self._compared_up_to.get(origin.origin_id, 0)
        begin = begin if first <= begin < last else first - 1
        end = min(begin + COMPARED_IDS, last)
        rows: list[DustPageRow] = []
        now = self._clock.now()
        for after in range(begin, end, IDS_AT_ONCE):
            up_to = min(after + IDS_AT_ONCE, end)
            pages = await self._paced.read(dust_page.urls, origin.origin_id, after, up_to)
            found = await self._workers.run(_to_compare, pages, rules, abandon_on_cancel=True)
            slices = LoopSlices()
            for page, url in found:
                await slices.pause()
                twin = self._database.look_up(dust_page.seen_page, url)
                own = self._database.look_up(dust_page.seen_page, page.url)
                if twin is None or own is None or not shows_text(twin):
                    continue
                if shows_text(own) or own.last_outcome is Outcome.MOVED:
                    what = page.page_id, page.url, target_of(url), "asked", now
                    rows.append(DustPageRow(*what, None, "", None, 0))
            if len(rows) >= MOST_COMPARED:
                end = up_to
                break
        self._compared_up_to[origin.origin_id] = end
        for part in parts_of(rows, WRITTEN_AT_ONCE):
            await self._database.write(dust_page.put, origin.origin_id, part)

    async def settle(
        self, origin: DustOrigin, rows: Sequence[DustRuleRow], rules: HostRules
    ) -> bool:
        """Compare the pages that were asked for and visited; return whether a rule is withdrawn.

        Pairs of open trials wait for these, which know more of the blocks that many pages have.
        """
        asked = await self._database.read(
            dust_page.of_verdict, origin.origin_id, "asked", MOST_SETTLED
        )
        scores = {row.rule: row for row in rows if row.applies}
        in_trials = {row.dust_rule_id for row in rows if row.status == "trial" and not row.applies}
        chromes: dict[int | None, frozenset[int]] = {}
        contested: ContestedUrls | None = None
        now = self._clock.now()
        for row in asked:
            if now - row.at > ASKED_S:
                await self._database.write(dust_page.drop, [row.page_id])
                continue
            found = self._trials.visited_pair(origin, row)
            if found is None or row.dust_rule_id in in_trials:
                continue
            page, twin = found
            if row.dust_rule_id not in chromes:
                chromes[row.dust_rule_id] = await self._trials.chrome_of_rows(
                    origin, row.dust_rule_id
                )
            judged = self._trials.judged(
                origin,
                row,
                page,
                twin,
                await self._texts.compare(page, twin, chromes[row.dust_rule_id]),
            )
            mapped = rules.apply(row.url)
            is_hidden = judged.verdict == Sameness.EQUAL.value and mapped is not None
            await self._database.write(
                hide_rows if is_hidden else dust_page.put, origin.origin_id, [judged]
            )
            if row.dust_rule_id is None and mapped is not None:
                contested = contested or await self._contested(origin, rows)
                doubted = contested.by(mapped.used, row.canonical)
                self._score(scores, mapped.used, judged.verdict, doubted)
        return await self._store_scores(rows, scores)

    @staticmethod
    def _score(
        scores: dict[DustRule, DustRuleRow],
        used: Sequence[DustRule],
        verdict: str,
        doubted: Sequence[bool],
    ) -> None:
        if verdict not in (Sameness.EQUAL.value, Sameness.DIFFERS.value):
            return
        known = [scores[rule] for rule in used if rule in scores]
        watched = watch_pair(
            [row.watched for row in known],
            equal=verdict == Sameness.EQUAL.value,
            doubted=[doubt for rule, doubt in zip(used, doubted, strict=True) if rule in scores],
        )
        for row, after in zip(known, watched, strict=True):
            scores[row.rule] = row._replace(**after._asdict())

    async def _store_scores(
        self, rows: Sequence[DustRuleRow], scores: dict[DustRule, DustRuleRow]
    ) -> bool:
        withdrawn, now = False, self._clock.now()
        for before in rows:
            after = scores.get(before.rule)
            if after is None or after == before:
                continue
            await self._database.write(
                dust.put_evidence,
                after.dust_rule_id,
                after.equal,
                after.differing,
                after.score,
            )
            if after.differing > before.differing:
                # Other pages are looked at at once.
                await self._database.write(dust.look_again, after.dust_rule_id, now)
            if after.score <= 0.0 and after.word is None:
                await self._database.write(
                    dust.set_status, after.dust_rule_id, "withdrawn", now, 0.0
                )
                withdrawn = True
        return withdrawn


def _to_compare(pages: Sequence[KnownUrl], rules: HostRules) -> list[tuple[KnownUrl, str]]:
    """Return visited pages that were not compared, with the URL that stands for each."""
    visited = (
        page
        for page in pages
        if page.state is PageState.VISITED and page.visited and page.verdict is None
    )
    return [(page, found.url) for page in visited if (found := rules.apply(page.url)) is not None]
