"""Judge pending URLs against the run of their repository: which are new, and which marks change.

Keys select, checks decide. The check of a URL whose key is known is compared with the known one;
URLs with equal keys are compared with the first of them. Where a check differs, the group of its
key is judged by checks alone, in time linear in the number of URLs that have the key.
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
from crawld.core.seen.keys import CLUSTER_SHIFT, Checks, Keys, begins_of
from crawld.core.seen.run import Positions, Run, marks_in, numbers_of
from crawld.core.seen.texts import TextBlock

Flags = NDArray[np.bool_]

_T = TypeVar("_T", bound=np.generic)


class KnownChecks(Protocol):
    """Checks of a repository's URLs, by number."""

    def checks(self, numbers: Positions) -> Checks:
        """Return the checks of some numbers."""


@dataclass(frozen=True, slots=True)
class PendingUrls:
    """URLs of one repository that wait for their verdict, in order of arrival."""

    keys: Keys
    checks: Checks
    events: Events
    texts: TextBlock


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a run takes over from pending URLs.

    Attributes:
        new_keys: keys of the new URLs, ascending.
        new_at: where in the run each is inserted.
        new_texts: positions of their texts among the pending URLs.
        new_marks: their marks.
        announced: which of them their finder knew to be new.
        numbered: positions of the new URLs in the order of their numbers: those of a host follow
            each other, in order of arrival.
        changed: positions in the run whose mark changes.
        marks: to what.
    """

    new_keys: Keys
    new_at: Positions
    new_texts: Positions
    new_marks: Events
    announced: Flags
    numbered: Positions
    changed: Positions
    marks: Events


@dataclass(frozen=True, slots=True)
class _Groups:
    """Pending URLs by key. Few have the key of another, so the first of each key are kept apart.

    Attributes:
        keys: of each group, ascending.
        first: position of its first URL.
        more: positions of the other URLs, by group, in order of arrival.
        of: the group of each of those.
        at: where the key is in the run, or belongs.
        known: whether it is there.
    """

    keys: Keys
    first: Positions
    more: Positions
    of: Positions
    at: Positions
    known: Flags


@dataclass(slots=True)
class _Collided:
    """Results of groups that are judged by their checks."""

    keys: list[int]
    at: list[int]
    texts: list[int]
    marks: list[int]
    announced: list[bool]
    changed: list[int]
    changed_marks: list[int]


def judge(run: Run, pending: PendingUrls, known: KnownChecks) -> Verdicts:
    """Return the verdicts on pending URLs; neither argument is changed."""
    groups = _grouped(run, pending.keys)
    collides = _collides(run, pending, groups, known)
    setter, mark, announced = _told(pending.events, groups)
    new = np.flatnonzero(~(groups.known | collides))
    old = np.flatnonzero(groups.known & setter & ~collides)
    old = old[marks_in(run.refs[groups.at[old]]) != mark[old]]
    collided = _judge_by_checks(run, pending, groups, np.flatnonzero(collides), known)
    new_keys = _joined(groups.keys[new], collided.keys)
    new_at = _joined(groups.at[new], collided.at)
    new_texts = _joined(groups.first[new], collided.texts)
    new_marks = _joined(mark[new], collided.marks)
    announced = _joined(announced[new], collided.announced)
    if collided.keys:
        order = np.argsort(new_keys, kind="stable")
        new_keys, new_at, new_texts = new_keys[order], new_at[order], new_texts[order]
        new_marks, announced = new_marks[order], announced[order]
    cluster = (new_keys >> CLUSTER_SHIFT).astype(np.int64)
    return Verdicts(
        new_keys,
        new_at,
        new_texts,
        new_marks,
        announced,
        np.argsort(cluster << 32 | new_texts),
        _joined(groups.at[old], collided.changed),
        _joined(mark[old], collided.changed_marks),
    )


def _grouped(run: Run, keys: Keys) -> _Groups:
    order = np.argsort(keys)
    ordered = keys[order]
    begins = begins_of(ordered)
    # URLs of one key in order of arrival, which is not that of an argsort.
    more = np.flatnonzero(~begins)
    if len(more):
        repeated = ~begins
        repeated[:-1] |= repeated[1:]
        at = np.flatnonzero(repeated)
        group = np.cumsum(begins[at])
        order[at] = np.sort(group << 32 | order[at]) & 0xFFFFFFFF
        starts = np.flatnonzero(begins)
        ordered, first = ordered[starts], order[starts]
    else:
        first = order
    at = np.searchsorted(run.keys, ordered)
    known = np.zeros(len(ordered), bool)
    if len(run):
        known = np.asarray(run.keys[np.minimum(at, len(run) - 1)] == ordered)
    # Of the groups before, each begins at an element of its own.
    of = more - np.arange(1, len(more) + 1)
    return _Groups(ordered, first, order[more], of, at, known)


def _collides(run: Run, pending: PendingUrls, groups: _Groups, known: KnownChecks) -> Flags:
    """Return for which groups a check differs from that of the key."""
    collides = np.zeros(len(groups.keys), bool)
    of_known = np.flatnonzero(groups.known)
    checks = pending.checks[groups.first]
    if len(of_known):
        stored = known.checks(numbers_of(run.refs[groups.at[of_known]]))
        collides[of_known] = stored != checks[of_known]
    collides[groups.of[pending.checks[groups.more] != checks[groups.of]]] = True
    return collides


def _told(events: Events, groups: _Groups) -> tuple[Flags, Events, Flags]:
    """Return for each group whether an event sets a mark, its mark, and whether it is announced.

    The mark is the last one that is set; if none is, that of the first event.
    """
    first, more = events[groups.first], events[groups.more]
    setter, mark, announced = sets_mark(first), marks_of(first), is_announced(first)
    setting = np.flatnonzero(sets_mark(more))
    setter[groups.of[setting]] = True
    mark[groups.of[setting]] = marks_of(more[setting])  # of several the last is kept
    announced[groups.of[is_announced(more)]] = True
    return setter, mark, announced


def _judge_by_checks(
    run: Run, pending: PendingUrls, groups: _Groups, collided: Positions, known: KnownChecks
) -> _Collided:
    found = _Collided([], [], [], [], [], [], [])
    for number in collided.tolist():
        low, high = np.searchsorted(groups.of, [number, number + 1])
        at = np.concatenate([groups.first[number : number + 1], groups.more[low:high]])
        by_check: dict[int, list[int]] = {}
        for position, check in zip(at.tolist(), pending.checks[at].tolist(), strict=True):
            by_check.setdefault(check, []).append(position)
        start = int(groups.at[number])
        end = int(np.searchsorted(run.keys, groups.keys[number], side="right"))
        stored = known.checks(numbers_of(run.refs[start:end])).tolist() if end > start else []
        for position, check in enumerate(stored, start):
            mark = last_mark(pending.events[by_check.pop(check, [])])
            if mark is not None and mark != marks_in(run.refs[position : position + 1])[0]:
                found.changed.append(position)
                found.changed_marks.append(mark)
        for positions in by_check.values():
            events = pending.events[positions]
            found.keys.append(int(groups.keys[number]))
            found.at.append(start)
            found.texts.append(positions[0])
            found.marks.append(first_mark(events))
            found.announced.append(bool(is_announced(events).any()))
    return found


def _joined(array: NDArray[_T], more: list[int] | list[bool]) -> NDArray[_T]:
    return np.concatenate([array, np.array(more, array.dtype)]) if more else array
