"""`crawld lab dust`: what learnt rules for duplicate URLs save, and whether they are wrong."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from crawld.cli.lab_output import chosen_names
from crawld.cli.output import print_progress, with_exit_code


@with_exit_code
def dust(
    *,
    site: Annotated[str, typer.Option(help="Sites, comma-separated, or all.")] = "causes",
    seeds: Annotated[int, typer.Option(min=1, help="Sites of each kind, seeds 0, 1, …")] = 5,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    pages: Annotated[int, typer.Option(min=50, help="Pages of a site, about.")] = 2_000,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Crawl simulated sites of duplicate URLs, with and without learnt rules.

    The site "causes" has twelve causes of duplicates, the others have the shape of a wiki, a shop,
    a forum and the like, with pages that only look like duplicates.
    """
    from crawld.lab.dust_report import SITES, Row, as_markdown, run_dust

    names = list(SITES) if site == "all" else chosen_names(site, SITES, "site", also="all")

    def done(row: Row) -> None:
        print_progress(
            f"{row['site']} {row['seed']}: {row['avoided']:.1%} avoided, {row['wrong']} wrong,"
            f" {row['validation_share']:.2%} validation fetches"
        )

    rows = run_dust(names, range(first, first + seeds), pages, done)
    print(json.dumps(rows, indent=1) if json_out else as_markdown(rows))
