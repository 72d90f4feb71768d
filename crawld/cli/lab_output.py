"""Progress and result files of `crawld lab`."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from crawld.errors import OperatorError


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


def write_json(path: Path, value: dict[str, object]) -> None:
    """Replace a result file atomically, so that a reader never sees an incomplete one."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error
