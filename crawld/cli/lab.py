"""`crawld lab`: experiments on recorded change histories and on synthetic webs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from crawld.cli.lab_all import run_all
from crawld.cli.lab_dust import dust
from crawld.cli.lab_fit import fit
from crawld.cli.lab_forecast import forecast
from crawld.cli.lab_hostile import hostile
from crawld.cli.lab_options import numbers, parse_date, parse_duration
from crawld.cli.lab_output import period_text, progress, write_json
from crawld.cli.lab_replicas import inlinks, prune, replicas, sampling
from crawld.cli.lab_soak import soak
from crawld.cli.lab_theory import classes, curve, modes, shapes
from crawld.cli.lab_universe import universe
from crawld.cli.output import print_progress, with_exit_code
from crawld.errors import OperatorError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run experiments on recorded change histories and on synthetic webs.",
)

app.command("all")(run_all)
app.command()(fit)
app.command()(replicas)
app.command()(prune)
app.command()(sampling)
app.command()(inlinks)
app.command()(dust)
app.command()(universe)
app.command()(hostile)
app.command()(soak)
app.command()(modes)
app.command()(curve)
app.command()(classes)
app.command()(shapes)
app.command()(forecast)

PluginConfig = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Config whose plug-ins are used."),
]


@app.command()
@with_exit_code
def simulate(
    *,
    histories: Annotated[Path, typer.Option(help="CSV or CSV.gz: page_id,changed_at.")],
    policies: Annotated[str, typer.Option(help="Policies, comma-separated.")],
    budget: Annotated[str, typer.Option(help="Visits per page and day, comma-separated.")] = "",
    interval: Annotated[
        float | None, typer.Option(help="Seconds between requests for 10,000 pages.")
    ] = None,
    fractions: Annotated[
        str, typer.Option(help="Fractions of --interval, comma-separated.")
    ] = "0.2,0.4,0.6,0.8,1",
    begin: Annotated[
        str | None, typer.Option("--from", help="First day, e.g. 2007-01-01 (UTC).")
    ] = None,
    duration: Annotated[str, typer.Option(help="Length of the period, e.g. 365d.")] = "365d",
    min_changes: Annotated[
        int, typer.Option(min=0, help="Minimum changes of a page in the period.")
    ] = 0,
    hindsight: Annotated[
        bool, typer.Option("--hindsight", help="Give policies the change rates of the period.")
    ] = False,
    hints: Annotated[
        str,
        typer.Option(
            metavar="lag=60[,miss=0.05][,false=0.1][,poll=600:0.1]",
            help="Change hints: lag in seconds, share of changes missed, share of false hints, "
            "poll interval in seconds and the share of slots that polls take.",
        ),
    ] = "",
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    json_path: Annotated[Path, typer.Option("--json", help="Result file.")],
    plot: Annotated[Path | None, typer.Option(help="Plot of the result, SVG.")] = None,
    config: PluginConfig = None,
) -> None:
    """Score revisit policies on recorded histories, by simulating the daemon's visits."""
    from crawld.lab.experiment import budgets_of, simulate_table
    from crawld.lab.hint_options import HintOptions
    from crawld.lab.histories import read_histories
    from crawld.lab.scenario import scenario_of

    names = [name.strip() for name in policies.split(",") if name.strip()]
    budgets = budgets_of(numbers(budget), interval, numbers(fractions))
    scenario = scenario_of(
        read_histories(histories),
        start=None if begin is None else parse_date(begin),
        duration_s=parse_duration(duration),
        min_changes=min_changes,
        seed=seed,
    )
    print_progress(period_text(scenario))
    with progress() as bar:
        task = bar.add_task("simulate", total=len(names) * len(budgets))
        result = simulate_table(
            scenario,
            names,
            budgets,
            hindsight=hindsight,
            hints=HintOptions.parse(hints) if hints else None,
            config=config,
            jobs=jobs,
            done=lambda row: bar.update(task, advance=1, description=str(row["policy"])),
        )
    write_json(json_path, result)
    if plot is not None:
        from crawld.lab.plot import plot_freshness

        title = f"{scenario.pages} pages, {scenario.changes} changes"
        plot_freshness(
            [row for row in _rows(result) if row],
            plot,
            x="visits_per_page_day",
            x_label="visits per page and day",
            title=f"{title}, hints {hints}" if hints else title,
        )


