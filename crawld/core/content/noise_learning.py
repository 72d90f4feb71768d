"""Learns the volatile blocks of a page and of the template of its host.

Two readings of a page are compared. For each difference the narrowest possible rule
(`volatile.VolatileRule`) is proposed, and every known rule is re-evaluated by whether its blocks
differed.

Evidence: (a) a *pair*, two readings one host delay apart: if that is short, any difference is
volatile at once, because hardly anybody edits that fast; else a difference twice in a row is. A
*third* reading that shows the same difference again shows an edit; one that comes late and shows
another difference leaves it open. (b) Two
visits: a difference four times in a row is volatile (five if whole blocks would be left out). A
rule whose blocks differ in less than a quarter of its observations no longer holds.

Rules of a *host* are learned from all its pages. They hold if at least three pages differed again,
at once after an earlier difference, in four of five observations: that all pages differ once shows
only that their template was edited. Numbers alone are also masked if the same change was seen
three times in a row, as a date stamp changes everywhere at once; no page could prove it so early,
while scores that editors change on some pages keep their digits. Pages whose changes a source
reports do without: the source tells an edited template from a date stamp.

Invariants: rules never leave out more than half of the text of the page they are learned from (a
page that differs in every byte remains a changing page); nothing is quadratic in the blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING
from zlib import crc32

from crawld.core.content.alignment import find_gaps
from crawld.core.content.figures import STAMP_REPEATS, number_change
from crawld.core.content.volatile import (
    BlockIndex,
    Cover,
    VolatileRule,
    VolatileRules,
    mask,
)

if TYPE_CHECKING:
    from crawld.core.content.blocks import Blocks

MAX_RULES = 16
MAX_HOST_RULES = 64
MAX_RUN = 6
"""Largest number of blocks in a slot."""

MAX_SLOT_RUNS = 4 * 16
"""Runs of blocks tried as a slot: each try reads up to `MAX_NEIGHBORS` slots."""

MAX_PROPOSALS = 16
"""New rules from one comparison: a new layout must not displace known rules."""

STREAK_TO_MASK, STREAK_TO_LEAVE_OUT = 4, 5
HOST_PAGES, HOST_OBSERVATIONS, HOST_SHARE = 3, 5, 0.8

_SEEN_CAP, _COUNT_CAP = 200, 255
_LETTERS = re.compile(r"[^\W\d_]{3}")


@dataclass(frozen=True, slots=True)
class ReadingPair:
    """Two readings of a page, and the rules that would explain their difference.

    Attributes:
        old: the earlier reading: of a visit, the previous one or the last stored version.
        new: the later reading.
    """

    old: Blocks
    new: Blocks
    _indices: tuple[BlockIndex, BlockIndex]
    _proposals: tuple[VolatileRule, ...]

    @classmethod
    def of(cls, old: Blocks, new: Blocks) -> ReadingPair:
        """Compare two readings and propose rules for what differs."""
        index = BlockIndex(new)
        if old is new:
            return cls(old, new, (index, index), ())
        indices = BlockIndex(old), index
        return cls(old, new, indices, tuple(_proposals(old, new, *indices)[:MAX_PROPOSALS]))

    def learn(
        self, known: VolatileRules, *, pair: int = 0, is_third: bool = False
    ) -> VolatileRules:
        """Return the rules of the page after this comparison.

        Call it for every reading with a body, even an equal one: unchanged blocks are evidence too.

        Args:
            pair: if the readings are a pair, how many differences in a row prove that a block is
                volatile: 1 if hardly an edit can lie between; else 0.
            is_third: whether the last comparison was that of `old` with a reading of a pair, too;
                a third reading with `pair` 0 comes late.
        """
        rules = []
        is_late = is_third and not pair
        for before in self._candidates(known):
            rule, differs = self._observe(before, pair)
            if is_third and _is_edit(before, rule):
                rule, differs = _without_edit(before, rule), False
            elif is_late and differs:
                rule = _without_pair(rule)
            if differs:
                rule = replace(rule, pages=1)
            if _is_kept(rule):
                rules.append(_confirm(rule, pair=pair if differs else 0))
        return _best_rules(rules, self.new, self._indices[1], MAX_RULES)

    def learn_host(
        self,
        known: VolatileRules,
        *,
        page_key: int,
        own: VolatileRules,
        pair: int = 0,
        is_third: bool = False,
        reported: bool = False,
    ) -> VolatileRules:
        """Return the rules of the host after this comparison of one of its pages.

        Args:
            page_key: any number that identifies the page on its host.
            own: rules of the page before this comparison: which blocks differed the last time.
            pair, is_third: see `learn`.
            reported: whether a source reports the changes of the page.
        """
        page_bit = 1 << (crc32(str(page_key).encode()) & 15)
        again = {rule.key for rule in own.rules if rule.streak}
        is_late = is_third and not pair
        rules = []
        for before in self._candidates(known):
            rule, differs = self._observe(before, pair)
            # A change that is rare but the same on all pages may only mask numbers: a new slogan in
            # its own container is an edit.
            alike = not reported and rule.cover == Cover.WORDING
            if is_third and _is_edit(before, rule):
                rule = _without_edit(before, rule)
            elif is_late and differs:
                rule = _without_pair(before)
            elif differs and (
                pair == 1 or rule.key in again or (alike and rule.repeats > before.repeats)
            ):
                rule = replace(rule, pages=rule.pages | page_bit)
            elif differs:  # an edit, for all we know
                rule = replace(
                    rule,
                    seen=before.seen,
                    differed=before.differed,
                    only_times=before.only_times,
                    falls=before.falls,
                    low=before.low,
                    high=before.high,
                )
            if _is_kept(rule):
                rules.append(_confirm_for_host(rule, alike=alike))
        return _best_rules(rules, self.new, self._indices[1], MAX_HOST_RULES)

    def _observe(self, rule: VolatileRule, pair: int) -> tuple[VolatileRule, bool]:
        """Return a rule with one more observation, and whether its blocks differed."""
        before = [self.old.texts[index] for index in self._indices[0].covered(rule)]
        after = [self.new.texts[index] for index in self._indices[1].covered(rule)]
        gone = rule.cover == Cover.WORDING and not (before and after)
        if gone or not (before or after):
            return rule, False
        scale = 2 if rule.seen >= _SEEN_CAP else 1
        seen, differed = rule.seen // scale + 1, rule.differed // scale
        if before == after:
            stayed = min(rule.stayed + (pair > 0), _COUNT_CAP)
            return replace(rule, seen=seen, differed=differed, streak=0, stayed=stayed), False
        streak = min(rule.streak + 1, _COUNT_CAP)
        evidence = replace(rule, seen=seen, differed=differed + 1, streak=streak)
        return _with_change(evidence, before, after, is_pair=pair > 0), True

    def _candidates(self, known: VolatileRules) -> list[VolatileRule]:
        """Return new rules for what differs, and the known ones.

        The newest are first, so that the oldest rules with little evidence are dropped.
        """
        rules = {rule.key: rule for rule in known.rules}
        proposals = {rule.key: rule for rule in self._proposals}
        # A rule proposed again may cover more now: a longer slot.
        for key in proposals.keys() & rules.keys():
            rules[key] = replace(rules[key], run=max(rules[key].run, proposals[key].run))
        unseen = [
            replace(rule, seen=0, differed=0, streak=0)
            for key, rule in proposals.items()
            if key not in rules
        ]
        return [*unseen, *rules.values()]


def _is_edit(before: VolatileRule, after: VolatileRule) -> bool:
    """Whether a change that only a pair showed is there again, the same one."""
    return before.at_once == 1 and after.repeats > before.repeats


def _without_edit(before: VolatileRule, after: VolatileRule) -> VolatileRule:
    """Return a rule whose blocks were edited between the two readings of the pair, and stayed."""
    return replace(
        before,
        seen=after.seen,
        differed=after.differed - 1,
        at_once=0,
        stayed=min(after.stayed + 1, _COUNT_CAP),
        confirmed=False,
    )


def _without_pair(rule: VolatileRule) -> VolatileRule:
    """Return a rule as no longer proven, if only a pair proved it."""
    return replace(rule, at_once=0, confirmed=False) if rule.at_once == 1 else rule


def _is_kept(rule: VolatileRule) -> bool:
    """Whether a rule has enough evidence to be observed further."""
    return rule.differed * 8 >= rule.seen or rule.repeats >= STAMP_REPEATS


def _rank(rule: VolatileRule) -> tuple[bool, int]:
    return (not rule.confirmed, -rule.differed)


def _with_change(
    rule: VolatileRule, before: list[str], after: list[str], *, is_pair: bool
) -> VolatileRule:
    """Return a rule with what a change of its blocks shows."""
    change = crc32("\n".join([*before, "", *after]).encode("utf-8", "replace"))
    repeats = rule.repeats if change != rule.change_hash else rule.repeats + 1
    if change != rule.change_hash and repeats < STAMP_REPEATS:
        repeats = 0
    shown = number_change(before, after)
    return replace(
        rule,
        change_hash=change,
        repeats=min(repeats, _COUNT_CAP),
        at_once=min(rule.at_once + (is_pair and not shown.only_times), _COUNT_CAP),
        stayed=min(rule.stayed + (is_pair and shown.only_times), _COUNT_CAP),
        only_times=rule.only_times and shown.only_times,
        falls=rule.falls or (len(shown.numbers) == 2 and shown.numbers[1] < shown.numbers[0]),
        low=min((rule.low, *shown.numbers)),
        high=max((rule.high, *shown.numbers)),
    )


def _confirm(rule: VolatileRule, *, pair: int) -> VolatileRule:
    needed = STREAK_TO_MASK if rule.cover <= Cover.NUMBERS else STREAK_TO_LEAVE_OUT
    proven = rule.streak >= (pair or needed)
    return _with_verdict(rule, proven or (rule.confirmed and rule.differed * 4 >= rule.seen))


def _confirm_for_host(rule: VolatileRule, *, alike: bool) -> VolatileRule:
    everywhere = (
        rule.pages.bit_count() >= HOST_PAGES
        and rule.seen >= HOST_OBSERVATIONS
        and rule.differed >= HOST_SHARE * rule.seen
    )
    stamp = alike and rule.repeats >= STAMP_REPEATS
    holds = rule.confirmed and rule.differed * 2 >= rule.seen
    return _with_verdict(rule, everywhere or stamp or holds)


def _with_verdict(rule: VolatileRule, confirmed: bool) -> VolatileRule:
    """Return a rule with a verdict; the same rule, in a hundredth of the time, if it has it."""
    return rule if rule.confirmed == confirmed else replace(rule, confirmed=confirmed)


def _best_rules(
    rules: list[VolatileRule], new: Blocks, in_new: BlockIndex, most: int
) -> VolatileRules:
    """Return the best rules; one that would leave out more than half the text is not confirmed."""
    allowed = sum(map(len, new.texts)) / 2
    bounded = []
    for rule in sorted(rules, key=_rank):
        if rule.confirmed and rule.cover in {Cover.PLACE, Cover.SLOT}:
            size = sum(len(new.texts[index]) for index in in_new.covered(rule))
            allowed -= size
            if size and allowed < 0:
                allowed += size
                bounded.append(replace(rule, confirmed=False, streak=0))
                continue
        bounded.append(rule)
    return VolatileRules(tuple(sorted(bounded, key=_rank)[:most]))


def _proposals(
    old: Blocks, new: Blocks, old_index: BlockIndex, new_index: BlockIndex
) -> list[VolatileRule]:
    """Return the rules that would explain the difference between two readings."""
    gaps = find_gaps(old, new)
    if not gaps:
        return []
    in_old = [i for gap in gaps for i in range(gap[0], gap[1])]
    in_new = [j for gap in gaps for j in range(gap[2], gap[3])]
    stable = _places_outside(old, in_old) | _places_outside(new, in_new)
    wordings = {j: (new.places[j], new_index.wording(j)) for j in in_new}
    loose = _unpaired({i: (old.places[i], old_index.wording(i)) for i in in_old}, wordings)
    paired = [j for j in in_new if j not in loose[1]]
    found = _number_rules(new, new_index, paired, wordings, stable)
    places = {old.places[i] for i in loose[0]} | {new.places[j] for j in loose[1]}
    found += [VolatileRule(Cover.PLACE, place) for place in sorted(places - stable)]
    for blocks, index, indices in ((old, old_index, loose[0]), (new, new_index, loose[1])):
        candidates = sorted(at for at in indices if blocks.places[at] in stable)
        found += _slot_rules(blocks, index, candidates, indices)
    return found


def _places_outside(blocks: Blocks, indices: list[int]) -> set[int]:
    inside = set(indices)
    return {place for index, place in enumerate(blocks.places) if index not in inside}


def _unpaired(
    old: dict[int, tuple[int, int]], new: dict[int, tuple[int, int]]
) -> tuple[set[int], set[int]]:
    """Pair blocks that differ only in numbers; return the unpaired indices of old and new.

    Args:
        old: place and wording of each differing block of the old reading, by index, ascending.
        new: the same of the new one.
    """
    waiting: dict[tuple[int, int], list[int]] = {}
    for i in reversed(old):
        waiting.setdefault(old[i], []).append(i)
    left_over = set(old)
    alone = set()
    for j, wording in new.items():
        if candidates := waiting.get(wording):
            left_over.discard(candidates.pop())
        else:
            alone.add(j)
    return left_over, alone


def _number_rules(
    new: Blocks,
    index: BlockIndex,
    paired: list[int],
    wordings: dict[int, tuple[int, int]],
    stable: set[int],
) -> list[VolatileRule]:
    differing = Counter(wordings[j] for j in paired)
    places = {place for place, _ in differing}
    everywhere = Counter(
        (place, index.wording(at)) for at, place in enumerate(new.places) if place in places
    )
    # A wording that also occurs unchanged elsewhere is a form filled in by many blocks (rows of a
    # table): it does not show which of them are volatile.
    own = [key for key, count in differing.items() if everywhere[key] == count]
    with_letters = {wordings[j] for j in paired if _LETTERS.search(mask(new.texts[j]))}
    rules = [VolatileRule(Cover.WORDING, *key) for key in own if key in with_letters]
    return rules + [VolatileRule(Cover.NUMBERS, place) for place in sorted(places - stable)]


def _slot_rules(
    blocks: Blocks, index: BlockIndex, candidates: list[int], loose: set[int]
) -> list[VolatileRule]:
    """Return a slot for each of the first runs of loose blocks between two that are not loose."""
    rules = []
    for first, after in islice(_runs(candidates), MAX_SLOT_RUNS):
        if after - first > MAX_RUN or first - 1 in loose or after in loose:
            continue
        place = blocks.places[first - 1] if first else 0
        left, right = index.wording(first - 1), index.wording(after)
        rule = VolatileRule(Cover.SLOT, place, left, right, after - first)
        if index.covered(rule) == list(range(first, after)):
            rules.append(rule)
    return rules


def _runs(indices: list[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, after) of each run of consecutive indices."""
    start = 0
    for at, index in enumerate(indices):
        if at + 1 == len(indices) or indices[at + 1] != index + 1:
            yield indices[start], index + 1
            start = at + 1
