"""`crawld bench replica`: quality and speed of replica detection, against NormPaths and B-SVM.

Three webs of 21,500 hosts, five seeds each; all methods rank the same candidates. `auc_pnu`,
`auc_pu`, `auc_nu` and `auc_upper` use all features, those with `_five` the five published ones;
`auc_probability` ranks by probability. `_asked` is after more pages were fetched for undecided
pairs. The job in a daemon of 2,000 hosts is measured once (`job_`; `without_job` is the same daemon
without it). The job also runs through 60 simulated days on each web and on that of look-alikes
(`replica_rounds`): `resting_differing_pages`, `wrong_verdicts_per_1000`, `requests_saved_share` of
what can be saved on copies, `calibration_error_max` and more. The CPU time of the job at 20,000
hosts is measured once (`replica_cost`): `first_run_cpu_s`, `later_run_cpu_s` after 3,000 visits and
more. The baseline `em_recount` runs the same EM over pairs and recounts all rules at each label
change.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crawld.bench.process import program_error, run_child
from crawld.bench.replica_job import JobScenario, measure_job
from crawld.bench.replica_rounds.rounds_metrics import DAYS, HOSTS, planned_runs, rounds_metrics
from crawld.bench.replica_svm import biased_svm
from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.core.replica.em import TrainingVectors, em_passes, run_em
from crawld.core.replica.features import ALL, FIVE, HostFeatures
from crawld.core.replica.hosts import Ids
from crawld.core.replica.lac import Rules
from crawld.core.replica.learning import ReplicaModel, TrainingPairs, distinct_vectors
from crawld.core.replica.verdict import PairEvidence, looks_like_replica
from crawld.lab.probing import probing_figures
from crawld.lab.replicas import Trial, accuracy, run_trial
from crawld.simweb.replica_parameters import WEBS

SEEDS = (0, 1, 2, 3, 4)
_PAGES, _HOSTS = 5_000_000, 200_000
_COST_HOSTS = 20_000
_RECOUNTED_PAIRS = 200_000
_CHILD_LIMIT_S = 1_200.0
_WORST_COUNTS = ("false_prunings",)
"""Metrics of which the worst run is reported."""


def run(
    *,
    quick: bool,
    progress: Progress,
    hosts: int | None = None,
    days: float | None = None,
    seed: Sequence[int] | None = None,
) -> dict[str, object]:
    """Run the benchmark.

    Args:
        hosts: of the webs through which the job runs; given this or `days`, it does nothing else.
        days: simulated days.
        seed: numbers from which the webs are made.
    """
    chosen = tuple(seed or (SEEDS[:1] if quick else SEEDS))
    rounds = rounds_metrics(
        planned_runs(hosts or HOSTS, days or DAYS, chosen, quick=quick), progress
    )
    if hosts is not None or days is not None:
        return build_result("replica", [rounds])
    ours: list[Metrics] = [rounds]
    found: dict[str, list[Metrics]] = {"normpaths": [], "b_svm": [], "em_recount": []}
    sizes = (_PAGES // 10, _HOSTS // 10) if quick else (_PAGES, _HOSTS)
    for number in chosen:
        metrics: Metrics = {}
        normpaths: Metrics = {}
        svm: Metrics = {}
        for name, parameters in WEBS.items():
            if quick and name != "standard":
                continue
            progress(f"seed {number}: {name} web")
            trial = run_trial(parameters, number)
            figures = accuracy(trial) | probing_figures(trial)
            auc = figures.pop("auc_normpaths")
            for suffix in ("", "_five"):
                normpaths[f"auc_pnu{suffix}_{name}"] = auc
            metrics |= {f"{key}_{name}": value for key, value in figures.items()}
            progress(f"seed {number}: B-SVM on the {name} web")
            for suffix, features in (("", ALL), ("_five", FIVE)):
                svm[f"auc_pnu{suffix}_{name}"] = trial.auc(biased_svm(trial.sets, features, number))
            if name == "standard":
                progress(f"seed {number}: time of EM, of a label change and of a pair")
                metrics |= _measure_em(trial.sets) | _measure_pair(trial)
                found["em_recount"].append(_measure_recount(trial.sets))
        progress(f"seed {number}: candidates of many pages")
        metrics |= _measure_candidates(*sizes)
        ours.append(metrics)
        found["normpaths"].append(normpaths)
        found["b_svm"].append(svm)
    scenario = JobScenario(hosts=300, window_s=5.0) if quick else JobScenario()
    job, without_job = measure_job(scenario, progress)
    ours.append({f"job_{name}": value for name, value in job.items()})
    cost_hosts = _COST_HOSTS // 20 if quick else _COST_HOSTS
    progress(f"CPU time of the job at {cost_hosts:,} hosts")
    ours.append(_printed("replica_cost", str(cost_hosts))[0])
    found["without_job"] = [{f"job_first_{name}": value for name, value in without_job.items()}]
    value = build_result("replica", ours, found)
    _report_worst(value, ours)
    return value


def _report_worst(value: dict[str, object], runs: list[Metrics]) -> None:
    """Report the worst run instead of the median where a single bad run matters."""
    medians = value["ours"]
    if isinstance(medians, dict):
        for name in medians:
            if name.startswith(_WORST_COUNTS):
                medians[name] = max(run[name] for run in runs if name in run)


def _trainings(sets: TrainingPairs, *, five: bool) -> tuple[TrainingVectors, TrainingVectors]:
    vectors, certain, unlabelled, negatives = distinct_vectors(sets, FIVE if five else ALL)
    return (
        TrainingVectors(vectors.vectors, certain, unlabelled, positive=True),
        TrainingVectors(vectors.vectors, negatives, unlabelled, positive=False),
    )


def _measure_em(sets: TrainingPairs) -> Metrics:
    """Return the seconds of PU and NU learning together, for both feature sets."""
    metrics: Metrics = {}
    for five, suffix in ((True, ""), (False, "_all_features")):
        trainings = _trainings(sets, five=five)
        began_s = time.perf_counter()
        for training in trainings:
            run_em(training)
        metrics[f"em{suffix}_s"] = time.perf_counter() - began_s
        metrics[f"em{suffix}_vectors"] = float(len(trainings[0].certain))
    return metrics


def _measure_recount(sets: TrainingPairs) -> Metrics:
    """Return the seconds of EM and of a label change if each change recounts all rules.

    Uses a sample of the pairs; everything else is the same as in crawld.
    """
    em_s, recounts, recount_s = 0.0, 0, 0.0
    for training in _trainings(sets, five=True):
        vectors = np.repeat(np.arange(len(training.certain)), training.unlabelled)
        vectors = np.random.default_rng(0).permutation(vectors)[:_RECOUNTED_PAIRS]
        rules = Rules(training.vectors)
        flipped = np.zeros(len(training.certain), dtype=bool)
        began_s = time.perf_counter()
        for state in em_passes(training):
            for vector in np.flatnonzero(state.flipped & ~flipped).tolist():
                flipped[vector] = True
                since = time.perf_counter()
                _count_all(rules, vectors, flipped[vectors])
                recount_s += time.perf_counter() - since
                recounts += 1
        em_s += time.perf_counter() - began_s
    return {"label_change_us": recount_s / max(1, recounts) * 1e6, "em_s": em_s}


def _count_all(rules: Rules, vectors: Ids, labels: np.ndarray) -> None:
    """Recount all rules over all pairs."""
    rules.positive = np.bincount(rules.table[vectors[labels]].ravel(), minlength=len(rules.keys))
    rules.total = np.bincount(rules.table[vectors].ravel(), minlength=len(rules.keys))


def _measure_pair(trial: Trial) -> Metrics:
    """Return the cost of one pair online (measure, score, judge) and of one label change."""
    measure = HostFeatures.of(trial.web.hosts)
    model: ReplicaModel = trial.models["all"]
    keys = np.random.default_rng(0).choice(trial.sets.candidates.keys, 200)
    began_s = time.perf_counter()
    for key in keys:
        measured = measure.pairs(np.array([key]))
        scores = model.judge(measured)
        names = trial.web.hosts.names[int(key) >> 32], trial.web.hosts.names[int(key) & 0xFFFFFFFF]
        content = measured.content
        looks_like_replica(
            PairEvidence(
                names=names,
                pages=(int(content.expected[0]), int(content.expected[0])),
                common=int(content.common[0]),
                compared=int(content.compared[0]),
                equal=int(content.equal[0]),
                probability=float(scores.probability[0]),
            )
        )
    pair_ms = (time.perf_counter() - began_s) / len(keys) * 1e3
    rules = model.positive_rules
    began_s = time.perf_counter()
    for at in range(10_000):
        rules.add_positive(at % len(rules.table), 1)
    change_us = (time.perf_counter() - began_s) / 10_000 * 1e6
    return {"pair_ms": pair_ms, "label_change_us": change_us}


def _measure_candidates(pages: int, hosts: int) -> Metrics:
    metrics, peak_mb = _printed("replica_scale", str(pages), str(hosts))
    return metrics | {"candidates_peak_mb": peak_mb}


def _printed(module: str, *arguments: str) -> tuple[Metrics, float]:
    """Return the metrics that a module of this package prints, and the peak of its memory, MB."""
    command = [sys.executable, "-m", f"crawld.bench.{module}", *arguments]
    with tempfile.TemporaryDirectory() as folder, run_child(command, Path(folder)) as child:
        usage = child.wait(_CHILD_LIMIT_S)
        if usage.exit_code:
            raise program_error(module, f"ended with {usage.exit_code}", child)
        printed = json.loads(child.output().splitlines()[-1])
    return {name: float(value) for name, value in printed.items()}, usage.peak_rss_mb
