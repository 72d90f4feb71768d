"""SVG plots of experiments: one line per policy or contender; bounds are dashed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    lines = dict.fromkeys(str(row[name]) for row in rows)
    plot_lines(
        rows,
        path,
        name=name,
        x=x,
        x_label=x_label,
        y="freshness",
        y_label="freshness",
        title=title,
        dashed=[line for line in lines if any(word in line for word in _BOUNDS)],
    )


def plot_lines(
    rows: Sequence[Mapping[str, object]],
    path: Path,
    *,
    name: str,
    x: str,
    x_label: str,
    y: str,
    y_label: str,
    title: str,
    dashed: Collection[str] = (),
    logarithmic: bool = False,
) -> None:
    """Plot one value over another, a line for each name, and write it as SVG.

    Args:
        rows: each with `name`, `x` and `y`.
        name: key that distinguishes the lines.
        x: key of the horizontal axis.
        y: key of the vertical axis.
        dashed: names whose lines are dashed.
        logarithmic: whether both axes are.

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
            points = sorted((_number(row[x]), _number(row[y])) for row in rows if row[name] == line)
            style = "--" if line in dashed else _STYLES[index % len(_STYLES)]
            axes.plot(*zip(*points, strict=True), style, label=line, markersize=5, linewidth=1.4)
        axes.set(xlabel=x_label, ylabel=y_label, title=title)
        if logarithmic:
            axes.set(xscale="log", yscale="log")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(loc="best", fontsize="small")
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def _number(value: object) -> float:
    return float(str(value))
