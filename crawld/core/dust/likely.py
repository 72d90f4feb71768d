"""Likely rewrites of a host, from its URLs alone: no content is read.

The support of a rewrite is the number of targets that stand for two URLs of the list or more. What
is common on a host without pairs has no support, and saves nothing. A rewrite that is likely may be
wrong: pages decide (`trial`).

Time is linear in the text of the URLs: each feature of a URL (a parameter, a segment, a part of its
name) lists the URLs that have it, and a rewrite is tried on these alone.

Source: Bar-Yossef, Keidar and Schonfeld 2009, section 4 (rules by support, envelopes).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from crawld.core.dust.rewrite import (
    Rewrite,
    RewriteForm,
    looks_random,
    rewrite_target,
    split_target,
)
from crawld.core.dust.rules import MAX_TARGET

LEAST_SUPPORT: Final = 3
"""Pairs of URLs that make a rewrite likely."""

MANY_VALUES: Final = 10
"""Values from which on a parameter is tried as a whole; fewer are tried one by one."""

VALUES_TRIED: Final = 6
"""Values of one parameter that are tried one by one, the most frequent."""

MAX_LIKELY: Final = 60
"""Rewrites returned, those of most support."""

MAX_FEATURES: Final = 40
"""Features of a target that are read: a hostile URL has thousands."""

MAX_LISTED: Final = 4_000
"""URLs of one feature on which its rewrites are tried."""

MAX_ALIKE: Final = 4
"""Segments between the same neighbors; more of them are names of pages."""

PLACES: Final = 3
"""Segments from the root in which one may stand for another."""

LEAST_IN_SECTION: Final = 40
"""URLs that make a first segment a section of its own."""

MAX_SECTIONS: Final = 40

_PIECE = re.compile(r"[._~,!-][A-Za-z]{2,24}")
_MARK = re.compile(r";[A-Za-z_]{1,24}=|%23|[;!,:@~]")


class Likely(NamedTuple):
    """A rewrite, its support, and the targets that it changes, after the rules that hold."""

    rewrite: Rewrite
    support: int
    changed: tuple[str, ...]


def sections_of(targets: Iterable[str]) -> frozenset[str]:
    """Return the first segments that are sections of their own: the most frequent."""
    firsts = Counter(target.partition("?")[0].split("/", 2)[1] for target in targets)
    return frozenset(
        segment
        for segment, count in firsts.most_common(MAX_SECTIONS)
        if segment and count >= LEAST_IN_SECTION
    )


def likely_rewrites(targets: Iterable[str]) -> list[Likely]:
    """Return the likely rewrites of a host beyond its rules, those of most support first.

    Args:
        targets: that stand for its URLs under the rules that hold.
    """
    known = sorted({target for target in targets if len(target) <= MAX_TARGET})
    listed = _listed(known)
    urls = set(known)
    found_ones = [
        likely
        for rewrite, affected in _candidates(known, listed)
        if (likely := _supported(rewrite, affected, urls)) is not None
    ]
    found_ones.sort(key=lambda one: (-one.support, one.rewrite))
    return found_ones[:MAX_LIKELY]


def _supported(rewrite: Rewrite, affected: Sequence[str], urls: set[str]) -> Likely | None:
    """Return a rewrite with its support, None if that is too small."""
    members: Counter[str] = Counter()
    changed: list[str] = []
    for target in affected:
        mapped = rewrite_target(target, rewrite)
        if mapped != target:
            changed.append(target)
            members[mapped] += 1
    support = sum(count + (target in urls) >= 2 for target, count in members.items())
    return Likely(rewrite, support, tuple(changed)) if support >= LEAST_SUPPORT else None


_Feature = tuple[str, str]


def _listed(targets: Sequence[str]) -> dict[_Feature, list[str]]:
    """Return the targets by feature, features of one target only left out."""
    listed: dict[_Feature, list[str]] = defaultdict(list)
    for target in targets:
        for feature in dict.fromkeys(_features(target)):
            of = listed[feature]
            if len(of) < MAX_LISTED:
                of.append(target)
    return {feature: of for feature, of in listed.items() if len(of) >= 2}


def _features(target: str) -> Iterator[_Feature]:
    """Yield what a rewrite may refer to in a target."""
    path, query = split_target(target)
    if "//" in path:
        yield "collapse", ""
    if path != path.lower():
        yield "lower", ""
    yield from _path_features(path.split("/")[1 : MAX_FEATURES + 1])
    items = query.split("&", MAX_FEATURES)[:MAX_FEATURES] if query else []
    if len(items) > 1:
        yield "sort", ""
    for item in items:
        name, _, value = item.partition("=")
        yield "name", name
        yield "value", f"{name}={value}"


def _path_features(segments: list[str]) -> Iterator[_Feature]:
    for at, segment in enumerate(segments[:-1]):
        if looks_random(segment):
            yield "token", str(at)
    if len(segments) > 1:
        yield from (("segment", segment) for segment in segments[:PLACES] if segment)
    if last := segments[-1]:
        yield "last", last
        yield from (("piece", piece) for piece in _first(_PIECE, last))
    for segment in segments:
        yield from (("mark", mark) for mark in _first(_MARK, segment))


def _first(pattern: re.Pattern[str], text: str) -> list[str]:
    found = []
    for match in pattern.finditer(text):
        found.append(match[0])
        if len(found) == MAX_FEATURES:
            break
    return found


def _candidates(
    known: Sequence[str], listed: dict[_Feature, list[str]]
) -> Iterator[tuple[Rewrite, Sequence[str]]]:
    """Yield rewrites that may have support, and the targets on which to try them."""
    values: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (kind, name), affected in listed.items():
        if kind in _BY_FEATURE:
            yield Rewrite(_BY_FEATURE[kind], name), affected
        elif kind == "segment":
            yield Rewrite(RewriteForm.REPLACE, name), affected
        elif kind == "value":
            parameter, _, value = name.partition("=")
            values[parameter].append((len(affected), value))
    for parameter, counted in values.items():
        for _, value in sorted(counted, reverse=True)[:VALUES_TRIED]:
            affected = listed["value", f"{parameter}={value}"]
            yield Rewrite(RewriteForm.VALUE, parameter, value), affected
    for name in [name for kind, name in listed if kind == "name"]:
        affected = listed["name", name]
        if len(_values_of(name, affected)) >= MANY_VALUES:
            yield Rewrite(RewriteForm.DROP, name), affected
    ending = [target for target in known if split_target(target)[0].endswith("/")]
    form = RewriteForm.SLASH if 2 * len(ending) > _folders(known) else RewriteForm.UNSLASH
    yield Rewrite(form), known
    for (one, other), affected in _alike(known, listed).items():
        yield Rewrite(RewriteForm.REPLACE, one, other), affected


_BY_FEATURE: Final = {
    "collapse": RewriteForm.COLLAPSE,
    "lower": RewriteForm.LOWER,
    "token": RewriteForm.TOKEN,
    "last": RewriteForm.LAST,
    "piece": RewriteForm.REMOVE,
    "mark": RewriteForm.CUT,
    "sort": RewriteForm.SORT,
}


def _folders(targets: Sequence[str]) -> int:
    """Return how many targets have a path that may end with a slash or not."""
    return sum("." not in split_target(one)[0].rpartition("/")[2] for one in targets)


def values_of(name: str, target: str) -> str:
    """Return the value of a parameter of a target; "" without one."""
    for item in split_target(target)[1].split("&"):
        found, _, value = item.partition("=")
        if found == name:
            return value
    return ""


def _values_of(name: str, targets: Iterable[str]) -> set[str]:
    return {values_of(name, target) for target in targets}


def _alike(
    known: Sequence[str], listed: dict[_Feature, list[str]]
) -> dict[tuple[str, str], list[str]]:
    """Return targets by the pair of segments of which the first may stand for the second.

    Both stand between the same neighbors in several targets; the second is the more frequent one.
    """
    between: dict[tuple[int, str, str], set[str]] = defaultdict(set)
    for target in known:
        path, query = split_target(target)
        segments = path.split("/")
        for at in range(1, min(PLACES + 1, len(segments) - 1)):
            key = (at, "/".join(segments[:at]), "/".join([*segments[at + 1 :], query]))
            if len(between[key]) <= MAX_ALIKE:
                between[key].add(segments[at])
    pairs: Counter[tuple[str, str]] = Counter()
    for segments_there in between.values():
        if 2 <= len(segments_there) <= MAX_ALIKE:
            ranked = sorted(
                segments_there, key=lambda one: (len(listed.get(("segment", one), ())), one)
            )
            other = ranked[-1]
            pairs.update(
                (one, other)
                for one in ranked[:-1]
                if one and other and one.lower() != other.lower()
            )
    return {
        pair: listed.get(("segment", pair[0]), [])
        for pair, count in pairs.most_common(MAX_LIKELY)
        if count >= LEAST_SUPPORT
    }
