"""Phase 2: the features of a pair of hosts, and their bins.

The five published features: `ndist` (edit distance of the names), `nmatch` (cosine of their
segments), `ip4` and `ip3` (1/(|G| − 1) if both are in the group G of hosts with that address, or
its first three octets), `fullpath` (cosine of their paths, weight 1 + log(maxdf/df), paths in more
than 100 hosts dropped). crawld adds: `links` (cosine of the hosts they link to, proposed as future
work), `equal` (share of the common paths under which the cleaned texts are equal), `declared`
(share of a host's pages that redirect to, or name as canonical, the same path of the other; the
greater of both directions), `certificate` (1/(names − 1) of a certificate that covers both).

Bins have equal width over a fixed range, with a separate bin for exactly zero. Bins of equal
frequency would lose nearly everything, since one pair in a hundred is a replica.

Source: Carvalho 2014, chapter 3; the bins were chosen with a prototype.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.candidates import LONGEST, comparable_signatures, without_trivial
from crawld.core.replica.hosts import (
    BIN_WORDS,
    NO_SIGNATURE,
    Hosts,
    Ids,
    Keys,
    distinct,
    pair_hosts,
)
from crawld.core.replica.identities import Identities, PairValues, network_of
from crawld.core.replica.names import NameTable, common_segments, edit_distance
from crawld.core.replica.vectors import (
    Commonness,
    Floats,
    Vectors,
    cosine,
    match_entries,
    numbered_vectors,
    weighted_vectors,
)

LINK_LONGEST = 1_000
"""A host linked from more hosts than this is no evidence (counters, social networks)."""


RESEMBLES = 0.5
"""From this resemblance on, two texts that differ agree in part."""


AGREES = 0.8
"""From this resemblance on, two texts that differ agree for the classifier's validation ..."""

MOST_EQUAL = 1
"""... if no more texts of both hosts are equal. A date or a counter is on all pages of a host, so
that none is equal; where many are, the others differ by what they say: prices of another country.
"""

SAMPLE_MASKS = (15, 3, 1)
"""Bits of a path's key that are 0 in a sample: a 16th, a quarter and half of the paths."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature and its bins.

    Attributes:
        most: upper end of its range; greater values go into the last bin.
        bins: bins of equal width above the one for exactly zero.
    """

    name: str
    most: float
    bins: int


FIVE = (
    Feature("ndist", 24.0, 8),
    Feature("nmatch", 1.0, 8),
    Feature("ip4", 1.0, 6),
    Feature("ip3", 1.0, 6),
    Feature("fullpath", 1.0, 10),
)
"""The published features."""

ALL = (
    *FIVE,
    Feature("links", 1.0, 3),
    Feature("equal", 1.0, 6),
    Feature("declared", 1.0, 2),
    Feature("certificate", 1.0, 2),
)
"""The published features and those that crawld adds."""


def discretise(features: Sequence[Feature], values: Floats) -> NDArray[np.int64]:
    """Return the bins, shape (pairs, features): 0 for a value of exactly 0, else 1 to `bins`."""
    most = np.array([feature.most for feature in features])
    bins = np.array([feature.bins for feature in features])
    inside = np.clip(np.ceil(values / most * bins), 1, bins).astype(np.int64)
    return np.where(values == 0, 0, inside)


