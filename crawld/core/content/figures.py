"""Figures: numbers that change by themselves, and are still what a reader came for.

The temperature of a town changes from visit to visit, as a counter of readers does: on one host
both are noise. On two hosts only the counter is. Copies count on their own, but two towns have two
temperatures. The readings of each host tell them apart:

- A *figure* stays between two readings one host delay apart, changes later, is another on each
  page, and is no time or date. Two copies of a page would show the same one, so that it counts.
- What differs at once is noise, unless its range on one host lies outside of that on the other, as
  the live rates of two exchanges do. Numbers that only rise are counters, whatever their range.
- What all pages of a host show alike is a stamp, and noise: of the host, and not of the page.

Not to be told apart: counters that a cache keeps for longer than a host delay (figures here), live
figures with one range on both hosts, numbers that only rise and are content, such as votes, and
times that are content, such as departures (noise here).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import inf
from struct import Struct
from typing import Final, NamedTuple

from crawld.core.content.volatile import (
    Cover,
    VolatileRule,
    VolatileRules,
    number_runs,
    wording_hash,
)

MOST_BLOCKS, MOST_CHARACTERS = 8, 2_048
"""Blocks of a reading, and characters of a block, in which numbers are compared."""

STAMP_REPEATS = 2
"""Repetitions of a change on other pages of its host that show a stamp: all pages have the same."""

LEAST_OBSERVED: Final = 6
"""Differences of each page from which the ranges of two pages count: of two copies, whose numbers
are drawn alike, one in 1,700 has two ranges of seven numbers apart. Ranges of hosts count at once,
since they soon have more."""

_TIME = re.compile(
    r"\d:\d\d|\d{4}-\d{1,2}-\d|\d{1,2}([./])\d{1,2}\1\d{2}|\d\s*+[ap]\.?m\b|"
    r"(?<![^\W\d_])(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?(?![^\W\d_])|"
    r"(?<![^\W\d_])(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)"
    r"(?:uary|ch|il|ust|ember|ober)?(?![^\W\d_])|"
    r"\d\s*+(?:s|ms|second|minute|hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
_STORED = Struct("<f")
_PLAIN = re.compile(r"\d{1,15}(?:,\d{3}){0,5}+(?:\.\d{1,15})?+")


class NumberChange(NamedTuple):
    """How some blocks differ between two readings.

    Attributes:
        numbers: the first plain number that differs, before and after; empty: nothing but times and
            dates differs; infinite: something that has no range.
        only_times: whether nothing but times and dates differs.
    """

    numbers: tuple[float, ...]
    only_times: bool


_NO_RANGE: Final = NumberChange((-inf, inf), False)


def number_change(before: Sequence[str], after: Sequence[str]) -> NumberChange:
    """Return how some blocks differ, in linear time."""
    differing = [pair for pair in zip(before, after, strict=False) if pair[0] != pair[1]]
    is_short = all(max(map(len, pair)) <= MOST_CHARACTERS for pair in differing)
    if len(before) != len(after) or len(differing) > MOST_BLOCKS or not is_short:
        return _NO_RANGE
    return _change_of(tuple(differing))


@lru_cache(maxsize=64)  # several rules of a page and of its host cover the same blocks
def _change_of(differing: tuple[tuple[str, str], ...]) -> NumberChange:
    for old, new in differing:
        if wording_hash(old) != wording_hash(new):
            return _NO_RANGE
        for one, other in zip(number_runs(old), number_runs(new), strict=False):
            if one == other or (_TIME.search(one) and _TIME.search(other)):
                continue
            numbers = _PLAIN.fullmatch(one), _PLAIN.fullmatch(other)
            if numbers[0] and numbers[1]:
                return NumberChange((_value(numbers[0][0]), _value(numbers[1][0])), False)
            return _NO_RANGE
    return NumberChange((), True)


def _value(number: str) -> float:
    """Return a number as a rule stores it."""
    (value,) = _STORED.unpack(_STORED.pack(float(number.replace(",", ""))))
    return float(value)


class TwinNoise(NamedTuple):
    """The noise rules of a page of one host: its own, and those of the host."""

    page: VolatileRules
    host: VolatileRules


def twin_rules(one: TwinNoise, other: TwinNoise, *, read_twice: bool) -> VolatileRules:
    """Return the confirmed rules under which the texts of a page and its twin are compared.

    Args:
        one: rules of the page.
        other: rules of the twin.
        read_twice: whether pages of either host were read twice, one host delay apart: what differs
            at once would be known.
    """
    apart = _apart(one.page, other.page, LEAST_OBSERVED) | _apart(one.host, other.host, 1)
    joined = (one.page | one.host | other.page | other.host).confirmed()
    content = {
        rule.key
        for rule in joined.rules
        if rule.repeats < STAMP_REPEATS
        and (rule.key in apart or is_figure(rule, read_twice=read_twice))
    }
    # What covers a whole place would cover a figure in it, too.
    places = {place for cover, place, _, _ in content if cover != Cover.SLOT}
    return VolatileRules(
        tuple(
            rule
            for rule in joined.rules
            if rule.key not in content
            and not (rule.cover in {Cover.NUMBERS, Cover.PLACE} and rule.place in places)
        )
    )


def is_figure(rule: VolatileRule, *, read_twice: bool) -> bool:
    """Whether what a rule covers changes from time to time, but not at once."""
    stays = rule.stayed > rule.at_once or (read_twice and not rule.at_once)
    return stays and not rule.only_times


def lacks_pair(rule: VolatileRule) -> bool:
    """Whether only two readings one host delay apart tell whether a rule covers a figure."""
    return not (rule.at_once or rule.stayed or rule.only_times or rule.repeats >= STAMP_REPEATS)


def _apart(a: VolatileRules, b: VolatileRules, least: int) -> set[tuple[int, int, int, int]]:
    """Return the keys of the rules whose numbers lie in two ranges, after so many differences."""
    others = {rule.key: rule for rule in b.rules if rule.differed >= least}
    return {
        rule.key
        for rule in a.rules
        if rule.differed >= least
        and (twin := others.get(rule.key)) is not None
        and _are_apart(rule, twin)
    }


def _are_apart(a: VolatileRule, b: VolatileRule) -> bool:
    return (a.falls or b.falls) and (-inf < a.high < b.low < inf or -inf < b.high < a.low < inf)
