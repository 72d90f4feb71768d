"""SVG plots of experiments: one line per policy or contender; bounds are dashed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from crawld.errors import OperatorError
from crawld.extras import install_command

_STYLES = ("o-", "s-", "^-", "D-", "v-", "P-", "X-", "<-", ">-", "*-", "h-")
_BOUNDS = ("bound", "unpolite", "POLITE", "UNPOLITE", "OPT_POLITE")


@contextmanager
def _pyplot() -> Iterator[Any]:
    """Yield matplotlib's pyplot, set up for SVG.

    Text is not converted to paths and ids are fixed, so that a new plot differs only with its data.

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

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "crawld"}):
        yield plt


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
    with _pyplot() as plt:
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
        _write(plt, figure, path)


def plot_panels(
    x: Sequence[float],
    panels: Sequence[tuple[str, Sequence[float]]],
    path: Path,
    *,
    x_label: str,
    settled: float,
) -> None:
    """Plot values over one axis, a panel with its title for each, and write them as SVG.

    Args:
        settled: place on the axis from which on the values count; a line marks it.

    Raises:
        OperatorError: matplotlib is not installed.
    """
    with _pyplot() as plt:
        figure, axes = plt.subplots(
            len(panels), 1, sharex=True, figsize=(8.5, 1.6 * len(panels)), layout="constrained"
        )
        for each, (title, values) in zip(axes, panels, strict=True):
            each.plot(x, values, linewidth=1.2)
            each.axvline(settled, linestyle="--", linewidth=0.8)
            each.set_title(title, fontsize="small", loc="left")
            each.set_ylim(bottom=0)
            each.grid(visible=True, alpha=0.3)
        axes[-1].set_xlabel(x_label)
        _write(plt, figure, path)


class EventRow(NamedTuple):
    """What a row of `plot_events` shows.

    Attributes:
        name: at its left.
        ticks: times of its events.
        spans: begin and end of periods, shaded.
    """

    name: str
    ticks: Sequence[float]
    spans: Sequence[tuple[float, float]]


def plot_events(
    rows: Sequence[EventRow],
    path: Path,
    *,
    title: str,
    x_label: str,
    until: float,
    marks: Mapping[str, Sequence[float]],
) -> None:
    """Plot events over time, a row for each of their origins, and write them as SVG.

    Args:
        until: end of the axis, which begins at 0.
        marks: times of what concerns all rows, by its name; lines across them.

    Raises:
        OperatorError: matplotlib is not installed.
    """
    with _pyplot() as plt:
        figure, axes = plt.subplots(figsize=(8.5, 1.0 + 0.35 * len(rows)), layout="constrained")
        axes.eventplot([row.ticks for row in rows], linelengths=0.6, linewidths=0.6, colors="C0")
        for place, row in enumerate(rows):
            spans = [(begin, end - begin) for begin, end in row.spans]
            axes.broken_barh(spans, (place - 0.45, 0.9), facecolors="C1", alpha=0.3)
        for number, (name, times) in enumerate(marks.items()):
            for each in times:
                axes.axvline(each, color=f"C{number + 2}", linewidth=0.9, label=name)
                name = "_"  # once in the legend
        axes.set_yticks(range(len(rows)), [row.name for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, until)
        axes.set_xlabel(x_label)
        axes.set_title(title, fontsize="medium")
        if any(marks.values()):
            figure.legend(fontsize="small", loc="outside lower center", ncols=len(marks))
        _write(plt, figure, path)


def _write(plt: Any, figure: Any, path: Path) -> None:  # noqa: ANN401 (matplotlib is optional)
    """Write a figure as SVG and close it."""
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)


def _number(value: object) -> float:
    return float(str(value))
