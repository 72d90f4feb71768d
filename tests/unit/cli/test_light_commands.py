"""Commands that load little read values as Typer reads them, and commands load no more."""

import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.core import TyperCommand

from crawld.cli.light_commands import LightCommand, LightGroup

HEAVY = {"apsw", "fastapi", "httpx", "numpy", "pydantic", "selectolax", "trio"}
"""Packages that a client of the daemon does not need; each takes 20 to 200 ms to load."""

_RUN = """
import runpy, sys
try:
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
finally:
    print(*sys.modules, file=sys.stderr)
"""


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


def make_app(kind, seen):
    app = typer.Typer(cls=LightGroup if kind is LightCommand else None)

    @app.callback()
    def above(*, db: Annotated[Path | None, typer.Option()] = None, yes: bool = False) -> None:
        seen.append((db, yes))

    @app.command(cls=kind)
    def run(
        name: str,
        words: Annotated[list[str] | None, typer.Argument()] = None,
        *,
        count: Annotated[int, typer.Option(min=1, max=50)] = 7,
        share: Annotated[float | None, typer.Option(min=0)] = None,
        colour: Colour = Colour.RED,
        other: Annotated[list[str], typer.Option()] = [],  # noqa: B006
        path: Path | None = None,
    ) -> None:
        seen.append((name, words, count, share, colour, other, path))

    return app


@pytest.mark.parametrize(
    "line",
    [
        "run a",
        "run ä b c",
        "--db x/y --yes run a",
        "run a --count 50 --share 0.25 --colour green --other u --other v --path p",
        "run a --count 007 --share 3",
        "run a --count +7 --share 1e-3",
        "run a --share inf",
        "run a --share nan",
        *("run a --count 51", "run a --count 0", "run a --count -1", "run a --count 1.0"),
        *("run a --count ٣", "run a --count x", "run a --share -0.5", "run a --share .5"),
        *("run a --colour blue", "run a --colour RED", "run", "run \udcff", "run a \udcff"),
        *("run a --path \udcff", "--db \udcff run a", "none", ""),
    ],
)
def test_values_are_read_as_typer_reads_them(line, capsys):
    results = []
    for kind in (LightCommand, TyperCommand):
        seen = []
        with pytest.raises(SystemExit) as ended:
            make_app(kind, seen)(line.split(), prog_name="x")
        results.append((ended.value.code, repr(seen)))
    assert results[0] == results[1]


def loaded(module, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", _RUN, module, *arguments], capture_output=True, text=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "line",
    [
        *("--help", "--version", "status", "status --help", "page https://a.test/"),
        *("pages --state visited --limit 5", "forecast --target 0.9", "log --outcome failed"),
        *(
            "add https://a.test/ --delay 2",
            "purge --yes https://a.test/",
            "hints",
            "why https://a.test/",
            "top --once",
            "status --watch",
        ),
    ],
)
def test_crawlctl_loads_neither_the_daemon_nor_what_it_is_made_of(line, tmp_path):
    modules = loaded("crawld.cli.crawlctl", "--socket", str(tmp_path / "none"), *line.split())
    assert "crawld.cli.tables" in modules
    assert modules & HEAVY == set()
    rooms = {name.split(".")[1] for name in modules if name.startswith("crawld.")}
    assert rooms <= {"cli", "core", "errors", "extras", "net", "version"}


@pytest.mark.parametrize("line", ["--help", "--version", "mirror --help", "bench --help"])
def test_the_help_of_crawld_loads_nothing_else(line):
    modules = loaded("crawld.cli.main", *line.split())
    assert "crawld.cli.main" in modules or "crawld.cli.light_commands" in modules
    assert modules & HEAVY == set()
    assert not [name for name in modules if name.startswith(("rich.markdown", "typer.rich_utils"))]


def test_the_help_shows_whole_summaries(capsys):
    app = typer.Typer(cls=LightGroup, rich_markup_mode=None)

    @app.command(cls=LightCommand)
    def one() -> None:
        """Do the first thing with many words, so that they do not fit into a line of a terminal.

        More.
        """

    @app.command(cls=LightCommand)
    def two() -> None:
        """Do another."""

    with pytest.raises(SystemExit):
        app(["--help"], prog_name="x")
    shown = " ".join(capsys.readouterr().out.split())
    assert "that they do not fit into a line of a terminal. two Do another." in shown
