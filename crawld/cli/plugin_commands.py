"""The commands of `crawld plugins`; each imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crawld.cli.light_commands import LightCommand, LightGroup
from crawld.cli.output import with_exit_code

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

app = typer.Typer(
    cls=LightGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List, check and make plug-ins.",
)

PluginsConfig = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Config.", show_default=False),
]


@app.command("list", cls=LightCommand)
@with_exit_code
def plugins_list(config: PluginsConfig = None, *, json_out: Json = False) -> int:
    """List plug-ins that are installed or in plugins_dir, and the parts of crawld itself."""
    from crawld.cli.plugins import list_all

    return list_all(config, as_json=json_out)


@app.command("check", cls=LightCommand)
@with_exit_code
def plugins_check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.py]", help="One plug-in; default: those of the config."),
    ] = None,
    config: PluginsConfig = None,
    *,
    json_out: Json = False,
) -> int:
    """Load plug-ins, call their hooks with examples; print what is wrong, and the times."""
    from crawld.cli.plugins import check

    return check(file, config, as_json=json_out)


@app.command("new", cls=LightCommand)
@with_exit_code
def plugins_new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name: small letters, digits, _.")],
    directory: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Directory; made if it is missing.")
    ] = Path("plugins"),
) -> int:
    """Write a working plug-in to change, with a test."""
    from crawld.cli.plugins import new

    return new(name, directory)
