"""How soon a copy that begins to differ is seen, and how soon its pages and section are back."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from crawld.bench.replica_rounds.simulated_crawl import SimulatedCrawl
from crawld.core.replica.agreement import PageVerdict
from crawld.core.replica.hosts import Ids
from crawld.simweb.lookalike.web import LookalikeWeb
from crawld.store.replica.survey import TwinStanding

DIVERGING_KINDS: Final = ("diverging_copies", "large_sites")

_RETURN_SHARE: Final = 0.1
"""Share of a section that must differ before all of it is to return."""

_LAST_BEGIN_DAY: Final = 50
_SETTLED_DAYS: Final = 8.0
_IN_TIME_DAYS: Final = 2.0
_NOT_YET: Final = 99.0

_ONE_SECTION: Final = 150
"""A host of fewer pages is one section."""

_DIFFERS: Final = (PageVerdict.DIFFERS, PageVerdict.REPEATED)


@dataclass(slots=True)
class DivergedCopy:
    """A copy that begins to differ while the rounds last.

    Attributes:
        host: its number.
        since: the day on which it begins to differ.
        turned: indexes of the pages that differ then.
        section: indexes of the pages of their section.
        rested: whether most of its pages rested before.
        seen: days after which one of the pages was known to differ; None: not yet.
        pages_back: the same, until none of these pages rested.
        section_back: the same, until no page of the section rested.
    """

    host: int
    since: float
    turned: frozenset[int]
    section: frozenset[int]
    rested: bool = False
    seen: float | None = None
    pages_back: float | None = None
    section_back: float | None = None

    @property
    def returns(self) -> bool:
        """Whether so much of the section differs that all of it is to return."""
        return len(self.turned) >= _RETURN_SHARE * len(self.section)

    @property
    def is_open(self) -> bool:
        """Whether something of it is not known yet."""
        return None in (self.seen, self.pages_back, self.section_back)


@dataclass(slots=True)
class DivergedCopies:
    """Notes what becomes of the copies that begin to differ."""

    web: LookalikeWeb
    crawl: SimulatedCrawl
    copies: list[DivergedCopy] = field(init=False)
    _last_day: float = 0.0

    def __post_init__(self) -> None:
        self.copies = []
        for host in self.web.hosts:
            days = host.pages.own_from
            turned = np.flatnonzero((days > 0) & (days < _LAST_BEGIN_DAY))
            if len(turned) and host.kind in DIVERGING_KINDS:
                self.copies.append(self._copy(host.number, float(days[turned].min()), turned))

    def _copy(self, host: int, since: float, turned: Ids) -> DivergedCopy:
        paths, first = self.web.hosts[host].pages.paths, int(self.crawl.first_page[host])
        prefixes = {paths[at].split("/")[1] for at in turned.tolist()}
        section = [
            at
            for at, path in enumerate(paths)
            if len(paths) < _ONE_SECTION or path.split("/")[1] in prefixes
        ]
        return DivergedCopy(
            host,
            since,
            frozenset((turned + first).tolist()),
            frozenset(first + at for at in section),
        )

    def awaits(self, day: float) -> bool:
        """Whether a copy differs of which no page is known to."""
        return any(one.rested and one.since <= day and one.seen is None for one in self.copies)

    def note_resting(self, day: float, resting: Container[int]) -> None:
        """Note which pages rest."""
        self._last_day = day
        for one in self.copies:
            pages = range(*self.crawl.first_page[one.host : one.host + 2].tolist())
            if day < one.since:
                one.rested = sum(index in resting for index in pages) > len(pages) / 2
            elif one.rested and one.is_open:
                passed = day - one.since
                if one.pages_back is None and not any(at in resting for at in one.turned):
                    one.pages_back = passed
                if one.section_back is None and not any(at in resting for at in one.section):
                    one.section_back = passed

    def note_known(self, day: float, standing: Mapping[int, TwinStanding]) -> None:
        """Note what is stored of pages, by their indexes."""
        for one in self.copies:
            if one.rested and day >= one.since and one.seen is None:
                known = (standing[at].verdict for at in one.turned if at in standing)
                if any(verdict in _DIFFERS for verdict in known):
                    one.seen = day - one.since

    def settled(self) -> list[DivergedCopy]:
        """Return the copies that rested, and of which enough time has passed to judge them."""
        return [
            one for one in self.copies if one.rested and one.since + _SETTLED_DAYS < self._last_day
        ]

    def figures(self) -> dict[str, float]:
        """Return the metrics."""
        pages = [_days(one.pages_back) for one in self.settled()]
        asked = [one for one in self.settled() if one.returns]
        sections = [_days(one.section_back) for one in asked]
        seen = [_days(one.seen) for one in asked]
        after = [max(0.0, back - known) for back, known in zip(sections, seen, strict=True)]
        return {
            "diverged": float(len(pages)),
            "page_back_days_max": max(pages, default=0.0),
            "returning_sections": float(len(asked)),
            "sections_back_in_time": float(sum(days <= _IN_TIME_DAYS for days in sections)),
            "section_back_days_median": float(np.median(sections)) if asked else 0.0,
            "section_back_days_max": max(sections, default=0.0),
            "section_seen_days_median": float(np.median(seen)) if asked else 0.0,
            "section_seen_days_max": max(seen, default=0.0),
            "section_back_after_seen_days_max": max(after, default=0.0),
        }


def _days(passed: float | None) -> float:
    return _NOT_YET if passed is None else passed
