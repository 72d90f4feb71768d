"""The tables of the replica experiment, as Markdown, from trials on several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crawld.lab.probing import probing_figures
from crawld.lab.replica_folds import (
    FALSE_RATE_GRID,
    RECALL_GRID,
    collection,
    fold_areas,
    folds_of,
    held_out_upper,
    precision_points,
    roc_points,
    scarce_negatives,
    signed_rank_test,
)
from crawld.lab.replicas import (
    CROWD_SIZES,
    DRAWS,
    FALSE_RATES,
    FEATURE_SETS,
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
    lines += _rows("The collection", ("",), {k: [v] for k, v in table["collection"].items()})
    for title, name in (("One feature", "single"), ("Without one of the five", "without")):
        lines += _rows(title, ("PU", "NU"), table[name])
    variants = {key: [value] for key, value in table["variants"].items()}
    lines += _rows("No EM, one alpha for all, five features", ("AUC",), variants)
    lines += _rows(
        "Ten folds: area, standard deviation, Wilcoxon's test against PNU",
        ("mean", "deviation", "p"),
        table["folds"],
    )
    false_rates = [f"false positives {rate:g}" for rate in FALSE_RATE_GRID]
    lines += _rows("ROC: share of replicas found", false_rates, table["roc"])
    recalls = [f"recall {recall:g}" for recall in RECALL_GRID]
    lines += _rows("Precision", recalls, table["precision"])
    lines += _rows(
        "NU with a share of the obvious negatives",
        ("negatives", "NU", "PNU", "others left positive"),
        table["scarce"],
    )
    lines += ["", f"### Detection: mean of 1/rank, {table['draws']} draws", ""]
    lines += ["| | " + " | ".join(f"k = {among:,}" for among in CROWD_SIZES) + " |"]
    lines += ["|---" * (len(CROWD_SIZES) + 1) + "|"]
    lines += [
        f"| {who} | " + " | ".join(f"{mean:.4f} ± {half:.4f}" for mean, half in row) + " |"
        for who, row in table["detection"].items()
    ]
    of = [f"of {what}, {rate:g}" for what in ("all", "compared") for rate in FALSE_RATES]
    lines += _rows("Pages saved, by false-positive rate", of, table["reduction"])
    lines += ["", "### Probability and truth", "", "| probability | pairs | mean | replicas |"]
    lines += ["|---|---|---|---|"]
    lines += [
        f"| {edge} | {count:.0f} | {mean:.3f} | {share:.3f} |"
        for edge, (count, mean, share) in table["reliability"].items()
    ]
    return "\n".join(lines)


def _rows(title: str, columns: Sequence[str], rows: dict[str, list[float]]) -> list[str]:
    """Return a table with a line for each key."""
    head = ["", f"### {title}", "", "| | " + " | ".join(columns) + " |"]
    head.append("|---" * (len(columns) + 1) + "|")
    return head + [
        f"| {key} | " + " | ".join(_text(value) for value in row) + " |"
        for key, row in rows.items()
    ]


def _figures(trial: Trial, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    scores = compared_scores(trial)
    fold = folds_of(trial, seed)
    held_out = {name: held_out_upper(trial, each, fold) for name, each in FEATURE_SETS.items()}
    areas = {who: fold_areas(trial, score, fold) for who, score in scores.items()}
    areas["upper, held out"] = fold_areas(trial, held_out["five"], fold)
    return {
        "collection": collection(trial),
        "accuracy": {
            "candidates": float(len(trial.truth)),
            "replicas among them": float(trial.truth.sum()),
            "obvious positives": float(trial.sets.obvious.sum()),
            "of those replicas": float(trial.truth[trial.sets.obvious].mean()),
            **accuracy(trial),
            **probing_figures(trial),
            "auc_upper_five_held_out": trial.auc(held_out["five"]),
            "auc_upper_held_out": trial.auc(held_out["all"]),
        },
        "folds": {
            who: [
                float(np.mean(row)),
                float(np.std(row, ddof=1)),
                1.0 if who == "PNU" else signed_rank_test(row, areas["PNU"]),
            ]
            for who, row in areas.items()
        },
        "roc": {who: roc_points(trial, score) for who, score in scores.items()},
        "precision": {who: precision_points(trial, score) for who, score in scores.items()},
        "scarce": {share: list(row) for share, row in scarce_negatives(trial, seed).items()},
        "single": single_features(trial),
        "without": leave_one_out(trial),
        "variants": variants(trial),
        "detection": {
            who: [list(detection(trial, score, among, rng)) for among in CROWD_SIZES]
            for who, score in scores.items()
        },
        "reduction": {
            who: [
                url_reduction(trial, score, rate, of_compared=compared)
                for compared in (False, True)
                for rate in FALSE_RATES
            ]
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
