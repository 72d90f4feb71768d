"""Progress and result files of `crawld lab`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from crawld.errors import OperatorError

if TYPE_CHECKING:
    from crawld.lab.scenario import Scenario


def progress() -> Progress:
    """Return a bar on stderr that vanishes at its end."""
    return Progress(
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def period_text(scenario: Scenario) -> str:
    """Return what a simulation scores: a period with few of the changes tells little."""
    first, last = (
        datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
        for at in (scenario.start, scenario.end)
    )
    known = int(scenario.histories.before(scenario.start).changed_at.size)
    return (
        f"scores {scenario.changes:,} changes of {scenario.pages:,} pages from {first} to {last};"
        f" {known:,} changes before are known to the policies (--from, --duration)"
    )


def chosen_names(given: str, known: Iterable[str], what: str, also: str = "") -> list[str]:
    """Return the names of a comma-separated option.

    Args:
        what: what is named, for the message.
        also: another name that the option knows.

    Raises:
        OperatorError: one is not known.
    """
    names = [name.strip() for name in given.split(",") if name.strip()]
    listed = [*known]
    if unknown := [name for name in names if name not in listed]:
        shown = ", ".join([*listed, *([also] if also else [])])
        raise OperatorError(f"unknown {what} {unknown[0]!r}", hint=f"known: {shown}")
    return names


def write_json(path: Path, value: dict[str, object]) -> None:
    """Replace a result file atomically, so that a reader never sees an incomplete one."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error
