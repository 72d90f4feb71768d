"""In-memory search for replicated hosts: finds candidate pairs among pages and judges them.

Derived state: all pages are read once after a start, later only those that visits or the analysis
added. `judge` runs in a worker thread; nothing here waits or uses the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crawld.core.content.fingerprint import cleaned_digest
from crawld.core.replica.candidates import CandidateIndex
from crawld.core.replica.features import ALL, HostFeatures, PairFeatures
from crawld.core.replica.hosts import (
    Hosts,
    Ids,
    Keys,
    pair_hosts,
    pair_keys,
    path_key,
    signature_key,
)
from crawld.core.replica.learning import (
    ReplicaModel,
    TrainingPairs,
    obvious_negatives,
    obvious_positives,
    train,
)
from crawld.core.replica.vectors import Floats
from crawld.core.replica.verdict import (
    CONTRADICTED_COMPARED,
    CONTRADICTED_SHARE,
    LEAST_WEIGHT,
    PROBED_EQUAL,
    PROBED_PROBABILITY,
    PairEvidence,
    is_undecided,
)
from crawld.core.url import split_url, target_of
from crawld.store.replica.inputs import FetchedPage, Redirect, SourceHost

PAIR_BUDGET: Final = 2_000_000
"""Most candidate pairs in memory."""

SLICE: Final = 20_000
"""Pairs measured in one step."""

GROWTH: Final = 1.1
"""The classifier is trained again when the candidates have grown by this factor."""

STORED_PROBABILITY: Final = 0.3
"""Pairs of at least this probability are stored even without other evidence."""

SEED: Final = 7

_EMPTY: Final = cleaned_digest("")


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair to store: host numbers, evidence and features."""

    one_id: int
    other_id: int
    evidence: PairEvidence
    features: dict[str, float]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of judging all pairs.

    Attributes:
        candidates: number of pairs that share something.
        dropped: pairs left out because `PAIR_BUDGET` was exhausted.
        contradictions: pairs among these hosts that were compared and differ.
        undecided: pairs that more pages may decide, most probable first.
        trained: whether a classifier was used; without one, conservative rules decide.
        passes: EM passes of the training; 0: not trained this time.
    """

    pairs: list[JudgedPair]
    hosts: int
    candidates: int
    dropped: int
    contradictions: list[tuple[int, int]]
    undecided: list[tuple[int, int]]
    trained: bool
    passes: int


class ReplicaSearch:
    """Index of fetched pages that finds and judges candidate pairs."""

    def __init__(self) -> None:
        self._index = CandidateIndex(pair_budget=PAIR_BUDGET)
        self._parts: list[tuple[Ids, Ids, Keys, Keys, np.ndarray]] = []
        self._linked_from: dict[int, set[int]] = {}
        self._model: ReplicaModel | None = None
        self._trained_on = 0
        self.pages = 0

    def add(self, pages: Sequence[FetchedPage]) -> None:
        """Add pages that were fetched or analysed; a page replaces its earlier state."""
        if not pages:
            return
        part = (
            np.array([page.page_id for page in pages], dtype=np.int64),
            np.array([page.host_id for page in pages], dtype=np.int64),
            np.array([path_key(target_of(page.url)) for page in pages], dtype=np.uint64),
            np.array([_signature(page.cleaned_digest) for page in pages], dtype=np.uint64),
            np.array([page.last_visit_at for page in pages]),
        )
        self._parts.append(part)
        self._index.add(part[1], part[2], part[3])
        for page in pages:
            source = page.referrer_host_id
            if source is not None and source != page.host_id:
                self._linked_from.setdefault(page.host_id, set()).add(source)
        self.pages += len(pages)

    def inlinks(self, host_id: int, but: Collection[int]) -> int:
        """Return the number of other hosts that link to a host, without those in `but`."""
        return len(self._linked_from.get(host_id, set()).difference(but))

    def suspects(self, redirects: Iterable[tuple[int, int]] = ()) -> list[int]:
        """Return the hosts of all candidate pairs: only their canonical links matter."""
        one, other = pair_hosts(self._index.candidates().keys)
        named = np.array([host for pair in redirects for host in pair], dtype=np.int64)
        suspects: list[int] = np.unique(np.concatenate((one, other, named))).tolist()
        return suspects

    def judge(
        self,
        hosts: Sequence[SourceHost],
        redirects: Mapping[tuple[int, int], int],
        canonicals: Mapping[tuple[int, int], int],
        *,
        stale_before: Mapping[int, float],
    ) -> SearchResult:
        """Judge every pair; runs in a worker thread.

        Args:
            hosts: all hosts, in order of their numbers.
            redirects: (from, to) host numbers to the count of pages that redirect to the same path.
            canonicals: the same for canonical links.
            stale_before: by host number, a time before which its content is ignored, since a
                verdict on it was withdrawn.
        """
        ids = np.array([host.host_id for host in hosts], dtype=np.int64)
        measure = HostFeatures.of(self._hosts(hosts, ids, redirects, canonicals, stale_before))
        found = self._index.candidates()
        declared = np.array(
            [
                min(pair) << 32 | max(pair)
                for pair in {*redirects, *canonicals}
                if pair[0] != pair[1]
            ],
            dtype=np.int64,
        )
        measured = _measure(measure, _to_indexes(np.union1d(found.keys, declared), ids))
        passes = self._train(measure, measured, hosts, ids)
        probability = self._probability(measured)
        promising = _promising(hosts, measure, measured, probability, (redirects, canonicals))
        pairs = [pair for pair in promising if _worth_keeping(pair.evidence)]
        return SearchResult(
            pairs,
            len(hosts),
            len(found.keys),
            found.dropped,
            _contradictions(pairs, measured, ids),
            _undecided(promising),
            self._model is not None,
            passes,
        )

    def _probability(self, measured: PairFeatures) -> Floats | None:
        """Return the probability of each pair, None without a classifier."""
        model, count = self._model, len(measured.keys)
        if model is None:
            return None
        parts = [
            model.judge(measured.part(begin, begin + SLICE)).probability
            for begin in range(0, count, SLICE)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _hosts(
        self,
        hosts: Sequence[SourceHost],
        ids: Ids,
        redirects: Mapping[tuple[int, int], int],
        canonicals: Mapping[tuple[int, int], int],
        stale_before: Mapping[int, float],
    ) -> Hosts:
        _, host_id, path, signature, visited_at = self._compact()
        known = np.isin(host_id, ids)
        limit = np.array([stale_before.get(number, 0.0) for number in ids.tolist()])
        host_index = np.searchsorted(ids, host_id[known])
        fresh = visited_at[known] >= limit[host_index]
        at = {number: index for index, number in enumerate(ids.tolist())}
        links = [
            (at[source], to)
            for to, sources in sorted(self._linked_from.items())
            for source in sorted(sources)
            if source in at
        ]
        return Hosts(
            names=tuple(host.host for host in hosts),
            addresses=tuple(host.address or "" for host in hosts),
            page_host=host_index,
            page_path=path[known],
            page_signature=np.where(fresh, signature[known], np.uint64(0)),
            link_host=np.array([a for a, _ in links], dtype=np.int64),
            link_target=np.array([b for _, b in links], dtype=np.uint64),
            redirects=_by_index(redirects, at),
            canonicals=_by_index(canonicals, at),
            certificates=tuple(frozenset((host.certificate or "").split()) for host in hosts),
        )

    def _compact(self) -> tuple[Ids, Ids, Keys, Keys, np.ndarray]:
        """Merge the parts; the last state of each page counts."""
        if not self._parts:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none.astype(np.uint64), none.astype(np.uint64), np.zeros(0)
        page_id, host_id, path, signature, visited_at = (
            np.concatenate(columns) for columns in zip(*self._parts, strict=True)
        )
        last = len(page_id) - 1 - np.unique(page_id[::-1], return_index=True)[1]
        whole = (page_id[last], host_id[last], path[last], signature[last], visited_at[last])
        self._parts = [whole]
        return whole

    def _train(
        self, measure: HostFeatures, measured: PairFeatures, hosts: Sequence[SourceHost], ids: Ids
    ) -> int:
        if self._model is not None and len(measured.keys) < GROWTH * self._trained_on:
            return 0
        negatives = _measure(measure, _to_indexes(obvious_negatives(self._index, SEED), ids))
        names = [host.host for host in hosts]
        sets = TrainingPairs(measured, obvious_positives(names, measured), negatives)
        if not sets.enough:
            return 0
        self._model, self._trained_on = train(sets, ALL), len(measured.keys)
        return self._model.passes


def _signature(digest: bytes | None) -> int:
    return signature_key(digest) if digest is not None and digest != _EMPTY else 0


def _to_indexes(keys: Ids, ids: Ids) -> Ids:
    """Convert pairs of host numbers to pairs of indexes; drop unknown hosts."""
    one, other = pair_hosts(keys)
    known = np.isin(one, ids) & np.isin(other, ids)
    return np.unique(
        pair_keys(np.searchsorted(ids, one[known]), np.searchsorted(ids, other[known]))
    )


def _by_index(
    pairs: Mapping[tuple[int, int], int], at: Mapping[int, int]
) -> dict[tuple[int, int], int]:
    return {(at[a], at[b]): count for (a, b), count in pairs.items() if a in at and b in at}


def _measure(measure: HostFeatures, keys: Ids) -> PairFeatures:
    parts = [measure.pairs(keys[begin : begin + SLICE]) for begin in range(0, len(keys), SLICE)]
    return PairFeatures.joined(parts) if parts else measure.pairs(keys)


def _worth_keeping(evidence: PairEvidence) -> bool:
    """Whether a pair has enough evidence to be stored."""
    declared = (*evidence.redirects, *evidence.canonicals)
    probable = (evidence.probability or 0.0) >= STORED_PROBABILITY
    return probable or evidence.equal >= LEAST_WEIGHT or any(declared)


def _undecided(pairs: Sequence[JudgedPair]) -> list[tuple[int, int]]:
    left = [pair for pair in pairs if is_undecided(pair.evidence)]
    left.sort(key=lambda pair: (-(pair.evidence.probability or 0.0), pair.one_id, pair.other_id))
    return [(pair.one_id, pair.other_id) for pair in left]


def _promising(
    hosts: Sequence[SourceHost],
    measure: HostFeatures,
    measured: PairFeatures,
    probability: Floats | None,
    declared: tuple[Mapping[tuple[int, int], int], Mapping[tuple[int, int], int]],
) -> list[JudgedPair]:
    content, values = measured.content, measured.values
    names = [feature.name for feature in ALL]
    worth = (content.equal >= PROBED_EQUAL) | (values[:, names.index("declared")] > 0)
    if probability is not None:
        worth |= probability >= PROBED_PROBABILITY
    found = []
    for at in np.flatnonzero(worth).tolist():
        a, b = int(measured.keys[at]) >> 32, int(measured.keys[at]) & 0xFFFFFFFF
        one, other = hosts[a], hosts[b]
        there, back = (one.host_id, other.host_id), (other.host_id, one.host_id)
        redirects, canonicals = ((kind.get(there, 0), kind.get(back, 0)) for kind in declared)
        evidence = PairEvidence(
            names=(one.host, other.host),
            pages=(int(measure.pages[a]), int(measure.pages[b])),
            common=int(content.common[at]),
            compared=int(content.compared[at]),
            equal=int(content.equal[at]),
            redirects=redirects,
            canonicals=canonicals,
            same_address=one.address is not None and one.address == other.address,
            same_certificate=bool(values[at, names.index("certificate")]),
            probability=None if probability is None else float(probability[at]),
        )
        features = dict(zip(names, values[at].round(4).tolist(), strict=True))
        found.append(JudgedPair(*there, evidence, features))
    return found


def _contradictions(
    pairs: Sequence[JudgedPair], measured: PairFeatures, ids: Ids
) -> list[tuple[int, int]]:
    """Return pairs among the hosts of `pairs` that were compared and differ."""
    content = measured.content
    differ = content.compared >= CONTRADICTED_COMPARED
    differ &= content.equal <= CONTRADICTED_SHARE * content.compared
    one, other = (ids[side] for side in pair_hosts(measured.keys[differ]))
    named = np.array([[pair.one_id, pair.other_id] for pair in pairs], dtype=np.int64).ravel()
    both = np.isin(one, named) & np.isin(other, named)
    declared = {
        (pair.one_id, pair.other_id)
        for pair in pairs
        if pair.evidence.declares(0) or pair.evidence.declares(1)
    }
    found = zip(one[both].tolist(), other[both].tolist(), strict=True)
    return [pair for pair in found if pair not in declared]


def same_path_redirects(
    redirects: Iterable[Redirect], host_ids: Mapping[str, int]
) -> dict[tuple[int, int], int]:
    """Count pages that redirect to the same path of another host, by (from, to) host numbers."""
    counts: dict[tuple[int, int], int] = {}
    for host_id, url, target in redirects:
        to = host_ids.get(split_url(target).host)
        if to is not None and to != host_id and target_of(target) == target_of(url):
            counts[host_id, to] = counts.get((host_id, to), 0) + 1
    return counts
