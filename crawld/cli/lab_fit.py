"""`crawld lab fit`: which distribution do the intervals between changes follow?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from crawld.cli.output import with_exit_code
from crawld.errors import OperatorError
from crawld.extras import install_command

if TYPE_CHECKING:
    from crawld.lab.interval_fits import Fit, Intervals

_PLOTTED_TIMES = 43
_LEAST_PLOTTED = 1e-5


@with_exit_code
def fit(
    *,
    histories: Annotated[Path, typer.Option(help="CSV or CSV.gz: page_id,changed_at.")],
    min_changes: Annotated[
        int, typer.Option(min=3, help="Minimum intervals of a page that takes part.")
    ] = 50,
    most_pages: Annotated[
        int, typer.Option("--pages", min=1, help="Pages fitted one by one, drawn at random.")
    ] = 200,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Result file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot of the fits, SVG.")] = None,
) -> None:
    """Fit distributions to the intervals between changes of pages, and compare them by AIC."""
    try:
        from crawld.lab.interval_fits import fit_all, page_intervals, pooled
    except ModuleNotFoundError as error:
        raise OperatorError(
            "fits need scipy, which is not installed", hint=install_command("lab")
        ) from error
    import numpy as np

    from crawld.lab.histories import read_histories

    pages = list(page_intervals(read_histories(histories), least=min_changes).values())
    if not pages:
        raise OperatorError(
            f"no page has {min_changes} intervals between changes", hint="Lower --min-changes."
        )
    everything = pooled(pages)
    fits = fit_all(everything)
    count = min(most_pages, len(pages))
    chosen = np.random.default_rng(seed).choice(len(pages), count, replace=False)
    best: dict[str, int] = {}
    with Progress(console=Console(stderr=True), transient=True) as bar:
        for index in bar.track(chosen.tolist(), description="pages"):
            least = min(fit_all(pages[index]), key=lambda one: one.aic)
            best[least.family] = best.get(least.family, 0) + 1
    rows = _rows(fits, best, len(everything.ended))
    _print(rows, len(pages), count)
    if plot is not None:
        _plot(fits, everything, plot, f"{len(pages)} pages of {histories.name}")
    if json_path is not None:
        about = {
            "pages": len(pages),
            "pages_fitted": count,
            "intervals": len(everything.ended),
            "min_changes": min_changes,
            "seed": seed,
        }
        json_path.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


def _rows(fits: list[Fit], best: dict[str, int], intervals: int) -> list[dict[str, object]]:
    least = min(fit.aic for fit in fits)
    return [
        {
            "family": fit.family,
            "parameters": fit.parameters,
            "log_likelihood": fit.log_likelihood,
            "log_likelihood_per_interval": fit.log_likelihood / intervals,
            "aic": fit.aic,
            "aic_above_best": fit.aic - least,
            "pages_best": best.get(fit.family, 0),
        }
        for fit in fits
    ]


def _print(rows: list[dict[str, object]], pages: int, fitted: int) -> None:
    table = Table(title=f"Intervals of {pages} pages, relative to the mean of their page")
    table.add_column("family", no_wrap=True)
    table.add_column("parameters")
    table.add_column("ln L per interval", justify="right")
    table.add_column("AIC above best", justify="right")
    table.add_column(f"best of {fitted} pages", justify="right")
    for row in rows:
        parameters = row["parameters"]
        assert isinstance(parameters, dict)
        table.add_row(
            str(row["family"]),
            ", ".join(f"{name} {value:.3g}" for name, value in parameters.items()),
            f"{row['log_likelihood_per_interval']:.4f}",
            f"{row['aic_above_best']:,.1f}",
            str(row["pages_best"]),
        )
    Console().print(table)


def _plot(fits: list[Fit], intervals: Intervals, path: Path, title: str) -> None:
    import numpy as np

    from crawld.lab.interval_fits import log_survival, observed_survival
    from crawld.lab.plot import plot_lines

    times = np.geomspace(1e-5, 100.0, _PLOTTED_TIMES)
    lines = {"observed": observed_survival(intervals, times)}
    for fit in fits:
        lines[fit.family] = np.exp(log_survival(fit, times))
    plot_lines(
        [
            {"family": family, "interval": at, "share": share}
            for family, shares in lines.items()
            for at, share in zip(times.tolist(), shares.tolist(), strict=True)
            if share > _LEAST_PLOTTED
        ],
        path,
        name="family",
        x="interval",
        x_label="interval, relative to the mean of its page",
        y="share",
        y_label="share of intervals that are longer",
        title=title,
        dashed=[fit.family for fit in fits],
        logarithmic=True,
    )
