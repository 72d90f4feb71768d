"""SVG plots of experiments: freshness over bandwidth, one line per policy, bounds dashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from crawld.errors import OperatorError
from crawld.extras import install_command

_STYLES = ("o-", "s-", "^-", "D-", "v-", "P-", "X-", "<-", ">-", "*-", "h-")
_BOUNDS = ("bound", "unpolite", "POLITE", "UNPOLITE", "OPT_POLITE")


def plot_freshness(
    rows: Sequence[Mapping[str, object]],
    path: Path,
    *,
    x: str,
    x_label: str,
    title: str,
    name: str = "policy",
) -> None:
    """Plot freshness over a budget and write it as SVG.

    Args:
        rows: each with `name`, `x` and `freshness`.
        x: key of the horizontal axis.
        name: key that distinguishes the lines.

    Raises:
        OperatorError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise OperatorError(
            "plots need matplotlib, which is not installed", hint=install_command("lab")
        ) from error
    mpl.use("svg")
    from matplotlib import pyplot as plt

    # Text is not converted to paths and ids are fixed, so that a new plot differs only with its
    # data.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "crawld"}):
        figure, axes = plt.subplots(figsize=(8.5, 5.5), layout="constrained")
        for index, line in enumerate(dict.fromkeys(str(row[name]) for row in rows)):
            points = sorted(
                (_number(row[x]), _number(row["freshness"])) for row in rows if row[name] == line
            )
            bound = any(word in line for word in _BOUNDS)
            style = "--" if bound else _STYLES[index % len(_STYLES)]
            axes.plot(*zip(*points, strict=True), style, label=line, markersize=5, linewidth=1.4)
        axes.set(xlabel=x_label, ylabel="freshness", title=title)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(loc="best", fontsize="small")
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def _number(value: object) -> float:
    return float(str(value))
