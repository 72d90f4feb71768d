"""`crawld lab all`: run every experiment, continue an interrupted run, and write one page."""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from crawld.cli.lab_output import chosen_names, progress, write_json
from crawld.cli.output import with_exit_code
from crawld.core.units import YEAR_S
from crawld.errors import OperatorError

if TYPE_CHECKING:
    from crawld.lab.catalogue import Experiment

_SYNTHETIC_PAGES: Final = 120
_SYNTHETIC_START: Final = 1_672_531_200.0  # 2023-01-01, a year before the scored one
_LOG_LINES: Final = 5


@with_exit_code
def run_all(
    *,
    out: Annotated[Path, typer.Option(help="Folder of the results; a later run continues there.")],
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Small sizes, or those of the documentation.")
    ] = True,
    histories: Annotated[
        Path | None,
        typer.Option(help="CSV or CSV.gz: page_id,changed_at; without it, synthetic pages."),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", help="First day of the scored year; default: the last year."),
    ] = None,
    only: Annotated[str, typer.Option(help="Experiments, comma-separated; default: all.")] = "",
) -> None:
    """Run every experiment and write results.md; a finished one does not run again."""
    from crawld.lab.report import Finished, as_markdown

    chosen = _chosen(only)
    out.mkdir(parents=True, exist_ok=True)
    path, start = _histories(histories, begin, out)
    finished: list[Finished] = []
    with progress() as bar:
        task = bar.add_task("", total=len(chosen))
        for experiment in chosen:
            bar.update(task, description=experiment.name)
            result, plot = out / f"{experiment.name}.json", out / f"{experiment.name}.svg"
            values = {"histories": path, "start": start, "json": result, "plot": plot}
            arguments = experiment.command(
                quick=quick, values={name: str(value) for name, value in values.items()}
            )
            seconds = _run(experiment, arguments, out)
            finished.append(
                Finished(
                    experiment,
                    shlex.join(["crawld", "lab", *arguments]),
                    seconds,
                    json.loads(result.read_text(encoding="utf-8")),
                    plot.exists(),
                )
            )
            bar.update(task, advance=1)
    heading = f"{'Quick' if quick else 'Full'} run of the laboratory"
    (out / "results.md").write_text(as_markdown(finished, heading=heading), encoding="utf-8")
    for each in finished:
        print(f"{each.experiment.name:<20}{each.seconds:>8.1f} s  {each.experiment.title}")
    print(f"see {out / 'results.md'}")


def _chosen(only: str) -> list[Experiment]:
    from crawld.lab.catalogue import EXPERIMENTS

    names = chosen_names(only, [each.name for each in EXPERIMENTS], "experiment")
    return [each for each in EXPERIMENTS if not names or each.name in names]


def _histories(given: Path | None, begin: str | None, out: Path) -> tuple[Path, str]:
    """Return the history file and the first day of the year that is scored."""
    from crawld.lab.histories import read_histories

    path = given or _synthetic(out)
    if begin is None:
        last = float(read_histories(path).changed_at.max(initial=YEAR_S))
        begin = datetime.fromtimestamp(last - YEAR_S, UTC).date().isoformat()
    return path.resolve(), begin


def _synthetic(out: Path) -> Path:
    """Write two years of bursty changes; the first is what policies may learn from."""
    import numpy as np

    from crawld.lab.synthetic import synthetic

    path = out / "histories.csv"
    drawn, _ = synthetic(
        "bursty",
        pages=_SYNTHETIC_PAGES,
        start=_SYNTHETIC_START,
        end=_SYNTHETIC_START + 2 * YEAR_S,
        rng=np.random.default_rng(0),
    )
    lines = [
        f"{page},{at}\n"
        for page, times in zip(drawn.page_ids, drawn.page_times, strict=True)
        for at in times.tolist()
    ]
    path.write_text("page_id,changed_at\n" + "".join(lines), encoding="utf-8")
    return path


def _run(experiment: Experiment, arguments: list[str], out: Path) -> float:
    """Run an experiment, unless it has run with the same arguments; return its CPU seconds.

    Raises:
        OperatorError: it fails.
    """
    from crawld.bench.crawld_process import command

    mark = out / f"{experiment.name}.done"
    earlier = _mark(mark)
    if earlier.get("arguments") == arguments and (out / f"{experiment.name}.json").exists():
        return float(str(earlier["seconds"]))
    mark.unlink(missing_ok=True)
    began = _cpu_s()
    log = out / f"{experiment.name}.log"
    printed = out / f"{experiment.name}.json.part"
    with printed.open("wb") as output, log.open("wb") as errors:
        code = subprocess.run(
            command("lab", *arguments), stdout=output, stderr=errors, check=False
        ).returncode
    if code != 0:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise OperatorError(
            f"{experiment.name} failed: " + " ".join(last[-_LOG_LINES:]),
            hint=f"see {log}; the same command continues after the finished experiments",
        )
    if experiment.prints_json:
        printed.replace(out / f"{experiment.name}.json")
    printed.unlink(missing_ok=True)
    seconds = _cpu_s() - began
    write_json(mark, {"arguments": arguments, "seconds": seconds})
    return seconds


def _cpu_s() -> float:
    """Return the CPU time of all child processes that have ended, seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _mark(path: Path) -> Mapping[str, object]:
    """Return what a finished experiment noted; nothing without a readable note."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
