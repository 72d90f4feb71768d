"""Judge pending URLs against the run of their repository: which are new, and which come nearer.

Keys select, checks decide. The check of a URL whose key is known is compared with the known one;
URLs with equal keys are compared with the first of them. Where a check differs, the group of its
key is judged by checks alone, in time linear in the number of URLs that have the key.

A known URL takes the place of a URL that was found nearer to the seeds; the site stays unless it is
retired. Of several pending ones the nearest counts, the earliest of these. One that was told to be
new is a page already: its place changes as that of a known URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from crawld.core.seen.keys import Checks, Keys, begins_of
from crawld.core.seen.place import MAX_DEPTH, NOWHERE, Places, depths_of, sites_of
from crawld.core.seen.run import Positions, Run

Flags = NDArray[np.bool_]

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class PendingUrls:
    """URLs of one repository that wait for their verdict, in order of arrival.

    Attributes:
        places: where each was found.
        told: which were known to be new when they were found, and wait at their place already.
    """

    keys: Keys
    checks: Checks
    places: Places
    told: Flags


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a run takes over from pending URLs. Positions are those of pending URLs.

    Attributes:
        new_keys: keys of the new URLs, ascending.
        new_at: where in the run each is inserted.
        new: position of each, where it was found nearest.
        new_told: position of the same URL that was told to be new; -1: nobody was told.
        new_places: the place that each takes.
        changed: positions in the run whose place changes.
        changed_by: because of which URL.
        before: the place that each had.
        after: the place that it takes.
    """

    new_keys: Keys
    new_at: Positions
    new: Positions
    new_told: Positions
    new_places: Places
    changed: Positions
    changed_by: Positions
    before: Places
    after: Places


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


def judge(run: Run, pending: PendingUrls, retired: Flags) -> Verdicts:
    """Return the verdicts on pending URLs; no argument is changed.

    Args:
        retired: by site_id, whether no config names the site any more.
    """
    groups = _grouped(run, pending.keys)
    collides = _collides(run, pending, groups)
    distances = _distances(pending)
    best = _nearest(distances, groups)
    new = np.flatnonzero(~(groups.known | collides))
    old = np.flatnonzero(groups.known & ~collides)
    collided = _judge_by_checks(run, pending, distances, groups, np.flatnonzero(collides))
    new_keys = _joined(groups.keys[new], collided.keys)
    new_at = _joined(groups.at[new], collided.at)
    found = _joined(best[new], collided.new)
    told = _joined(_told(pending.told, groups)[new], collided.told)
    if collided.keys:
        order = np.argsort(new_keys, kind="stable")
        new_keys, new_at, found, told = new_keys[order], new_at[order], found[order], told[order]
    at = _joined(groups.at[old], collided.known)
    by = _joined(best[old], collided.known_by)
    before = run.places[at]
    after = _places_after(before, pending.places[by], retired)
    changed = np.flatnonzero(before != after)
    places = pending.places[found]
    is_told = told >= 0
    places[is_told] = _places_after(pending.places[told[is_told]], places[is_told], retired)
    return Verdicts(
        *(new_keys, new_at, found, told, places),
        *(at[changed], by[changed], before[changed], after[changed]),
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


def _collides(run: Run, pending: PendingUrls, groups: _Groups) -> Flags:
    """Return for which groups a check differs from that of the key."""
    collides = np.zeros(len(groups.keys), bool)
    of_known = np.flatnonzero(groups.known)
    checks = pending.checks[groups.first]
    collides[of_known] = run.checks[groups.at[of_known]] != checks[of_known]
    collides[groups.of[pending.checks[groups.more] != checks[groups.of]]] = True
    return collides


def _told(told: Flags, groups: _Groups) -> Positions:
    """Return for each group the position of a URL that was told to be new; -1: there is none."""
    found = np.where(told[groups.first], groups.first, -1)
    also = told[groups.more]
    found[groups.of[also]] = groups.more[also]
    return found


def _distances(pending: PendingUrls) -> Places:
    """Return what decides where a URL was found nearest: links that were told count last."""
    return np.where(pending.told, np.uint16(MAX_DEPTH + 1), depths_of(pending.places))


def _nearest(distances: Places, groups: _Groups) -> Positions:
    """Return for each group where it was found nearest, the earliest of these."""
    best = groups.first.copy()
    if len(groups.more):
        order = np.lexsort((groups.more, distances[groups.more], groups.of))
        of, more = groups.of[order], groups.more[order]
        starts = np.flatnonzero(np.diff(of, prepend=-1))
        of, more = of[starts], more[starts]
        nearer = distances[more] < distances[best[of]]
        best[of[nearer]] = more[nearer]
    return best


def _places_after(before: Places, found: Places, retired: Flags) -> Places:
    """Return the places of known URLs after they were found at others."""
    is_left = (before == NOWHERE) | (retired[sites_of(before)] & ~retired[sites_of(found)])
    depths = np.minimum(depths_of(before), depths_of(found))
    nearest: Places = before - depths_of(before) + depths
    return np.where(
        is_left, np.where(before == NOWHERE, found, found - depths_of(found) + depths), nearest
    )


@dataclass(slots=True)
class _Collided:
    """Results of groups that are judged by their checks; as those of `Verdicts`.

    Attributes:
        known: positions in the run of URLs that are known.
        known_by: where each was found nearest.
    """

    keys: list[int]
    at: list[int]
    new: list[int]
    told: list[int]
    known: list[int]
    known_by: list[int]


def _judge_by_checks(
    run: Run, pending: PendingUrls, distances: Places, groups: _Groups, collided: Positions
) -> _Collided:
    found = _Collided([], [], [], [], [], [])
    for number in collided.tolist():
        low, high = np.searchsorted(groups.of, [number, number + 1])
        at = np.concatenate([groups.first[number : number + 1], groups.more[low:high]])
        by_check: dict[int, list[int]] = {}
        for position, check in zip(at.tolist(), pending.checks[at].tolist(), strict=True):
            by_check.setdefault(check, []).append(position)
        start = int(groups.at[number])
        end = int(np.searchsorted(run.keys, groups.keys[number], side="right"))
        for position, check in enumerate(run.checks[start:end].tolist(), start):
            if check in by_check:
                found.known.append(position)
                found.known_by.append(min(by_check.pop(check), key=distances.__getitem__))
        for positions in by_check.values():
            found.keys.append(int(groups.keys[number]))
            found.at.append(start)
            found.new.append(min(positions, key=distances.__getitem__))
            told = (position for position in positions if pending.told[position])
            found.told.append(next(told, -1))
    return found


def _joined(array: NDArray[_T], more: list[int]) -> NDArray[_T]:
    return np.concatenate([array, np.array(more, array.dtype)]) if more else array
