"""The results of experiments as one Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from crawld.lab.catalogue import Experiment

_MOST_ROWS: Final = 60

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Finished:
    """An experiment that has run.

    Attributes:
        experiment: which one.
        command: the command line.
        seconds: of CPU time that it took.
        result: what it wrote, of JSON types.
        has_plot: whether it drew a plot, `NAME.svg`.
    """

    experiment: Experiment
    command: str
    seconds: float
    result: object
    has_plot: bool


def as_markdown(finished: Iterable[Finished], *, heading: str) -> str:
    """Return a page with the command, the published relation and the rows of each experiment."""
    return "\n\n".join([f"# {heading}", *map(_section, finished)]) + "\n"


def _section(done: Finished) -> str:
    parts = [
        f"## {done.experiment.title}",
        f"    {done.command}",
        f"Published: {done.experiment.published}. Took {done.seconds:.0f} s of CPU time.",
    ]
    rows = rows_of(done.result)
    if rows:
        parts.append(_table(done.experiment.columns, rows[:_MOST_ROWS]))
    if len(rows) > _MOST_ROWS:
        parts.append(f"{len(rows) - _MOST_ROWS} more rows are in `{done.experiment.name}.json`.")
    if done.has_plot:
        parts.append(f"![{done.experiment.title}]({done.experiment.name}.svg)")
    return "\n\n".join(parts)


def rows_of(result: object) -> list[Row]:
    """Return the rows of a result: its list, its `rows`, or the result itself as the only row."""
    if isinstance(result, list):
        return [_flat(row) for row in result]
    if isinstance(result, dict):
        rows = result.get("means") or result.get("rows")
        return [_flat(row) for row in rows] if isinstance(rows, list) else [_flat(result)]
    return []


def _flat(row: object) -> Row:
    """Return a row with the values of the mappings in it as its own."""
    flat: dict[str, object] = {}
    if isinstance(row, dict):
        for name, value in row.items():
            flat.update(value if isinstance(value, dict) else {name: value})
    return flat


def _table(columns: Sequence[str], rows: Sequence[Row]) -> str:
    shown = [column for column in columns if any(column in row for row in rows)]
    lines = [shown, ["---"] * len(shown)]
    lines += [[_cell(row.get(column)) for column in shown] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)
