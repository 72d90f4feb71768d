"""Sections of a replica: its pages by path prefix, their counts, and a random sample of each.

The sample of a section is its pages of lowest hash: which of them the crawl has visited already
costs nothing, and neither the order of the crawl nor the copy chooses them. Memory is bounded: a
section keeps counts and `SAMPLE_LIMIT` pages of lowest hash, which can be merged into the parent's.

Source: samples by lowest hash: Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches".
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeVar

import xxhash

from crawld.core.replica.bound import differing_bound
from crawld.core.units import DAY_S, HOUR_S

LEAST_SECTION: Final = 50
"""A section with fewer pages joins its parent: to know it, most of it would have to be sampled."""

SAMPLE_LIMIT: Final = 160
"""Largest sample of a section: it proves `AGREEING_SHARE` of any section with up to three pages
that differ."""

ALARM_S: Final = 4 * DAY_S
"""Time over which pages that began to differ are counted together."""

_DEPTH: Final = 3
"""Directories of a path that divide a host into sections."""

_MAX_SECTIONS: Final = 2_000
"""Prefixes of a host that are counted; the pages of others count for their parent."""


class Standing(Enum):
    """What is known about a page of a replica whose twin has a copy."""

    UNVISITED = "unvisited"
    UNCOMPARED = "uncompared"
    """Visited, but not compared yet."""
    AGREES = "agrees"
    DIFFERS = "differs"


class ReplicaPage(NamedTuple):
    """A page of a replica whose twin, the page at the same path of the canonical host, has a copy.

    Attributes:
        target: path and query.
        compared_at: time of the last comparison, Unix seconds; 0: never.
        agreed_in_a_row: agreeing comparisons up to and including the last; 0 if that differed.
        turns: how often the page began to differ after it had agreed.
        turned_at: time of the comparison in which it last did, Unix seconds; 0: never.
        twin_changed: whether the twin has changed since the last comparison.
    """

    page_id: int
    target: str
    standing: Standing
    compared_at: float = 0.0
    agreed_in_a_row: int = 0
    turns: int = 0
    turned_at: float = 0.0
    twin_changed: bool = False


@dataclass(frozen=True, slots=True)
class SectionState:
    """What is remembered of a section between two runs.

    Attributes:
        deferring: whether its unvisited pages are deferred.
        returned: whether all its pages are crawled, since too many began to differ.
        returned_at: when it last returned, Unix seconds; 0: never. A page that agreed before that
            counts as not compared.
        returns: how often it returned.
    """

    deferring: bool = False
    returned: bool = False
    returned_at: float = 0.0
    returns: int = 0


NEW_SECTION: Final = SectionState()


Drawn = tuple[int, int, Standing]
"""A page of a sample: negated rank, page_id, standing."""

ComparedAgain = tuple[int, int, int]
"""A page that was compared again: negated rank, page_id, hours since then."""

_Ranked = TypeVar("_Ranked", Drawn, ComparedAgain)


@dataclass(slots=True)
class Section:
    """Counts of the pages under a prefix, without those of the sections below it.

    Attributes:
        size: pages whose twin has a copy.
        fallen: differing pages that agreed once.
        turned: pages that began to differ within `ALARM_S`.
        turned_hours: hours since the first of them did; -1: there are none.
        again: pages that agreed when compared again within `ALARM_S`, by hours since then.
        sample: the pages of lowest rank: (negated rank, page_id, standing), a heap.
        resting: agreeing pages that were not compared again within `ALARM_S`, those of lowest rank:
            (negated rank, page_id, standing), a heap.
        compared_again: the pages of `again`, those of lowest rank, a heap.
    """

    prefix: str
    size: int = 0
    unvisited: int = 0
    agreeing: int = 0
    differing: int = 0
    fallen: int = 0
    turned: int = 0
    turned_hours: int = -1
    again: Counter[int] = field(default_factory=Counter)
    sample: list[Drawn] = field(default_factory=list)
    resting: list[Drawn] = field(default_factory=list)
    compared_again: list[ComparedAgain] = field(default_factory=list)

    @property
    def compared(self) -> int:
        """Pages that were compared."""
        return self.agreeing + self.differing

    @property
    def stayed(self) -> int:
        """Pages that agreed when compared again since the first page turned.

        Those compared before may have begun to differ since.
        """
        return sum(many for hours, many in self.again.items() if hours <= self._known_hours)

    @property
    def _known_hours(self) -> int:
        # Pages that were visited together may be compared in two runs.
        return self.turned_hours + 1

    def to_recheck(self, count: int) -> tuple[int, ...]:
        """Return agreeing pages of which nothing is known since the first page turned, by rank."""
        before = [one for one in self.compared_again if one[2] > self._known_hours]
        ranked = sorted((one[:2] for one in (*self.resting, *before)), reverse=True)
        return tuple(page_id for _, page_id in ranked[:count])

    def drawn(self) -> list[tuple[int, Standing]]:
        """Return page_id and standing of the sample, in the order in which it is drawn."""
        return in_order(self.sample)

    def known_sample(self) -> tuple[int, int]:
        """Return how many pages of the sample were compared without a gap, and how many differ."""
        known = differing = 0
        for _, standing in self.drawn():
            if standing not in (Standing.AGREES, Standing.DIFFERS):
                break
            known += 1
            differing += standing is Standing.DIFFERS
        return known, differing

    def agreeing_bound(self) -> float:
        """Return the lower 95 % bound of the agreeing share: of the section, and of its rest.

        The smaller of both: the share of the whole section, and the share of the pages that were
        never compared, of which those known to differ are no part.
        """
        most = differing_bound(self.size, *self.known_sample())
        unknown = self.size - self.compared
        if self.differing > most:  # the sample was lucky: more is known to differ than it allows
            return 0.0
        share = 1.0 - most / self.size if self.size else 0.0
        return min(share, 1.0 - (most - self.differing) / unknown) if unknown else share


class SectionTree:
    """Counts the pages of one replica by section.

    Args:
        salt: chooses the sample of each section; stays the same for one replica.
        now: Unix seconds.
        states: the states stored by prefix.
    """

    def __init__(self, salt: int, now: float, states: Mapping[str, SectionState]) -> None:
        self._salt, self._now, self._states = salt, now, states
        self._nodes: dict[str, Section] = {"/": Section("/")}
        self._inherited: dict[str, SectionState] = {}
        self._found: dict[str, Section] | None = None

    def add(self, page: ReplicaPage) -> None:
        """Count a page."""
        node = self._nodes["/"]
        for prefix in section_prefixes(page.target):
            known = self._nodes.get(prefix)
            if known is None:
                if len(self._nodes) >= _MAX_SECTIONS:
                    break
                known = self._nodes[prefix] = Section(prefix)
            node = known
        self._count(node, page)

    def _count(self, node: Section, page: ReplicaPage) -> None:
        returned_at = self.state_of(node.prefix).returned_at
        standing = page.standing
        if standing is Standing.AGREES and page.compared_at < returned_at:
            standing = Standing.UNCOMPARED
        node.size += 1
        node.unvisited += standing is Standing.UNVISITED
        node.agreeing += standing is Standing.AGREES
        node.differing += standing is Standing.DIFFERS
        keep_lowest(node.sample, (-rank_of(page.page_id, self._salt), page.page_id, standing))
        since = max(self._now - ALARM_S, returned_at)
        if standing is Standing.DIFFERS:
            node.fallen += page.turned_at > 0.0
            if page.turned_at > since:
                node.turned += 1
                node.turned_hours = max(node.turned_hours, self._hours_since(page.turned_at))
        elif standing is Standing.AGREES:
            rank = rank_of(page.page_id, self._salt + int(self._now // ALARM_S))
            if page.agreed_in_a_row > 1 and page.compared_at > since:
                hours = self._hours_since(page.compared_at)
                node.again[hours] += 1
                keep_lowest(node.compared_again, (-rank, page.page_id, hours))
            else:
                keep_lowest(node.resting, (-rank, page.page_id, standing))

    def _hours_since(self, at: float) -> int:
        return int(max(0.0, self._now - at) // HOUR_S)

    def state_of(self, prefix: str) -> SectionState:
        """Return the stored state of a section; a new section has that of its parent."""
        found = self._inherited.get(prefix)
        if found is None:
            found = self._states.get(prefix)
            if found is None:
                found = NEW_SECTION if prefix == "/" else self.state_of(_parent(prefix))
            self._inherited[prefix] = found
        return found

    def sections(self) -> dict[str, Section]:
        """Return the sections by prefix; a small one has joined its parent. Call it after `add`."""
        if self._found is None:
            self._found = {}
            # Children before parents.
            for prefix in sorted(self._nodes, key=lambda one: (-_depth(one), one)):
                node = self._nodes[prefix]
                if node.size >= LEAST_SECTION or (prefix == "/" and node.size):
                    self._found[prefix] = node
                elif prefix != "/":
                    _join(self._nodes[_parent(prefix)], node)
        return self._found


def section_of(target: str, sections: Container[str]) -> str:
    """Return the section of a page among some prefixes; "/" if none is longer.

    >>> section_of("/wiki/a/b", {"/": 1, "/wiki/": 2})
    '/wiki/'
    """
    found = "/"
    for prefix in section_prefixes(target):
        if prefix in sections:
            found = prefix
    return found


def section_prefixes(target: str) -> list[str]:
    """Return the prefixes of a path and query that may be sections, below "/".

    >>> section_prefixes("/a/b/page.html"), section_prefixes("/a/list.php?day=3")
    (['/a/', '/a/b/'], ['/a/', '/a/list.php?'])
    """
    path, question, _ = target.partition("?")
    found: list[str] = []
    at = 0
    for _ in range(_DEPTH):
        at = path.find("/", at + 1)
        if at < 0:
            return [*found, path + "?"] if question else found
        found.append(path[: at + 1])
    return found


def _parent(prefix: str) -> str:
    return prefix[: prefix.rindex("/", 0, len(prefix) - 1) + 1]


def _depth(prefix: str) -> int:
    return prefix.count("/") + prefix.endswith("?")


def _join(parent: Section, child: Section) -> None:
    parent.size += child.size
    parent.unvisited += child.unvisited
    parent.agreeing += child.agreeing
    parent.differing += child.differing
    parent.again.update(child.again)
    parent.turned += child.turned
    parent.turned_hours = max(parent.turned_hours, child.turned_hours)
    parent.fallen += child.fallen
    for kept, more in ((parent.sample, child.sample), (parent.resting, child.resting)):
        for one in more:
            keep_lowest(kept, one)
    for again in child.compared_again:
        keep_lowest(parent.compared_again, again)


def rank_of(page_id: int, salt: int) -> int:
    """Return the rank of a page in the order in which a sample is drawn."""
    return xxhash.xxh3_64_intdigest(page_id.to_bytes(8, "little"), salt)


def in_order(heap: list[Drawn]) -> list[tuple[int, Standing]]:
    """Return page_id and standing, the lowest rank first."""
    return [(page_id, standing) for _, page_id, standing in sorted(heap, key=_drawn_last)][::-1]


def _drawn_last(one: Drawn) -> tuple[int, int]:
    return one[:2]


def keep_lowest(sample: list[_Ranked], one: _Ranked) -> None:
    """Add a page to a sample if it is one of the `SAMPLE_LIMIT` pages of lowest rank."""
    # Ranks are distinct for distinct pages, so that standings are never compared.
    if len(sample) < SAMPLE_LIMIT:
        heapq.heappush(sample, one)
    elif one[:2] > sample[0][:2]:
        heapq.heapreplace(sample, one)