class SharedContent(NamedTuple):
    """Counts of the common paths of two hosts and of their texts.

    Attributes:
        common: paths that both have, including the root.
        compared: common paths where both have a text.
        equal: compared paths where the cleaned texts, or the sketches of all visible text, are
            equal.
        partial: sum over the other compared paths of how far the texts resemble, each 0 to 1.
        expected: how many paths both would have if they were copies: the pages of the smaller host,
            or fewer if one was not crawled in full.
        weight: sum over the equal texts of 1/(1 + ln(hosts with the text − 1)): 1 for a text that
            only these two hosts show, .2 for one on fifty; and over the others of how far they
            resemble, each by the number of hosts whose texts resemble it.
        rare: of the paths that only these two hosts have, how many were compared.
        rare_equal: how many of those are equal.
        root: whether the texts of their root pages are equal or resemble: 1 or 0; -1: not
            compared.
        agreeing: compared paths where the texts are equal, or resemble by `AGREES` if at most
            `MOST_EQUAL` are equal ...
        telling: ... and the sum of these by the number of hosts whose texts resemble them.
        sampled: of the compared paths, how many are in each of the nested samples `SAMPLE_MASKS`,
            shape (pairs, samples).
        sample_agreeing: how many of those agree.
    """

    common: Ids
    compared: Ids
    equal: Ids
    expected: Floats
    partial: Floats
    weight: Floats
    rare: Ids
    rare_equal: Ids
    root: Ids
    agreeing: Ids
    telling: Floats
    sampled: Ids
    sample_agreeing: Ids


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Pairs and their feature values.

    Attributes:
        values: shape (pairs, 9), the columns of `ALL`.
        content: the counts behind `equal`.
    """

    keys: Ids
    values: Floats
    content: SharedContent

    def part(self, which: slice | Ids | NDArray[np.bool_]) -> PairFeatures:
        """Return some of the pairs, by their indices or by a mask."""
        content = SharedContent._make(column[which] for column in self.content)
        return PairFeatures(self.keys[which], self.values[which], content)

    @classmethod
    def joined(cls, parts: Sequence[PairFeatures]) -> PairFeatures:
        """Return the concatenation of one or more parts."""
        contents = zip(*(part.content for part in parts), strict=True)
        return cls(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.values for part in parts]),
            SharedContent._make(np.concatenate(columns) for columns in contents),
        )

    def bins(self, features: Sequence[Feature]) -> NDArray[np.int64]:
        """Return the bins of some of the features, shape (pairs, features)."""
        return discretise(features, self.columns(features))

    def columns(self, features: Sequence[Feature]) -> Floats:
        """Return the values of some of the features, shape (pairs, features)."""
        names = [feature.name for feature in ALL]
        return self.values[:, [names.index(feature.name) for feature in features]]


@dataclass(frozen=True, slots=True)
class Background:
    """How common values are among all hosts, counted at one time.

    With the same background, the features of a pair depend on its two hosts alone, so that only
    pairs of hosts that moved are measured again.

    Attributes:
        addresses, networks: number of hosts with each; an unknown one counts as two hosts.
    """

    paths: Commonness
    links: Commonness
    segments: Commonness
    addresses: Mapping[str, int]
    networks: Mapping[str, int]

    @classmethod
    def of(cls, hosts: Hosts) -> Background:
        """Count the values of some hosts."""
        return cls(
            Commonness.of(hosts.page_host, hosts.page_path, longest=LONGEST),
            Commonness.of(hosts.link_host, hosts.link_target, longest=LINK_LONGEST),
            common_segments(hosts.names),
            Counter(hosts.addresses),
            Counter(map(network_of, hosts.addresses)),
        )


@dataclass(frozen=True, slots=True)
class HostFeatures:
    """Prepared data of hosts, from which the features of any pairs are computed.

    Attributes:
        names, paths, links: their names and vectors.
        identities: what they are known by.
        page: host · 2³² + number of the path, ascending.
        path: key of that path.
        page_begin: where the pages of each host begin, one more than hosts.
        signature: key of its text, `NO_SIGNATURE` if there is none to compare.
        path_hosts: number of hosts with that path, at most 3.
        likeness: key of the sketch of its visible text; `NO_SIGNATURE`: none.
        bins: the beginning of that sketch, shape (pages, `BIN_WORDS`).
        text_hosts: number of hosts with that text or sketch, at most `LONGEST` + 1; 0: no text.
        like_hosts: the same of hosts with a text that resembles it, by its bins.
        is_root: whether it is a root page.
        pages: number of pages of each host ...
        known: ... and with those that were never visited.
        declared: share of the pages of one host that declare the other.
    """

    names: NameTable
    paths: Vectors
    links: Vectors
    identities: Identities
    page: Ids
    path: Keys
    page_begin: Ids
    signature: Keys
    likeness: Keys
    bins: Keys
    path_hosts: Ids
    text_hosts: Ids
    like_hosts: Ids
    is_root: NDArray[np.bool_]
    pages: Ids
    known: Ids
    declared: PairValues

    @classmethod
    def of(
        cls,
        hosts: Hosts,
        background: Background | None = None,
        names: NameTable | None = None,
        identities: Identities | None = None,
    ) -> HostFeatures:
        """Prepare the data of some hosts.

        Args:
            background: how common values are; None: counted among these hosts.
            names: the table of their names with that background, if it is known.
            identities: what they are known by, with that background, if it is known.
        """
        count, common = len(hosts), background or Background.of(hosts)
        paths, number = np.unique(hosts.page_path, return_inverse=True)
        entry = (hosts.page_host << 32) | number
        entry, at = np.unique(entry, return_index=True)
        pages = np.bincount(entry >> 32, minlength=count)
        signature = comparable_signatures(hosts)[at]
        likeness, bins = (column[at] for column in _sketches(hosts))
        text_hosts, like_hosts = (
            np.maximum.reduce([_text_hosts(entry >> 32, texts) for texts in kinds])
            for kinds in ((signature, likeness), tuple(bins.T))
        )
        return cls(
            names or NameTable.of(hosts.names, common.segments),
            numbered_vectors(
                entry >> 32, paths, entry & 0xFFFFFFFF, count, _rarity_weight, common.paths
            ),
            weighted_vectors(
                hosts.link_host, hosts.link_target, count, _rarity_weight, common.links
            ),
            identities or Identities.of(hosts, common.addresses, common.networks),
            entry,
            paths[entry & 0xFFFFFFFF],
            np.concatenate(([0], np.cumsum(pages))),
            signature,
            likeness,
            bins,
            np.minimum(np.bincount(entry & 0xFFFFFFFF, minlength=len(paths)), 3)[
                entry & 0xFFFFFFFF
            ],
            text_hosts,
            np.maximum(text_hosts, like_hosts),
            np.isin(paths, np.array(sorted(hosts.roots), dtype=np.uint64))[entry & 0xFFFFFFFF],
            pages,
            pages if hosts.unvisited is None else pages + hosts.unvisited,
            _declared(hosts, pages),
        )

    def pairs(self, keys: Ids) -> PairFeatures:
        """Return the features of some pairs."""
        one, other = pair_hosts(keys)
        content = self._content(one, other)
        equal = np.divide(
            content.equal, content.compared, out=np.zeros(len(keys)), where=content.compared > 0
        )
        columns = (
            edit_distance(self.names, one, other),
            cosine(self.names.segments, one, other),
            self.identities.addresses.similarity(one, other),
            self.identities.networks.similarity(one, other),
            cosine(self.paths, one, other),
            cosine(self.links, one, other),
            equal,
            self.declared.at(keys),
            self.identities.certified.at(keys),
        )
        return PairFeatures(keys, np.column_stack(columns).astype(np.float64), content)

    def twins(self, at: Ids, host: Ids) -> tuple[Ids, NDArray[np.bool_]]:
        """Return the page of another host with the path of each page, and whether it has one."""
        wanted = (self.page[at] & 0xFFFFFFFF) | (host << 32)
        found = np.minimum(np.searchsorted(self.page, wanted), len(self.page) - 1)
        return found, self.page[found] == wanted

    def resemble(self, at: Ids, other: Ids) -> NDArray[np.bool_]:
        """Return of which pages with a text the texts are equal or resemble by `RESEMBLES`."""
        compared, equal = self._same_texts(at, other)
        alike = _resemblance(self.bins[at], self.bins[other]) >= RESEMBLES
        found: NDArray[np.bool_] = compared & (equal | alike)
        return found

    def _same_texts(self, at: Ids, other: Ids) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return of which pages both have a text, and where these two would be equal."""
        first, second = self.signature[at], self.signature[other]
        like = (self.likeness[at] == self.likeness[other]) & (self.likeness[at] != NO_SIGNATURE)
        return (first != NO_SIGNATURE) & (second != NO_SIGNATURE), (first == second) | like

    def _content(self, one: Ids, other: Ids) -> SharedContent:
        pair, at, found, common = match_entries(self.page, self.page_begin, one, other)
        have_texts, same = self._same_texts(at, found)
        compared = common & have_texts
        equal = compared & same
        differ = np.flatnonzero(compared & ~equal)
        resembles = np.zeros(len(at))
        resembles[differ] = _resemblance(self.bins[at[differ]], self.bins[found[differ]])
        partial = np.clip((resembles - RESEMBLES) / (1.0 - RESEMBLES - 0.05), 0.0, 1.0)
        rare = compared & (self.path_hosts[at] == 2)
        rarity = _rarity(self.text_hosts[at])
        like_rarity = _rarity(np.maximum(self.like_hosts[at], self.like_hosts[found]))
        weights = np.where(equal, rarity, partial * like_rarity)
        root = np.full(len(one), -1, dtype=np.int64)
        is_root = compared & self.is_root[at]
        root[pair[is_root]] = (equal | (resembles >= RESEMBLES))[is_root]

        few_equal = np.bincount(pair[equal], minlength=len(one)) <= MOST_EQUAL
        agrees = equal | ((resembles >= AGREES) & few_equal[pair])
        samples = [(self.path[at] & np.uint64(mask)) == 0 for mask in SAMPLE_MASKS]

        def count(which: NDArray[np.bool_]) -> Ids:
            return np.bincount(pair[which], minlength=len(one))

        return SharedContent(
            common=count(common),
            compared=count(compared),
            equal=count(equal),
            expected=self.pages[one]
            * self.pages[other]
            / np.maximum(np.maximum(self.known[one], self.known[other]), 1),
            partial=np.bincount(pair, partial, minlength=len(one)).astype(np.float64),
            weight=np.bincount(pair, weights, minlength=len(one)).astype(np.float64),
            rare=count(rare),
            rare_equal=count(rare & equal),
            root=root,
            agreeing=count(agrees),
            telling=np.bincount(pair[agrees], like_rarity[agrees], minlength=len(one)).astype(
                np.float64
            ),
            sampled=np.column_stack([count(compared & inside) for inside in samples]),
            sample_agreeing=np.column_stack([count(agrees & inside) for inside in samples]),
        )


