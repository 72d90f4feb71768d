"""`crawld lab forecast`: forecasts of freshness beside what INDEX keeps in the year after them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crawld.cli.lab_options import numbers, parse_date
from crawld.cli.lab_theory import Output, Seed, show_rows
from crawld.cli.output import with_exit_code


@with_exit_code
def forecast(
    *,
    histories: Annotated[Path, typer.Option(help="CSV or CSV.gz: page_id,changed_at.")],
    begin: Annotated[str, typer.Option("--from", help="First day of the year, e.g. 2007-01-01.")],
    past_changes: Annotated[
        int, typer.Option(min=0, help="Minimum changes of a page in the year before.")
    ] = 1,
    budget: Annotated[
        str, typer.Option(help="Visits per page and day, comma-separated.")
    ] = "0.1,0.3",
    lag: Annotated[float, typer.Option(min=0, help="Age of hints, seconds.")] = 60.0,
    pages: Annotated[int, typer.Option(min=1, help="Pages at most, drawn.")] = 2_000,
    seed: Seed = 0,
    json_path: Output = None,
) -> None:
    """Compare forecasts of freshness with what INDEX keeps in the year after them."""
    from crawld.lab import forecasting as lab
    from crawld.lab.hint_options import HintOptions
    from crawld.lab.histories import read_histories

    scenario = lab.held_out(
        read_histories(histories),
        start=parse_date(begin),
        past_changes=past_changes,
        most_pages=pages,
        seed=seed,
    )
    rows = lab.compare(scenario, numbers(budget), (None, HintOptions(lag)))
    show_rows(rows, f"{scenario.pages} pages", json_path, pages=scenario.pages)
