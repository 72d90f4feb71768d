"""`--version` of both programs."""

from __future__ import annotations

import typer

from crawld.version import crawld_version


def print_version(context: typer.Context, wanted: bool) -> None:
    """Print the version of a program and end it, if that is wanted."""
    if wanted and not context.resilient_parsing:
        print(f"{context.info_name} {crawld_version()}")
        raise typer.Exit
