"""`crawld lab modes | curve | classes | shapes`: what needs no recorded histories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from crawld.cli.lab_output import write_json
from crawld.cli.output import with_exit_code

Seed = Annotated[int, typer.Option(help="Random seed.")]
Rows = list[dict[str, object]]
Output = Annotated[Path | None, typer.Option("--json", help="Result file.")]
Recorded = Annotated[
    Path | None,
    typer.Option(help="CSV or CSV.gz: page_id,changed_at; without it, pages are synthetic."),
]

_POISSON_PAGES = 2_000


def show_rows(rows: Rows, title: str, path: Path | None, **about: object) -> None:
    """Print rows as a table, and write them."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        cells = (f"{cell:.4g}" if isinstance(cell, float) else cell for cell in row.values())
        table.add_row(*("" if cell is None else str(cell) for cell in cells))
    Console().print(table)
    if path is not None:
        write_json(path, {**about, "rows": rows})


@with_exit_code
def modes(
    *,
    histories: Recorded = None,
    cycle: Annotated[float, typer.Option(min=0.01, help="Days of a cycle.")] = 30.0,
    active: Annotated[float, typer.Option(min=0.01, help="Days in which a batch crawls.")] = 7.0,
    days: Annotated[float, typer.Option(min=1, help="Days that are scored.")] = 360.0,
    seed: Seed = 0,
    json_path: Output = None,
) -> None:
    """Compare steady and batch crawling, in place and with a shadow collection."""
    import numpy as np

    from crawld.core.units import DAY_S
    from crawld.lab import crawl_modes as lab
    from crawld.lab.histories import from_times, read_histories

    rate = 1.0 / lab.PUBLISHED_INTERVAL_S
    if histories is None:
        random = np.random.default_rng(seed)
        span_s = (days + 4 * cycle) * DAY_S
        counts = random.poisson(rate * span_s, _POISSON_PAGES)
        times = {str(n): np.sort(random.uniform(0.0, span_s, c)) for n, c in enumerate(counts)}
        pages, end = from_times(times), (days + 3 * cycle) * DAY_S
    else:
        pages = read_histories(histories)
        end = float(pages.changed_at.max())
    start = end - days * DAY_S
    if histories is not None:
        pages = pages.select(pages.born_at() < start - 2 * cycle * DAY_S)
    rows: Rows = []
    for mode in lab.modes(cycle * DAY_S, active * DAY_S):
        scored = lab.recorded_freshness(pages, mode, cycle * DAY_S, start=start, end=end, seed=seed)
        closed = lab.poisson_freshness(mode, cycle * DAY_S, rate)
        rows.append(
            {
                "mode": mode.name,
                "published": lab.PUBLISHED[mode.name],
                "closed_form": closed,
                "freshness": scored,
            }
        )
    show_rows(rows, f"{len(pages)} pages, a cycle of {cycle:g} days", json_path, pages=len(pages))


@with_exit_code
def curve(
    *,
    json_path: Output = None,
    plot: Annotated[Path | None, typer.Option(help="Plot of the curves, SVG.")] = None,
) -> None:
    """Show the best revisit frequency over the change rate, and the five published pages."""
    from crawld.lab import rate_curve as lab

    five, price_days = lab.five_pages()
    rows = lab.curve(price_days)
    show_rows(five, "Five pages, five visits a day", None)
    if plot is not None:
        from crawld.lab.plot import plot_lines

        plot_lines(
            rows,
            plot,
            name="changes",
            x="rate_per_day",
            x_label="changes per day",
            y="visits_per_day",
            y_label="visits per day",
            title=f"Best frequency at a price of {price_days:.3f} fresh days a visit",
        )
    if json_path is not None:
        write_json(json_path, {"price_days": price_days, "rows": [*five, *rows]})


@with_exit_code
def classes(
    *,
    histories: Recorded = None,
    days: Annotated[float, typer.Option(min=1, help="Days that are predicted.")] = 365.0,
    seed: Seed = 0,
    json_path: Output = None,
) -> None:
    """Score what rate classes and Gamma priors tell of pages without a history."""
    import numpy as np

    from crawld.core.units import DAY_S
    from crawld.lab import class_priors as lab
    from crawld.lab.histories import read_histories
    from crawld.lab.synthetic import synthetic

    if histories is None:
        random = np.random.default_rng(seed)
        end = 2 * days * DAY_S
        pages, _ = synthetic("bursty", pages=400, start=0.0, end=end, rng=random)
    else:
        pages = read_histories(histories)
        end = float(pages.changed_at.max())
    start = end - days * DAY_S
    pages = pages.select(pages.born_at() < start)
    rows = lab.compare(pages, start=start, end=end, seed=seed)
    show_rows(rows, f"{len(pages)} pages without a history", json_path, pages=len(pages))


@with_exit_code
def shapes(
    *,
    shape: Annotated[str, typer.Option(help="Shapes of sites, or all.")] = "all",
    pages: Annotated[int, typer.Option(min=20, help="Pages of a site.")] = 250,
    seeds: Annotated[int, typer.Option(min=1, help="Sites of each shape.")] = 1,
    seed: Annotated[int, typer.Option(min=1, help="Seed of the first site.")] = 1,
    orders: Annotated[
        int, typer.Option(min=1, help="Orders of the pages of each site, for means.")
    ] = 1,
    json_path: Output = None,
) -> None:
    """Compare INDEX with the best of three simpler policies on shapes of sites."""
    from crawld.lab.site_shapes import SHAPES, compare

    names = list(SHAPES) if shape == "all" else shape.split(",")
    rows: Rows = [
        {
            "shape": cell.shape,
            "visits a page and day": cell.visits_per_page_day,
            "seed": cell.seed,
            **cell.freshness,
            "margin": cell.margin,
        }
        for cell in compare(names, pages=pages, seeds=range(seed, seed + seeds), orders=orders)
    ]
    show_rows(rows, "Freshness, and INDEX minus the best of the others", json_path, pages=pages)
