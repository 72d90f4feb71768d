"""What rules for duplicate URLs save on simulated sites, over several seeds, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any, Final

from crawld.lab.dust import DuplicateSite, simulate_dust
from crawld.simweb.dust_shapes import SHAPES
from crawld.simweb.dust_site import DustSite

CAUSES: Final = "causes"
"""The site of twelve causes; the others have one shape each."""

SITES: Final = (CAUSES, *SHAPES)

Row = dict[str, Any]


def make_site(name: str, seed: int, pages: int) -> DuplicateSite:
    """Return a site by its name in `SITES`."""
    return DustSite(seed, pages) if name == CAUSES else SHAPES[name](seed, pages)


def run_dust(
    names: Iterable[str], seeds: Sequence[int], pages: int, done: Callable[[Row], None]
) -> list[Row]:
    """Crawl each site with each seed; return a row for each crawl."""
    rows = []
    for name in names:
        for seed in seeds:
            figures = simulate_dust(make_site(name, seed, pages), seed)
            row = {
                "site": name,
                "seed": seed,
                **asdict(figures),
                "avoided": round(figures.avoided, 4),
                "validation_share": round(figures.validation_share, 4),
            }
            rows.append(row)
            done(row)
    return rows


def as_markdown(rows: Sequence[Row]) -> str:
    """Return a table: the range over the seeds of each site, and sums of what is wrong."""
    lines = [
        "| site | seeds | URLs | duplicates avoided | validation fetches | wrong | missed"
        " | rules | withdrawn |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["site"] for row in rows):
        own = [row for row in rows if row["site"] == name]
        cells = (
            *(name, str(len(own)), f"{fmean(row['urls'] for row in own):,.0f}"),
            *(_range(own, "avoided", 1), _range(own, "validation_share", 2)),
            *(str(sum(row[key] for row in own)) for key in ("wrong", "missed")),
            *(f"{fmean(row[key] for row in own):.1f}" for key in ("rules", "withdrawn")),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _range(rows: Sequence[Row], key: str, places: int) -> str:
    shares = [100.0 * row[key] for row in rows]
    return f"{min(shares):.{places}f}-{max(shares):.{places}f} %"
