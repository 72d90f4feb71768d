"""What it brings to ask undecided pairs for more pages before anything else.

A crawl has met more pages than it has fetched. The daemon visits those first that two undecided
hosts both have: paths that one has shown and the other has met, then paths that both have met. No
request is made that would not have been made later. Here the same is done to a web of replicas,
round by round as the job runs, and everything is measured and judged anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crawld.core.replica.features import HostFeatures
from crawld.core.replica.hosts import Hosts, Ids
from crawld.core.replica.verdict import PROBED_PATHS, is_undecided
from crawld.lab.replicas import Trial, evidence_of, gate_figures, gated_candidates, has_evidence
from crawld.simweb.replica_web import ReplicaWeb, UnfetchedPages

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class ProbedTrial:
    """The same trial after some rounds.

    Attributes:
        trial: with the pages asked for.
        pages: how many those were.
    """

    trial: Trial
    pages: int


def probing_figures(trial: Trial) -> dict[str, float]:
    """Return what pruning would do after some rounds, and the share of pages asked for so."""
    asked = probe(trial)
    found = gate_figures(asked.trial)
    return {
        "gated_recall_asked": found["gated_recall"],
        "false_prunings_asked": found["false_prunings"],
        "asked_share": asked.pages / len(trial.web.hosts.page_host),
    }


def probe(trial: Trial, rounds: int = ROUNDS) -> ProbedTrial:
    """Ask undecided pairs for more pages, some rounds."""
    before = len(trial.web.hosts.page_host)
    for _ in range(rounds):
        trial = _judged(trial, _wanted(trial))
    return ProbedTrial(trial, len(trial.web.hosts.page_host) - before)


def _wanted(trial: Trial) -> Ids:
    """Return the places of the unfetched pages to ask for, ascending."""
    web = trial.web
    met = _by_host(web.unfetched.host, web.unfetched.path.tolist(), len(web.hosts))
    shown = _by_host(web.hosts.page_host, web.hosts.page_path.tolist(), len(web.hosts))
    gated = gated_candidates(trial)
    wanted: set[int] = set()
    for at in np.flatnonzero(has_evidence(trial) & ~gated).tolist():
        if is_undecided(evidence_of(trial, at)):
            key = int(trial.sets.candidates.keys[at])
            one, other = key >> 32, key & 0xFFFFFFFF
            wanted.update(_of_pair(met[one], shown[one], met[other], shown[other]))
    return np.array(sorted(wanted), dtype=np.int64)


def _of_pair(
    met: dict[int, int],
    shown: dict[int, int],
    met_there: dict[int, int],
    shown_there: dict[int, int],
) -> list[int]:
    """Return places of pages of either host, as many as one pair may ask for at a time."""
    here = [place for path, place in met.items() if path in shown_there]
    there = [place for path, place in met_there.items() if path in shown]
    both = [
        page
        for path, place in met.items()
        if path in met_there
        for page in (place, met_there[path])
    ]
    return [*here[:PROBED_PATHS], *there[:PROBED_PATHS], *both][: 2 * PROBED_PATHS]


def _by_host(host: Ids, paths: Sequence[int], count: int) -> list[dict[int, int]]:
    """Return for each host its paths, and the place of each."""
    found: list[dict[int, int]] = [{} for _ in range(count)]
    for place, (owner, path) in enumerate(zip(host.tolist(), paths, strict=True)):
        found[owner][path] = place
    return found


def _judged(trial: Trial, wanted: Ids) -> Trial:
    web = _fetched(trial.web, wanted)
    measured = HostFeatures.of(web.hosts).pairs(trial.sets.candidates.keys)
    scores = {name: model.judge(measured) for name, model in trial.models.items()}
    return replace(trial, web=web, sets=replace(trial.sets, candidates=measured), scores=scores)


def _fetched(web: ReplicaWeb, wanted: Ids) -> ReplicaWeb:
    hosts, rest = web.hosts, web.unfetched
    left = np.ones(len(rest.host), dtype=bool)
    left[wanted] = False
    more: Hosts = replace(
        hosts,
        page_host=np.concatenate((hosts.page_host, rest.host[wanted])),
        page_path=np.concatenate((hosts.page_path, rest.path[wanted])),
        page_signature=np.concatenate((hosts.page_signature, rest.signature[wanted])),
    )
    return replace(
        web,
        hosts=more,
        unfetched=UnfetchedPages(rest.host[left], rest.path[left], rest.signature[left]),
    )
