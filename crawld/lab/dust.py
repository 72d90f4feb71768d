"""Crawls a simulated site of duplicate URLs with and without rules, and counts what rules save.

The crawl is breadth-first. Rules are learnt from the URLs found so far each time their number has
grown by a share, by the same code as in the daemon; rules in force are compared on by pairs that
were visited anyway, and by looks at hidden URLs. Only the measures use the truth.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from xxhash import xxh3_64_intdigest

from crawld.core.dust.learning import (
    AskedPair,
    ComparedPair,
    ContestedUrls,
    HostTrials,
    contested_urls,
)
from crawld.core.dust.likely import sections_of
from crawld.core.dust.pace import GROWTH_SHARE, VALIDATION_SHARE
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.dust.trial import TrialEvidence, TrialResult, extra_fetches
from crawld.core.dust.watch import (
    VisitShares,
    WatchedRule,
    first_score,
    looks_of,
    suspects_of,
    watch_pair,
)

FIRST_LEARNT: Final = 100
"""Fetches before the first learning."""

GROWTH: Final = 1.0 + GROWTH_SHARE
"""Growth of the fetches from one learning to the next; the daemon does it sooner if pairs wait."""

MOST_LEARNT: Final = 12_000
"""URLs read in one learning, the first that were found."""


class DuplicateSite(Protocol):
    """What is crawled."""

    def page_of(self, target: str) -> str:
        """Return the name of the text that a target shows."""

    def links(self, target: str) -> list[str]:
        """Return the targets that it links to."""


@dataclass(frozen=True, slots=True)
class DustFigures:
    """What rules saved.

    Attributes:
        urls: URLs of the site.
        pages: different pages of it.
        learnt_after: fetches, as a share of all URLs, after which savings are counted.
        duplicates_after: duplicate requests after that, without rules.
        fetched_after: and with rules.
        validation: fetches for validation.
        hidden: URLs that no visit was spent on.
        wrong: hidden URLs whose text is not that of the URL that stands for them.
        missed: pages of which no URL was fetched.
        rules: how many hold.
        withdrawn: rules that held for a time.
    """

    urls: int
    pages: int
    learnt_after: float
    duplicates_after: int
    fetched_after: int
    validation: int
    hidden: int
    wrong: int
    missed: int
    rules: int
    withdrawn: int

    @property
    def avoided(self) -> float:
        """Share of duplicate requests avoided."""
        return 1.0 - self.fetched_after / max(1, self.duplicates_after)

    @property
    def validation_share(self) -> float:
        """Fetches for validation, as a share of all URLs."""
        return self.validation / self.urls


class _Crawl:
    def __init__(self, site: DuplicateSite) -> None:
        self.site = site
        self.queue: deque[str] = deque(["/"])
        self.known: dict[str, None] = {"/": None}
        self.linked = 1
        self.visited: dict[str, str] = {}
        self.hidden: dict[str, str] = {}
        self.shown: set[str] = set()
        self.rules = HostRules()

    def next(self) -> str | None:
        while self.queue:
            target = self.queue.popleft()
            if target in self.visited:
                continue
            if (found := self.rules.apply_to_target(target)) is None:
                return target
            self.hidden[target] = found[0]
            self._find(found[0])
        return None

    def fetch(self, target: str) -> bool:
        """Visit a target; return whether its page was shown before."""
        page = self.visited[target] = self.site.page_of(target)
        duplicate = page in self.shown
        self.shown.add(page)
        for link in self.site.links(target):
            self.linked += self._find(link)
        return duplicate

    def set_rules(self, rules: HostRules) -> None:
        """Put rules in force; URLs that they hide no more return."""
        self.rules = rules
        for target, canonical in list(self.hidden.items()):
            found = rules.apply_to_target(target)
            if found is None or found[0] != canonical:
                del self.hidden[target]
                self.queue.append(target)

    def _find(self, target: str) -> bool:
        """Let a target be visited; return whether it is new."""
        if target in self.known:
            return False
        self.known[target] = None
        self.queue.append(target)
        return True


def simulate_dust(site: DuplicateSite, seed: int, learnt_after: float = 0.02) -> DustFigures:
    """Crawl a site without rules, then with rules, and return what they saved."""
    plain = _Crawl(site)
    flags = []
    while (target := plain.next()) is not None:
        flags.append(plain.fetch(target))
    begin = int(learnt_after * len(flags))
    crawl, trials, validation, fetches, after = _Crawl(site), HostTrials(HostRules()), 0, 0, 0
    watch, shares = _Watch(), VisitShares()
    learn_at = float(FIRST_LEARNT)
    while (target := crawl.next()) is not None:
        duplicate = crawl.fetch(target)
        fetches += 1
        after += duplicate and fetches > begin
        if fetches < learn_at:
            continue
        learn_at = GROWTH * fetches
        if not trials.rules.sections:
            trials.rules = HostRules(sections=sections_of(crawl.known))
        visits = int(VALIDATION_SHARE * crawl.linked)
        shares.grow(visits, watch.in_force(trials.rules).values())
        spent, has_all = _learn(crawl, trials, seed, shares.for_trials(visits - validation))
        validation += spent
        watch.compare(crawl, trials)
        visits = int(VALIDATION_SHARE * crawl.linked)
        shares.grow(visits, watch.in_force(trials.rules).values())
        left = shares.for_looks(visits - validation, trials_go_on=not has_all)
        validation += watch.look(crawl, trials, seed, left)
        crawl.set_rules(trials.rules)
    found = crawl.hidden.items()
    return DustFigures(
        urls=len(flags),
        pages=len(plain.shown),
        learnt_after=learnt_after,
        duplicates_after=sum(flags[begin:]),
        fetched_after=after,
        validation=validation,
        hidden=len(crawl.hidden),
        wrong=sum(site.page_of(one) != site.page_of(other) for one, other in found),
        missed=len(plain.shown - crawl.shown),
        rules=len(crawl.rules.rules),
        withdrawn=len(watch.withdrawn),
    )


class _Watch:
    """Compares the pairs of rules in force that take no fetch."""

    def __init__(self) -> None:
        self.withdrawn: set[DustRule] = set()
        self._scores: dict[DustRule, WatchedRule] = {}
        self._compared: set[str] = set()
        self._agreed: set[tuple[DustRule, str]] = set()
        self._contested = ContestedUrls(())

    def in_force(self, rules: HostRules) -> dict[DustRule, WatchedRule]:
        """Return what the pairs of the rules in force say."""
        return {rule: one for rule, one in self._scores.items() if rule in rules.rules}

    def compare(self, crawl: _Crawl, trials: HostTrials) -> None:
        """Compare visited URLs with the visited URLs that stand for them; withdraw rules."""
        self._contested = contested_urls(trials.compared)
        evidence = trials.evidence()
        for rule in trials.rules.rules - self._scores.keys():
            found = evidence.get(rule, TrialEvidence())
            self._scores[rule] = WatchedRule(
                found.equal + found.repeated, found.differing, first_score(found.differing)
            )
        for target in [one for one in crawl.visited if one not in self._compared]:
            mapped = trials.rules.apply_to_target(target)
            if mapped is not None and mapped[0] in crawl.visited:
                self._compared.add(target)
                self._count(crawl, trials, target, mapped)

    def look(self, crawl: _Crawl, trials: HostTrials, seed: int, visits: int) -> int:
        """Visit hidden URLs of rules that are not sure; return how many."""
        in_force = self.in_force(trials.rules)
        left, suspects, spent = looks_of(in_force, visits), suspects_of(in_force), 0
        contested = self._contested
        self._agreed.update((one.rule, one.canonical) for one in trials.compared if one.digest)
        found = [
            (target, mapped)
            for target in crawl.hidden
            if (mapped := trials.rules.apply_to_target(target)) and mapped[0] in crawl.visited
        ]
        found.sort(key=lambda one: xxh3_64_intdigest(one[0].encode(), seed))
        found.sort(key=lambda one: len(suspects.intersection(one[1][1])) > 1)
        found.sort(key=lambda one: not self._doubted(contested, *one[1]))
        for target, mapped in found:
            if spent >= visits:
                break
            is_doubted = self._doubted(contested, *mapped)
            if not is_doubted and not any(left.get(rule, 0) > 0 for rule in mapped[1]):
                continue
            for rule in mapped[1]:
                left[rule] = left.get(rule, 0) - 1
            crawl.fetch(target)
            del crawl.hidden[target]
            self._compared.add(target)
            self._count(crawl, trials, target, mapped)
            spent += 1
        return spent

    def _doubted(
        self, contested: ContestedUrls, canonical: str, used: tuple[DustRule, ...]
    ) -> set[DustRule]:
        """Return the rules that hide URLs of a contested page, and did not agree there yet."""
        return {
            rule
            for rule in used
            if canonical in contested.of(rule) and (rule, canonical) not in self._agreed
        }

    def _count(
        self,
        crawl: _Crawl,
        trials: HostTrials,
        target: str,
        mapped: tuple[str, tuple[DustRule, ...]],
    ) -> None:
        canonical, used = mapped
        equal = crawl.visited[target] == crawl.visited[canonical]
        if equal:
            self._agreed.update((rule, canonical) for rule in used)
        watched = watch_pair(
            [self._scores[rule] for rule in used],
            equal=equal,
            doubted=self._contested.by(used, canonical),
        )
        self._scores.update(zip(used, watched, strict=True))
        lost = {rule for rule in used if self._scores[rule].is_withdrawn}
        if lost:
            self.withdrawn |= lost
            trials.refused |= lost
            trials.rules = HostRules(trials.rules.rules - lost, trials.rules.sections)


def _learn(crawl: _Crawl, trials: HostTrials, seed: int, budget: int) -> tuple[int, bool]:
    """Run trials until they need more fetches than are left.

    Returns:
        the fetches made, and whether they were all that trials want.
    """
    spent = 0
    targets = list(islice(crawl.known, MOST_LEARNT))
    is_known = crawl.known.__contains__
    trials.propose(targets, seed, is_known)
    while asked := trials.choose(crawl.visited.__contains__):
        compared, has_all = [], True
        for one in asked:
            extra = extra_fetches(one.pair, crawl.visited.__contains__)
            if spent + extra > budget:
                has_all = False
                continue
            for each in (one.pair.target, one.pair.canonical):
                if each not in crawl.visited:
                    crawl.fetch(each)
            spent += extra
            compared.append(_compare(one, crawl.visited))
        trials.add(compared)
        if any(result is TrialResult.HOLDS for result in trials.decide().values()):
            trials.propose(targets, seed, is_known)
        elif not compared:
            return spent, has_all
    return spent, True


def _compare(asked: AskedPair, visited: Mapping[str, str]) -> ComparedPair:
    rule, pair = asked
    text = visited[pair.target]
    same = text == visited[pair.canonical]
    return ComparedPair(rule, pair.canonical, pair.value, text.encode() if same else None)
