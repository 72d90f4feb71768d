"""The tables of the replica experiment, as Markdown, from trials on several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crawld.lab.probing import probing_figures
from crawld.lab.replicas import (
    CROWD_SIZES,
    DRAWS,
    FALSE_RATES,
    Trial,
    accuracy,
    compared_scores,
    detection,
    leave_one_out,
    reliability,
    run_trial,
    single_features,
    url_reduction,
    variants,
)
from crawld.simweb.replica_parameters import WebParameters

Table = dict[str, Any]


def report(
    parameters: WebParameters, seeds: Sequence[int], progress: Callable[[str], None]
) -> Table:
    """Return all tables of one web as JSON types: means over the seeds."""
    figures: list[Table] = []
    for seed in seeds:
        progress(f"{parameters.name} web, seed {seed}")
        trial = run_trial(parameters, seed)
        figures.append(_figures(trial, seed))
    means = {name: _mean([one[name] for one in figures]) for name in figures[0]}
    return {"web": parameters.name, "seeds": list(seeds), "draws": DRAWS * len(seeds), **means}


def as_markdown(table: Table) -> str:
    """Return the tables of one web as Markdown."""
    lines = [f"## The {table['web']} web, seeds {', '.join(map(str, table['seeds']))}", ""]
    lines += ["| measure | mean |", "|---|---|"]
    lines += [f"| {name} | {_text(value)} |" for name, value in table["accuracy"].items()]
    for title, name in (
        ("PU with one feature", "single"),
        ("PU without one of the five", "without"),
        ("No EM, one alpha for all, five features", "variants"),
    ):
        lines += ["", f"### {title}", "", "| | AUC |", "|---|---|"]
        lines += [f"| {key} | {_text(value)} |" for key, value in table[name].items()]
    lines += ["", f"### Detection: mean of 1/rank, {table['draws']} draws", ""]
    lines += ["| | " + " | ".join(f"k = {among:,}" for among in CROWD_SIZES) + " |"]
    lines += ["|---" * (len(CROWD_SIZES) + 1) + "|"]
    lines += [
        f"| {who} | " + " | ".join(f"{mean:.4f} ± {half:.4f}" for mean, half in row) + " |"
        for who, row in table["detection"].items()
    ]
    lines += ["", "### Pages saved of all pages fetched, by false-positive rate", ""]
    lines += ["| | " + " | ".join(f"{rate:g}" for rate in FALSE_RATES) + " |"]
    lines += ["|---" * (len(FALSE_RATES) + 1) + "|"]
    lines += [
        f"| {who} | " + " | ".join(f"{value:.3f}" for value in row) + " |"
        for who, row in table["reduction"].items()
    ]
    lines += ["", "### Probability and truth", "", "| probability | pairs | mean | replicas |"]
    lines += ["|---|---|---|---|"]
    lines += [
        f"| {edge} | {count:.0f} | {mean:.3f} | {share:.3f} |"
        for edge, (count, mean, share) in table["reliability"].items()
    ]
    return "\n".join(lines)


def _figures(trial: Trial, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    scores = compared_scores(trial)
    return {
        "accuracy": {
            "candidates": float(len(trial.truth)),
            "replicas among them": float(trial.truth.sum()),
            "obvious positives": float(trial.sets.obvious.sum()),
            "of those replicas": float(trial.truth[trial.sets.obvious].mean()),
            **accuracy(trial),
            **probing_figures(trial),
        },
        "single": single_features(trial),
        "without": leave_one_out(trial),
        "variants": variants(trial),
        "detection": {
            who: [list(detection(trial, score, among, rng)) for among in CROWD_SIZES]
            for who, score in scores.items()
        },
        "reduction": {
            who: [url_reduction(trial, score, rate) for rate in FALSE_RATES]
            for who, score in scores.items()
        },
        "reliability": {edge: list(row) for edge, row in reliability(trial).items()},
    }


def _mean(values: Sequence[Any]) -> object:
    """Return the mean of values of equal shape; a missing key is averaged over the others."""
    if isinstance(values[0], dict):
        names = dict.fromkeys(name for value in values for name in value)
        return {name: _mean([value[name] for value in values if name in value]) for name in names}
    if isinstance(values[0], list):
        return [_mean(column) for column in zip(*values, strict=True)]
    return float(np.mean(values))


def _text(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.4f}"
