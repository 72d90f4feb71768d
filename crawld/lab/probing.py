"""Measures the effect of probing: fetching first the pages that may decide undecided pairs.

A crawl knows more pages than it has fetched. The daemon first visits those that both hosts of an
undecided pair have: paths that one host has fetched and the other knows, then paths that both know.
All of them would be visited later anyway. This module does the same on a simulated web of replicas,
in rounds like the runs of the job; each round measures and scores all pairs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crawld.core.replica.features import HostFeatures
from crawld.core.replica.hosts import Hosts, Ids
from crawld.core.replica.verdict import PROBED_PATHS, is_undecided
from crawld.lab.replicas import Trial, evidence_of, gate_figures, has_evidence, judged_candidates
from crawld.simweb.replica_web import ReplicaWeb, UnfetchedPages

ROUNDS = 3


def probing_figures(trial: Trial) -> dict[str, float]:
    """Return the figures of pruning after some rounds, and the share of pages probed."""
    probed, pages = probe(trial)
    found = gate_figures(probed)
    return {
        "gated_recall_asked": found["gated_recall"],
        "false_prunings_asked": found["false_prunings"],
        "asked_share": pages / len(trial.web.hosts.page_host),
    }


def probe(trial: Trial, rounds: int = ROUNDS) -> tuple[Trial, int]:
    """Fetch more pages of undecided pairs, in some rounds; return the trial and their number."""
    before = len(trial.web.hosts.page_host)
    for _ in range(rounds):
        trial = _scored(trial, _pages_to_probe(trial))
    return trial, len(trial.web.hosts.page_host) - before


def _pages_to_probe(trial: Trial) -> Ids:
    """Return the indices of the unfetched pages to fetch, ascending."""
    web = trial.web
    known = _by_host(web.unfetched.host, web.unfetched.path.tolist(), len(web.hosts))
    fetched = _by_host(web.hosts.page_host, web.hosts.page_path.tolist(), len(web.hosts))
    gated, _ = judged_candidates(trial)
    wanted: set[int] = set()
    for at in np.flatnonzero(has_evidence(trial) & ~gated).tolist():
        if is_undecided(evidence_of(trial, at)):
            key = int(trial.sets.candidates.keys[at])
            one, other = key >> 32, key & 0xFFFFFFFF
            wanted.update(_pages_of_pair(known[one], fetched[one], known[other], fetched[other]))
    return np.array(sorted(wanted), dtype=np.int64)


def _pages_of_pair(
    known: dict[int, int],
    fetched: dict[int, int],
    known_there: dict[int, int],
    fetched_there: dict[int, int],
) -> list[int]:
    """Return indices of pages of either host, up to the limit for one pair and round."""
    here = [place for path, place in known.items() if path in fetched_there]
    there = [place for path, place in known_there.items() if path in fetched]
    both = [
        page
        for path, place in known.items()
        if path in known_there
        for page in (place, known_there[path])
    ]
    return [*here[:PROBED_PATHS], *there[:PROBED_PATHS], *both][: 2 * PROBED_PATHS]


def _by_host(host: Ids, paths: Sequence[int], count: int) -> list[dict[int, int]]:
    """Return for each host its paths, and the index of each."""
    found: list[dict[int, int]] = [{} for _ in range(count)]
    for place, (owner, path) in enumerate(zip(host.tolist(), paths, strict=True)):
        found[owner][path] = place
    return found


def _scored(trial: Trial, wanted: Ids) -> Trial:
    web = _with_pages(trial.web, wanted)
    measured = HostFeatures.of(web.hosts).pairs(trial.sets.candidates.keys)
    scores = {name: model.judge(measured) for name, model in trial.models.items()}
    return replace(trial, web=web, sets=replace(trial.sets, candidates=measured), scores=scores)


def _with_pages(web: ReplicaWeb, wanted: Ids) -> ReplicaWeb:
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
