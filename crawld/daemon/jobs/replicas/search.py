"""In-memory search for replicated hosts: finds candidate pairs among pages and judges them.

Derived state: all pages are read once after a start, later only those that visits or the analysis
added. Only pairs whose evidence moved are judged again. `judge` runs in a worker thread; nothing
here waits or uses the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from crawld.core.content.fingerprint import cleaned_digest
from crawld.core.replica.candidates import CandidateIndex
from crawld.core.replica.features import ALL, Background, HostFeatures, PairFeatures
from crawld.core.replica.held_out import TEXT, HeldOut
from crawld.core.replica.hosts import (
    NO_SIGNATURE,
    Hosts,
    Ids,
    Keys,
    location_key,
    pair_hosts,
    pair_keys,
    places,
    signature_key,
    sketch_keys,
    with_values,
)
from crawld.core.replica.identities import Identities
from crawld.core.replica.learning import (
    ReplicaModel,
    TrainingPairs,
    obvious_negatives,
    obvious_positives,
    train,
)
from crawld.core.replica.measured import Declared, HostStates, MeasuredPairs
from crawld.core.replica.moved_hosts import HostPrints
from crawld.core.replica.names import NameTable, registered_label
from crawld.core.replica.near_names import name_order, near_pairs
from crawld.core.replica.page_table import PageColumns, PageTable
from crawld.core.replica.vectors import Floats
from crawld.core.url import server_name, target_of
from crawld.daemon.jobs.replicas.judged import Counts, JudgedPair, judge_pairs, undecided_pairs
from crawld.store.replica.inputs import FetchedPage, Redirect, SourceHost

PAIR_BUDGET: Final = 2_000_000
"""Most candidate pairs in memory."""

SLICE: Final = 20_000
"""Pairs measured in one step."""

GROWTH: Final = 1.1
"""The classifier is trained again when the pages or the candidates have grown by this factor, or
when as large a share of the pages has other texts."""

BATCH: Final = 100_000
"""Pages added to the index in one step."""

SEED: Final = 7

_EMPTY: Final = cleaned_digest("")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of judging all pairs.

    Attributes:
        pairs: pairs with enough evidence to be stored.
        promising: these and others that more pages may decide.
        candidates: number of pairs that share something.
        dropped: pairs left out because `PAIR_BUDGET` was exhausted.
        undecided: pairs that more pages may decide, most probable first.
        judged: how many pairs were judged in this search; the others did not move.
        evidence: what the probabilities come from; None: there are none, for lack of pairs to
            learn from.
        passes: EM passes of the training; 0: not trained this time.
    """

    pairs: list[JudgedPair]
    promising: list[JudgedPair]
    hosts: int
    candidates: int
    dropped: int
    undecided: list[tuple[int, int]]
    judged: int
    evidence: str | None
    passes: int


