"""Pairs of hosts with their evidence, made from measured pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.features import ALL, HostFeatures, PairFeatures, SharedContent
from crawld.core.replica.hosts import Ids, pair_hosts
from crawld.core.replica.owners import without_port
from crawld.core.replica.vectors import Floats
from crawld.core.replica.verdict import (
    LEAST_WEIGHT,
    PROBED_EQUAL,
    PROBED_PROBABILITY,
    PairEvidence,
    is_undecided,
    shares_pages,
)
from crawld.core.url import registrable_domain
from crawld.store.replica.inputs import SourceHost

Counts = Mapping[tuple[int, int], int]
"""Counts of pages by (from, to) host numbers."""

STORED_PROBABILITY: Final = 0.3
"""Pairs of at least this probability are stored even without other evidence."""

_NAMES: Final = [feature.name for feature in ALL]
_DECLARED, _CERTIFICATE = _NAMES.index("declared"), _NAMES.index("certificate")


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair that promises to be replicas: host numbers, evidence and features.

    Attributes:
        is_kept: whether it has enough evidence to be stored.
        is_undecided: whether more pages may decide it.
    """

    one_id: int
    other_id: int
    evidence: PairEvidence
    features: dict[str, float]
    is_kept: bool
    is_undecided: bool

    @classmethod
    def of(
        cls, pair: tuple[int, int], evidence: PairEvidence, features: dict[str, float]
    ) -> JudgedPair:
        """Judge a pair."""
        probable = (evidence.probability or 0.0) >= STORED_PROBABILITY
        is_declared = any((*evidence.redirects, *evidence.canonicals))
        shown = evidence.alike >= LEAST_WEIGHT or shares_pages(evidence)
        is_kept = probable or shown or is_declared
        return cls(*pair, evidence, features, is_kept, is_undecided(evidence))


def undecided_pairs(pairs: Iterable[JudgedPair]) -> list[tuple[int, int]]:
    """Return the pairs that more pages may decide, most probable first."""
    left = [pair for pair in pairs if pair.is_undecided]
    left.sort(key=lambda pair: (-(pair.evidence.probability or 0.0), pair.one_id, pair.other_id))
    return [(pair.one_id, pair.other_id) for pair in left]


def judge_pairs(
    hosts: Sequence[SourceHost],
    measure: HostFeatures,
    measured: PairFeatures,
    probability: Floats | None,
    listed: NDArray[np.bool_],
    declared: tuple[Counts, Counts],
) -> list[JudgedPair]:
    """Return the pairs that promise to be replicas.

    Args:
        hosts: in the order of `measure`.
        listed: which pairs the lists of candidates hold; the others need equal texts.
        probability: NaN where nothing is known; None: of no pair.
        declared: redirects and canonical links.
    """
    content, values = measured.content, measured.values
    alike = content.equal + content.partial
    worth = (alike >= PROBED_EQUAL) | (values[:, _DECLARED] > 0)
    few = ~worth & (alike >= 1.0)
    # Of hosts of one owner a few equal texts are enough to compare their pages.
    worth[few] = _of_one_domain(hosts, measured.keys[few])
    if probability is not None:
        worth |= listed & (probability >= PROBED_PROBABILITY)
    found = []
    for known in _columns(measure, measured, probability, np.flatnonzero(worth)):
        one, other = hosts[known.one], hosts[known.other]
        there, back = (one.server_id, other.server_id), (other.server_id, one.server_id)
        redirects, canonicals = ((kind.get(there, 0), kind.get(back, 0)) for kind in declared)
        evidence = PairEvidence(
            names=(one.host, other.host),
            pages=(known.one_pages, known.other_pages),
            common=known.common,
            compared=known.compared,
            equal=known.equal,
            weight=known.weight,
            partial=known.partial,
            rare=(known.rare, known.rare_equal),
            root=None if known.root < 0 else bool(known.root),
            redirects=redirects,
            canonicals=canonicals,
            same_address=one.address is not None and one.address == other.address,
            same_certificate=bool(known.values[_CERTIFICATE]),
            probability=None if isnan(known.probability) else known.probability,
        )
        features = dict(zip(_NAMES, known.values, strict=True))
        found.append(JudgedPair.of(there, evidence, features))
    return found


def _of_one_domain(hosts: Sequence[SourceHost], keys: Ids) -> list[bool]:
    """Return which of some pairs, by index, have names under one registrable domain."""
    domains = {
        at: registrable_domain(without_port(hosts[at].host))
        for side in pair_hosts(keys)
        for at in set(side.tolist())
    }
    return [
        domains[one] == domains[other]
        for one, other in zip(*(side.tolist() for side in pair_hosts(keys)), strict=True)
    ]


class _Columns(NamedTuple):
    """The numbers of a pair, as Python's; see `PairFeatures` and `PairEvidence`.

    Attributes:
        one, other: indexes of the hosts.
        probability: NaN where nothing is known.
    """

    one: int
    other: int
    one_pages: int
    other_pages: int
    common: int
    compared: int
    equal: int
    weight: float
    partial: float
    rare: int
    rare_equal: int
    root: int
    probability: float
    values: list[float]


def _columns(
    measure: HostFeatures, measured: PairFeatures, probability: Floats | None, at: Ids
) -> Iterator[_Columns]:
    """Yield the numbers of some pairs; converted together, which takes a fifth of the time."""
    one, other = pair_hosts(measured.keys[at])
    content = SharedContent._make(column[at] for column in measured.content)
    known = np.full(len(at), np.nan) if probability is None else probability[at]
    columns = (
        *(one, other, measure.pages[one], measure.pages[other]),
        *(content.common, content.compared, content.equal),
        *(content.weight.round(3), content.partial.round(3)),
        *(content.rare, content.rare_equal, content.root, known.round(3)),
        measured.values[at].round(4),
    )
    return map(_Columns._make, zip(*(column.tolist() for column in columns), strict=True))