@app.command()
@with_exit_code
def webbase(
    *,
    pages: Annotated[int, typer.Option(min=1, help="Number of pages.")] = 14_500_000,
    hosts: Annotated[int, typer.Option(min=1, help="Number of hosts.")] = 5_462,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    json_path: Annotated[
        Path, typer.Option("--json", help="Result file; an interrupted run continues from it.")
    ],
    plot: Annotated[Path | None, typer.Option(help="Plot of the result, SVG.")] = None,
) -> None:
    """Score allocations and policies on a synthetic web over a range of bandwidths."""
    from crawld.lab.webbase import BANDWIDTHS, run_webbase

    with progress() as bar:
        task = bar.add_task("webbase", total=len(BANDWIDTHS))

        def done(result: dict[str, object]) -> None:
            write_json(json_path, result)
            bar.update(task, advance=1)

        kept = _previous_result(json_path)
        result = run_webbase(pages=pages, hosts=hosts, seed=seed, kept=kept, done=done)
    write_json(json_path, result)
    if plot is not None:
        from crawld.lab.plot import plot_freshness

        plot_freshness(
            _rows(result),
            plot,
            x="bandwidth_share",
            x_label="bandwidth, share of what all hosts permit",
            title=f"{pages:,} pages on {hosts:,} hosts",
        )


@app.command()
@with_exit_code
def peak(
    *,
    hosts: Annotated[int, typer.Option(min=1, help="Hosts fetched in parallel.")] = 5_462,
    delay: Annotated[float, typer.Option(min=0.1, help="Mean seconds between requests.")] = 60.0,
    horizon: Annotated[str, typer.Option(help="Simulated time.")] = "1h",
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Repeat with this many seeds, and add the mean peaks.")
    ] = 1,
    json_path: Annotated[Path, typer.Option("--json", help="Result file.")],
) -> None:
    """Measure the burstiness of policies against the theoretical bound on the peak."""
    import numpy as np

    from crawld.lab.burstiness import Row, mean_peaks, peak_rows

    runs: list[list[Row]] = []
    with progress() as bar:
        for each in bar.track(range(seed, seed + seeds), description="peak"):
            rates = 1.0 / (delay * np.random.default_rng(each).uniform(0.5, 1.5, hosts))
            runs.append(peak_rows(rates, horizon_s=parse_duration(horizon), seed=each))
    about: dict[str, object] = {"hosts": hosts, "delay_s": delay, "seed": seed}
    write_json(json_path, {"rows": runs[0], "means": mean_peaks(runs), **about})


@app.command()
@with_exit_code
def estimate(
    source: Annotated[str, typer.Argument(help="History file, or poisson, bursty, periodic.")],
    *,
    every: Annotated[str, typer.Option(help="Mean time between visits to a page.")] = "1d",
    begin: Annotated[
        str | None, typer.Option("--from", help="First day of the window (UTC).")
    ] = None,
    duration: Annotated[str, typer.Option(help="Length of the window.")] = "365d",
    truth: Annotated[
        str, typer.Option(help="Compare with the rate of this window or of the next.")
    ] = "window",
    pages: Annotated[int, typer.Option(min=1, help="Number of synthetic pages.")] = 500,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    config: PluginConfig = None,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare estimators of the change rate: bias and error of each."""
    from crawld.lab.estimate import run_estimate

    rows = run_estimate(
        source,
        visit_interval_s=parse_duration(every),
        seed=seed,
        start=None if begin is None else parse_date(begin),
        duration_s=parse_duration(duration),
        truth=_truth(truth),
        pages=pages,
        config=config,
    )
    if json_out:
        print(json.dumps({"rows": rows}, indent=2))
        return
    columns = ("estimator", "truth", "pages", "bias_per_day", "rmse_per_day", "log_rmse")
    print("".join(f"{column:>24}" for column in columns))
    for row in rows:
        cells = (row[column] for column in columns)
        print("".join(f"{c:>24.4g}" if isinstance(c, float) else f"{c:>24}" for c in cells))


def _truth(text: str) -> Literal["window", "next"]:
    if text == "window":
        return "window"
    if text == "next":
        return "next"
    raise OperatorError(f"unknown truth {text!r}", hint="--truth window or --truth next")


def _rows(result: dict[str, object]) -> list[dict[str, object]]:
    rows = result["rows"]
    assert isinstance(rows, list)
    return rows


def _previous_result(path: Path) -> dict[str, object] | None:
    """Return the result of an interrupted run, None without one."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
