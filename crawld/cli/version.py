"""`--version` of both programs."""

from __future__ import annotations

import typer


def version_text() -> str:
    """Return the version of crawld."""
    from importlib.metadata import version

    return version("crawld")


def print_version(context: typer.Context, wanted: bool) -> None:
    """Print the version of a program and end it, if that is wanted."""
    if wanted and not context.resilient_parsing:
        print(f"{context.info_name} {version_text()}")
        raise typer.Exit
