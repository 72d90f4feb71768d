"""Judge pending URLs against the run of their repository: which are new, and which marks change.

Keys select, texts decide. A URL whose key is known is compared with the known text; URLs with equal
keys are compared with the first of them. Where a text differs, the group of its key is judged by
texts alone, in time linear in the number of URLs that have the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.event import (
    Events,
    first_mark,
    is_announced,
    last_mark,
    marks_of,
    sets_mark,
)
from crawld.core.seen.keys import CLUSTER_SHIFT, Keys, begins_of
from crawld.core.seen.run import Positions, Run, marks_in, numbers_of
from crawld.core.seen.texts import TextBlock, differing

Flags = NDArray[np.bool_]

_T = TypeVar("_T", bound=np.generic)


class KnownTexts(Protocol):
    """Stored texts of a repository's URLs, by number."""

    def differ(self, numbers: Positions, texts: TextBlock, at: Positions) -> Flags:
        """Return for each number whether its text differs from the one at a position."""

    def read(self, numbers: Positions) -> list[bytes]:
        """Return the texts of some numbers."""


@dataclass(frozen=True, slots=True)
class PendingUrls:
    """URLs of one repository that wait for their verdict, in order of arrival."""

    keys: Keys
    events: Events
    texts: TextBlock


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a run takes over from pending URLs.

    Attributes:
        new_keys: keys of the new URLs, ascending.
        new_texts: positions of their texts among the pending URLs.
        new_marks: their marks.
        announced: which of them their finder knew to be new.
        numbered: positions of the new URLs in the order of their numbers: those of a host follow
            each other, in order of arrival.
        changed: positions in the run whose mark changes.
        marks: to what.
        compared: how many texts were compared.
    """

    new_keys: Keys
    new_texts: Positions
    new_marks: Events
    announced: Flags
    numbered: Positions
    changed: Positions
    marks: Events
    compared: int


@dataclass(frozen=True, slots=True)
class _Groups:
    """Pending URLs by key.

    Attributes:
        order: positions of the pending URLs, by key, and in order of arrival for each key.
        starts: where each group begins in `order`.
        group: of each element of `order`.
        keys: of each group.
        at: where the key is in the run, or belongs.
        known: whether it is there.
    """

    order: Positions
    starts: Positions
    group: Positions
    keys: Keys
    at: Positions
    known: Flags

    def with_any(self, flags: Flags) -> Flags:
        """Return which groups have an element of `order` with a flag."""
        found = np.zeros(len(self.starts), bool)
        found[self.group[flags]] = True
        return found


@dataclass(slots=True)
class _Collided:
    """Results of groups that are judged by their texts."""

    keys: list[int]
    texts: list[int]
    marks: list[int]
    announced: list[bool]
    changed: list[int]
    changed_marks: list[int]


def judge(run: Run, pending: PendingUrls, known: KnownTexts) -> Verdicts:
    """Return the verdicts on pending URLs; neither argument is changed."""
    groups = _grouped(run, pending.keys)
    if not len(groups.starts):
        return _nothing()
    differs = _differs(run, pending, groups, known)
    collides = groups.with_any(differs)
    events = pending.events[groups.order]
    setter, mark = _last_marks(events, groups)
    is_new = ~groups.known & ~collides
    first = groups.starts
    first_at = groups.order[first]
    new_marks = np.where(setter, mark, marks_of(events)[first])[is_new]
    announced = groups.with_any(is_announced(events))[is_new]
    old = groups.known & ~collides & setter
    old[old] = marks_in(run.refs[groups.at[old]]) != mark[old]
    collided = _judge_by_texts(run, pending, groups, np.flatnonzero(collides), known)
    new_keys = np.concatenate([groups.keys[is_new], np.array(collided.keys, np.uint64)])
    new_texts = _joined(first_at[is_new], collided.texts)
    new_marks, announced = (
        _joined(new_marks, collided.marks),
        _joined(announced, collided.announced),
    )
    if collided.keys:
        order = np.argsort(new_keys, kind="stable")
        new_keys, new_texts = new_keys[order], new_texts[order]
        new_marks, announced = new_marks[order], announced[order]
    cluster = (new_keys >> CLUSTER_SHIFT).astype(np.int64)
    return Verdicts(
        new_keys,
        new_texts,
        new_marks,
        announced,
        np.argsort(cluster << 32 | new_texts),
        _joined(groups.at[old], collided.changed),
        _joined(mark[old], collided.changed_marks),
        len(differs) - int(np.count_nonzero(~groups.known)),
    )


def _grouped(run: Run, keys: Keys) -> _Groups:
    order = np.argsort(keys)
    ordered = keys[order]
    begins = begins_of(ordered)
    group = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    # URLs of one key in order of arrival, which is not that of an argsort.
    repeated = ~begins
    repeated[:-1] |= repeated[1:]
    order[repeated] = np.sort(group[repeated] << 32 | order[repeated]) & 0xFFFFFFFF
    unique = ordered[starts]
    at = np.searchsorted(run.keys, unique)
    known = np.zeros(len(unique), bool)
    inside = at < len(run)
    known[inside] = run.keys[at[inside]] == unique[inside]
    return _Groups(order, starts, group, unique, at, known)


def _differs(run: Run, pending: PendingUrls, groups: _Groups, known: KnownTexts) -> Flags:
    """Return for each element of `order` whether its text differs from that of its key."""
    differs = np.zeros(len(groups.order), bool)
    of_known = np.flatnonzero(groups.known[groups.group])
    if len(of_known):
        numbers = numbers_of(run.refs[groups.at[groups.group[of_known]]])
        differs[of_known] = known.differ(numbers, pending.texts, groups.order[of_known])
    repeats = ~groups.known[groups.group]
    repeats[groups.starts] = False
    of_first = np.flatnonzero(repeats)
    if len(of_first):
        first = groups.order[groups.starts[groups.group[of_first]]]
        differs[of_first] = differing(pending.texts, first, pending.texts, groups.order[of_first])
    return differs


def _last_marks(events: Events, groups: _Groups) -> tuple[Flags, Events]:
    """Return for each group whether an event sets a mark, and the last mark that is set."""
    setting = np.flatnonzero(sets_mark(events))
    group = groups.group[setting]
    setter, mark = np.zeros(len(groups.starts), bool), np.zeros(len(groups.starts), np.uint8)
    setter[group] = True
    mark[group] = marks_of(events[setting])  # of several the last is kept
    return setter, mark


def _judge_by_texts(
    run: Run, pending: PendingUrls, groups: _Groups, collided: Positions, known: KnownTexts
) -> _Collided:
    found = _Collided([], [], [], [], [], [])
    ends = np.append(groups.starts[1:], len(groups.order))
    for number in collided:
        at = groups.order[groups.starts[number] : ends[number]]
        by_text: dict[bytes, list[int]] = {}
        for position, text in zip(at.tolist(), pending.texts.take(at), strict=True):
            by_text.setdefault(text, []).append(position)
        start = int(groups.at[number])
        end = int(np.searchsorted(run.keys, groups.keys[number], side="right"))
        stored = known.read(numbers_of(run.refs[start:end])) if end > start else []
        for position, text in enumerate(stored, start):
            mark = last_mark(pending.events[by_text.pop(text, [])])
            if mark is not None and mark != marks_in(run.refs[position : position + 1])[0]:
                found.changed.append(position)
                found.changed_marks.append(mark)
        for positions in by_text.values():
            events = pending.events[positions]
            found.keys.append(int(groups.keys[number]))
            found.texts.append(positions[0])
            found.marks.append(first_mark(events))
            found.announced.append(bool(is_announced(events).any()))
    return found


def _joined(array: NDArray[_T], more: list[int] | list[bool]) -> NDArray[_T]:
    return np.concatenate([array, np.array(more, array.dtype)]) if more else array


def _nothing() -> Verdicts:
    marks = np.zeros(0, np.uint8)
    positions = np.zeros(0, np.int64)
    return Verdicts(
        np.zeros(0, np.uint64),
        positions,
        marks,
        np.zeros(0, bool),
        positions,
        positions,
        marks,
        0,
    )