@dataclass(frozen=True, slots=True)
class _Epoch:
    """What stays the same between two trainings, and the size of the mirror at the last one."""

    background: Background
    pages: int
    candidates: int


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of all hosts: their features, and their neighbours by name."""

    names: tuple[str, ...]
    table: NameTable
    order: tuple[Ids, Ids]

    @classmethod
    def of(cls, names: tuple[str, ...], background: Background) -> _Names:
        labels = [registered_label(name) for name in names]
        return cls(names, NameTable.of(names, background.segments), name_order(names, labels))


class ReplicaSearch:
    """Index of fetched pages that finds and judges candidate pairs.

    Pairs are measured and judged again if a host of theirs moved, or a page that both have
    (`core/replica/moved_hosts.py`), or if they are declared otherwise than before. How common
    values are is counted when the classifier is trained and then used for every pair, so that a
    result does not depend on which pairs were judged when.
    """

    def __init__(self) -> None:
        self._index = CandidateIndex(pair_budget=PAIR_BUDGET)
        self._table = PageTable()
        self._replaced = 0
        self._recopied: set[int] = set()
        self._linked_from: dict[int, set[int]] = {}
        self._links: dict[int, Keys] = {}
        self._roots: set[int] = set()
        self._epoch: _Epoch | None = None
        self._names: _Names | None = None
        self._identities: Identities | None = None
        self._measured: MeasuredPairs | None = None
        self._promising: dict[int, JudgedPair] = {}
        self._model: ReplicaModel | None = None
        self._held_out: HeldOut | None = None

    @property
    def pages(self) -> int:
        """How many pages are known."""
        return len(self._table.pages.page_id)

    def add(self, pages: Sequence[FetchedPage]) -> None:
        """Add pages that were fetched or analysed; a page replaces its earlier state."""
        if not pages:
            return
        keys = np.array([sketch_keys(page.sketch) for page in pages], dtype=np.uint64)
        self._table.add(
            PageColumns(
                np.array([page.page_id for page in pages], dtype=np.int64),
                np.array([page.server_id for page in pages], dtype=np.int64),
                np.array([self._location(page.url) for page in pages], dtype=np.uint64),
                np.array([_signature(page.cleaned_digest) for page in pages], dtype=np.uint64),
                keys[:, 0],
                keys[:, 1:],
                np.array([page.last_visit_at for page in pages]),
                np.array([page.version_id or 0 for page in pages], dtype=np.int64),
            )
        )
        for page in pages:
            source = page.referrer_host_id
            if source is not None and source != page.server_id:
                self._linked_from.setdefault(page.server_id, set()).add(source)

    def _location(self, url: str) -> int:
        """Return the key of where a page is; remember that of a root page."""
        key = location_key(url)
        if target_of(url) == "/":
            self._roots.add(key)
        return key

    def set_links(self, links: Mapping[int, Keys]) -> None:
        """Set the keys of the host names that each of some hosts links to."""
        self._links.update(links)

    def linking_hosts(self, server_id: int) -> frozenset[int]:
        """Return the other hosts on which links to a host were found first."""
        return frozenset(self._linked_from.get(server_id, ()))

    def suspects(self, redirects: Iterable[tuple[int, int]] = ()) -> list[int]:
        """Return hosts of candidate pairs with new copies since they were last returned."""
        self._merge()
        one, other = pair_hosts(self._index.candidates().keys)
        named = np.array([host for pair in redirects for host in pair], dtype=np.int64)
        moved = np.array(sorted(self._recopied), dtype=np.int64)
        suspects: list[int] = moved[np.isin(moved, np.concatenate((one, other, named)))].tolist()
        self._recopied.difference_update(suspects)
        return suspects

    def judge(
        self,
        hosts: Sequence[SourceHost],
        redirects: Counts,
        canonicals: Counts,
        *,
        stale_before: Mapping[int, float],
        stored: Collection[tuple[int, int]] = (),
    ) -> SearchResult:
        """Judge every pair that moved; runs in a worker thread.

        Args:
            hosts: all hosts, in order of their numbers.
            redirects: (from, to) host numbers to the count of pages that redirect to the same path.
            canonicals: the same for canonical links.
            stale_before: by host number, a time before which its content is ignored, since a
                verdict on it was withdrawn.
            stored: pairs that are judged even if no list holds them any more.
        """
        self._merge()
        ids = np.array([host.server_id for host in hosts], dtype=np.int64)
        known = self._hosts(hosts, ids, redirects, canonicals, stale_before)
        begins, background = self._background(known)
        if self._names is None or begins or self._names.names != known.names:
            self._names = _Names.of(known.names, background)
        self._identities = Identities.of(
            known, background.addresses, background.networks, None if begins else self._identities
        )
        measure = HostFeatures.of(known, background, self._names.table, self._identities)
        states = HostStates(
            HostPrints.of(ids, known, measure), _declared_counts(redirects, canonicals)
        )
        found = self._index.candidates()
        keys = self._pairs_of(found.keys, states, measure, stored)
        listed = places(found.keys, keys) >= 0
        before = None if begins else self._measured
        clean = np.zeros(len(keys), dtype=bool)
        if before is not None:
            clean = before.unmoved(states, measure, keys, listed)
        fresh = _measure(measure, _to_indexes(keys[~clean], ids))
        passes = self._train(measure, fresh.part(listed), known.names, ids) if begins else 0
        probability = self._probability(fresh)
        judged = judge_pairs(
            hosts, measure, fresh, probability, listed[~clean], (redirects, canonicals)
        )
        features, probabilities = fresh, probability
        if before is not None:
            features, carried = before.carried(keys, clean, fresh)
            if probability is not None:
                carried[~clean] = probability
                probabilities = carried
        features = replace(features, keys=keys)
        self._measured = MeasuredPairs(states, features, probabilities, listed)
        self._keep(keys[clean], judged)
        promising = [self._promising[key] for key in sorted(self._promising)]
        pairs = [pair for pair in promising if pair.is_kept]
        return SearchResult(
            pairs,
            promising,
            len(hosts),
            len(found.keys),
            found.dropped,
            undecided_pairs(promising),
            int((~clean).sum()),
            self._held_out.evidence if self._held_out else None,
            passes,
        )

    def _merge(self) -> None:
        """Merge added pages into the table and the index."""
        listed, replaced, recopied = self._table.merge()
        self._replaced += replaced
        self._recopied.update(recopied.tolist())
        self._add_to_index(listed)

    def _add_to_index(self, pages: PageColumns) -> None:
        for begin in range(0, len(pages.page_id), BATCH):
            part = pages.at(np.arange(begin, min(begin + BATCH, len(pages.page_id))))
            self._index.add(part.host_id, part.path, part.signature)

    def _background(self, known: Hosts) -> tuple[bool, Background]:
        """Return whether an epoch begins, and its background; the index is then built again."""
        epoch, candidates = self._epoch, len(self._index.candidates().keys)
        if (
            epoch is not None
            and self.pages < GROWTH * max(epoch.pages, 1)
            and candidates < GROWTH * max(epoch.candidates, 1)
            and self._replaced < (GROWTH - 1.0) * max(epoch.pages, 1)
        ):
            return False, epoch.background
        if self._replaced:
            # The lists still have the texts that were replaced.
            self._index, self._replaced = CandidateIndex(pair_budget=PAIR_BUDGET), 0
            self._add_to_index(self._table.pages)
            candidates = len(self._index.candidates().keys)
        self._epoch = _Epoch(Background.of(known), self.pages, candidates)
        return True, self._epoch.background

    def _pairs_of(
        self,
        candidates: Ids,
        states: HostStates,
        measure: HostFeatures,
        stored: Collection[tuple[int, int]],
    ) -> Ids:
        """Return the keys of all pairs to judge, by host numbers, ascending."""
        assert self._names is not None
        near = near_pairs(self._names.order, measure.page_begin, measure.path, measure.signature)
        one, other = (states.ids[side] for side in pair_hosts(near))
        declared = np.fromiter(states.declared, np.int64, len(states.declared))
        held = np.array([min(pair) << 32 | max(pair) for pair in stored], dtype=np.int64)
        keys = with_values(candidates, np.concatenate((pair_keys(one, other), declared, held)))
        one, other = pair_hosts(keys)
        return keys[(places(states.ids, one) >= 0) & (places(states.ids, other) >= 0)]

    def _keep(self, clean: Ids, judged: Sequence[JudgedPair]) -> None:
        """Keep the promising pairs that did not move, and those of this search."""
        held = np.fromiter(self._promising, np.int64, len(self._promising))
        stays = held[places(clean, held) >= 0].tolist()
        self._promising = {key: self._promising[key] for key in stays}
        for pair in judged:
            self._promising[pair.one_id << 32 | pair.other_id] = pair

    def _probability(self, measured: PairFeatures) -> Floats | None:
        """Return the probability of each pair, NaN where nothing is known; None without any."""
        held_out, model = self._held_out, self._model
        if held_out is None or model is None:
            return None
        # All pairs at once: many have equal features, which are scored once.
        name = held_out.evidence
        scores = {} if name == TEXT else {name: model.scores(measured, name)}
        return held_out.probability(measured, scores)

    def _scores(self, measured: PairFeatures) -> dict[str, Floats]:
        """Return the scores of pairs by each classifier; none before one is trained."""
        return self._model.judge(measured).by_name() if self._model is not None else {}

    def _hosts(
        self,
        hosts: Sequence[SourceHost],
        ids: Ids,
        redirects: Counts,
        canonicals: Counts,
        stale_before: Mapping[int, float],
    ) -> Hosts:
        pages = self._table.pages
        host_index = places(ids, pages.host_id)
        known = host_index >= 0
        host_index = host_index[known]
        numbers = ids.tolist()
        limit = np.array([stale_before.get(number, 0.0) for number in numbers])
        fresh = pages.visited_at[known] >= limit[host_index]
        at = dict(zip(numbers, range(len(numbers)), strict=True))
        link_host = places(ids, np.fromiter(self._links, np.int64, len(self._links)))
        linked = [
            keys
            for keys, host in zip(self._links.values(), link_host.tolist(), strict=True)
            if host >= 0
        ]
        return Hosts(
            names=tuple(host.host for host in hosts),
            addresses=tuple(host.address or "" for host in hosts),
            page_host=host_index,
            page_path=pages.path[known],
            page_signature=np.where(fresh, pages.signature[known], NO_SIGNATURE),
            page_likeness=np.where(fresh, pages.likeness[known], NO_SIGNATURE),
            page_bins=pages.bins[known],
            link_host=np.repeat(link_host[link_host >= 0], list(map(len, linked))),
            link_target=np.concatenate([np.zeros(0, np.uint64), *linked]),
            redirects=_by_index(redirects, at),
            canonicals=_by_index(canonicals, at),
            certificates=_certificates(hosts),
            roots=frozenset(self._roots),
            unvisited=np.array([host.unvisited for host in hosts], dtype=np.int64),
        )

    def _train(
        self, measure: HostFeatures, candidates: PairFeatures, names: Sequence[str], ids: Ids
    ) -> int:
        pairs = obvious_negatives(self._index, SEED)
        one, other = pair_hosts(pairs)
        pairs = pairs[(places(ids, one) >= 0) & (places(ids, other) >= 0)]
        negatives = _measure(measure, _to_indexes(pairs, ids))
        sets = TrainingPairs(candidates, obvious_positives(names, candidates), negatives)
        self._model = train(sets, ALL) if sets.enough else None
        self._held_out = HeldOut.of(candidates, self._scores) if self._model else None
        return self._model.passes if self._model else 0


def _declared_counts(redirects: Counts, canonicals: Counts) -> Declared:
    """Return the counts by pair key, in both directions."""
    pairs = {(min(pair), max(pair)) for pair in {*redirects, *canonicals} if pair[0] != pair[1]}
    return {
        one << 32 | other: (
            redirects.get((one, other), 0),
            redirects.get((other, one), 0),
            canonicals.get((one, other), 0),
            canonicals.get((other, one), 0),
        )
        for one, other in sorted(pairs)
    }


def _certificates(hosts: Iterable[SourceHost]) -> tuple[frozenset[str], ...]:
    """Return the names on the certificate of each host; most have none, or one of many."""
    names: dict[str | None, frozenset[str]] = {}
    for host in hosts:
        if host.certificate not in names:
            names[host.certificate] = frozenset((host.certificate or "").split())
    return tuple(names[host.certificate] for host in hosts)


def _signature(digest: bytes | None) -> int:
    return signature_key(digest) if digest is not None and digest != _EMPTY else 0


def _to_indexes(keys: Ids, ids: Ids) -> Ids:
    """Convert ascending pairs of host numbers to ascending pairs of indexes."""
    one, other = pair_hosts(keys)
    return pair_keys(places(ids, one), places(ids, other))


def _by_index(
    pairs: Mapping[tuple[int, int], int], at: Mapping[int, int]
) -> dict[tuple[int, int], int]:
    return {(at[a], at[b]): count for (a, b), count in pairs.items() if a in at and b in at}


def _measure(measure: HostFeatures, keys: Ids) -> PairFeatures:
    parts = [measure.pairs(keys[begin : begin + SLICE]) for begin in range(0, len(keys), SLICE)]
    return PairFeatures.joined(parts) if parts else measure.pairs(keys)


def same_path_redirects(
    redirects: Iterable[Redirect], server_ids: Mapping[str, int]
) -> dict[tuple[int, int], int]:
    """Count pages that redirect to the same path of another server, by (from, to) numbers."""
    counts: dict[tuple[int, int], int] = {}
    for server_id, url, target in redirects:
        to = server_ids.get(server_name(target))
        if to is not None and to != server_id and target_of(target) == target_of(url):
            counts[server_id, to] = counts.get((server_id, to), 0) + 1
    return counts