def _declared(hosts: Hosts, pages: Ids) -> PairValues:
    """Return the share of a host's pages that declare the other; the greater of both directions."""
    counts = {
        pair: max(hosts.redirects.get(pair, 0), hosts.canonicals.get(pair, 0))
        for pair in {*hosts.redirects, *hosts.canonicals}
    }
    return PairValues.of(
        (pair, min(1.0, count / many))
        for pair, count in counts.items()
        if (many := int(pages[pair[0]]))
    )


def _sketches(hosts: Hosts) -> tuple[Keys, Keys]:
    """Return the key and the bins of each page's sketch; 0 for those of its host's error page."""
    count = len(hosts.page_host)
    if hosts.page_likeness is None or hosts.page_bins is None:
        return np.zeros(count, dtype=np.uint64), np.zeros((count, BIN_WORDS), dtype=np.uint64)
    likeness = without_trivial(hosts.page_host, hosts.page_likeness)
    return likeness, np.where((likeness == NO_SIGNATURE)[:, None], np.uint64(0), hosts.page_bins)


def _resemblance(some: Keys, others: Keys) -> Floats:
    """Return the share of equal bins of the beginnings of two sketches; 0 without sketches."""
    one, other = (np.ascontiguousarray(bins).view(np.uint8) for bins in (some, others))
    used = (one != 0) | (other != 0)
    share: Floats = ((one == other) & used).sum(axis=1) / np.maximum(used.sum(axis=1), 1)
    return share


def _text_hosts(host: Ids, signature: Keys) -> Ids:
    """Return the number of hosts with each text, at most `LONGEST` + 1; 0 for no text."""
    values, number = np.unique(signature, return_inverse=True)
    entry = distinct((number << 32) | host)
    hosts = np.minimum(np.bincount(entry >> 32, minlength=len(values)), LONGEST + 1)
    return np.where(signature == NO_SIGNATURE, 0, hosts[number])


def _rarity(hosts: Ids) -> Floats:
    """Return how much an equal text proves, from the number of hosts that show it."""
    share: Floats = 1.0 / (1.0 + np.log(np.maximum(hosts - 1, 1)))
    return share


def _rarity_weight(_: Keys, df: Ids, most: int) -> Floats:
    weight: Floats = 1.0 + np.log(most / df)
    return weight
