"""`crawld`: the daemon and the commands that work on its file.

What a command needs is imported when it runs: `crawld --help` must not wait for an event loop, a
database and a parser it does not use.
"""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import typer

from crawld.cli.formats import ExportFormat, ImportFormat
from crawld.cli.output import with_exit_code
from crawld.errors import OperatorError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="An embedded crawler daemon: one process, one SQLite file, a fresh and polite mirror.",
)

Db = Annotated[Path, typer.Option("--db", help="The database.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
DEFAULT_DB = Path("crawld.db")


@app.command()
@with_exit_code
def run(
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="The config.")],
    socket: Annotated[
        Path | None,
        typer.Option(envvar="CRAWLD_SOCKET", help="The control socket; else as the config says."),
    ] = None,
) -> int:
    """Run the daemon of a config; SIGHUP reloads, SIGTERM drains and ends."""
    from crawld.cli.run import run as run_config

    return run_config(config, socket)


@app.command()
@with_exit_code
def mirror(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="What to start from.")],
    *,
    db: Db = DEFAULT_DB,
    contact: Annotated[
        str | None,
        typer.Option(help="Who answers for this crawler; a must for public hosts."),
    ] = None,
    delay: Annotated[float, typer.Option(min=0, help="Seconds between two requests.")] = 15.0,
    depth: Annotated[int, typer.Option(min=0, help="Links followed from the URLs.")] = 1,
    max_pages: Annotated[int, typer.Option(min=1, help="Most pages admitted.")] = 1000,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow every private address.")
    ] = False,
    requisites: Annotated[
        bool,
        typer.Option(
            "--requisites/--no-requisites", help="With the images, styles, scripts, fonts shown."
        ),
    ] = True,
    requisite_host: Annotated[
        list[str],
        typer.Option(help="Load them from this host too: *.cdn.example.net, * for any."),
    ] = [],  # noqa: B006 (typer makes a new one)
    socket: Annotated[
        Path | None,
        typer.Option(envvar="CRAWLD_SOCKET", help="The control socket; else beside the database."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when every admitted page was visited.")
    ] = False,
    json_out: Json = False,
) -> int:
    """Mirror URLs without a config, and keep the mirror fresh until Ctrl-C."""
    from crawld.cli.mirror import MirrorOptions
    from crawld.cli.mirror import mirror as mirror_urls

    options = MirrorOptions(
        db=db,
        contact=contact,
        delay_s=delay,
        depth=depth,
        max_pages=max_pages,
        allow_private=allow_private,
        requisites=requisites,
        requisite_hosts=requisite_host,
        socket=socket,
        once=once,
        as_json=json_out,
    )
    return mirror_urls(urls, options)


@app.command()
@with_exit_code
def demo(
    *,
    db: Annotated[
        Path | None,
        typer.Option(help="Keep the mirror in this new file.", show_default=False),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="End by itself.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives another site.")] = 1,
    json_out: Json = False,
) -> int:
    """Serve a small site on loopback that keeps changing, and mirror it before your eyes."""
    from crawld.cli.demo import demo as show

    return show(db=db, seconds=seconds, seed=seed, as_json=json_out)


@app.command("check-config")
@with_exit_code
def check_config(
    config: Annotated[Path, typer.Argument(metavar="FILE")], *, json_out: Json = False
) -> int:
    """Check a config and print what it comes to."""
    from crawld.cli.check_config import check_config as check

    return check(config, as_json=json_out)


@app.command()
@with_exit_code
def init(directory: Annotated[Path, typer.Argument(metavar="DIR")] = Path()) -> int:
    """Write a commented crawld.toml to start from."""
    from crawld.cli.check_config import init as write

    return write(directory)


@app.command()
@with_exit_code
def migrate(*, db: Db = DEFAULT_DB) -> int:
    """Bring a database to the schema of this version; a copy is made first."""
    from crawld.cli import offline

    return offline.migrate(db)


@app.command()
@with_exit_code
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="The copy; must not exist.")],
    *,
    db: Db = DEFAULT_DB,
) -> int:
    """Copy a database, also while the daemon runs."""
    from crawld.cli import offline

    return offline.backup(db, target)


@app.command()
@with_exit_code
def restore(
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="Made by: crawld backup.")],
    *,
    db: Db = DEFAULT_DB,
) -> int:
    """Put a copy in the place of a database; what it replaces is kept."""
    from crawld.cli import offline

    return offline.restore(db, copy)


@app.command()
@with_exit_code
def doctor(
    *,
    db: Db = DEFAULT_DB,
    repair: Annotated[
        bool, typer.Option("--repair", help="Put right what follows from other rows.")
    ] = False,
    json_out: Json = False,
) -> int:
    """Examine a database; say what is wrong and what takes the space."""
    from crawld.cli import offline

    return offline.doctor(db, repair=repair, as_json=json_out)


@app.command()
@with_exit_code
def purge(
    urls: Annotated[list[str], typer.Argument(metavar="URL...")],
    *,
    db: Db = DEFAULT_DB,
    reason: Annotated[
        str | None, typer.Option(help="Why, kept with the tombstone.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json_out: Json = False,
) -> int:
    """Take pages down where no daemon runs; beside one: crawlctl purge."""
    from crawld.cli import offline, retention

    if not yes:
        retention.confirm_purge(urls)
    return offline.purge(db, urls, reason, as_json=json_out)


@app.command()
@with_exit_code
def serve(
    *,
    db: Db = DEFAULT_DB,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where; port 0 takes any free one.")
    ] = "127.0.0.1:8080",
    banner: Annotated[
        bool, typer.Option(help="Name source, instant and licence on each page.")
    ] = True,
    scripts: Annotated[
        bool, typer.Option(help="Let scripts of mirrored pages run, shut in.")
    ] = True,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name it may be asked by; several by repeating it."),
    ] = None,
    json_out: Json = False,
) -> int:
    """Show the mirror in a browser, also while the daemon runs; nothing is written."""
    from crawld.cli.serve import serve as show
    from crawld.web.mirror import DisplayOptions

    look = DisplayOptions(banner=banner, scripts=scripts)
    return show(db, listen, look, hosts=host or (), as_json=json_out)


@app.command()
@with_exit_code
def index(
    *,
    db: Db = DEFAULT_DB,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Begin anew.")] = False,
) -> int:
    """Bring the index behind the search up to date; a running daemon does so by itself."""
    from crawld.cli.serve import index as bring_up

    return bring_up(db, rebuild=rebuild)


@app.command()
@with_exit_code
def export(
    form: Annotated[ExportFormat, typer.Argument(help="What to write.")],
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="PATH", help="Where; static goes on where it was.")
    ],
    db: Db = DEFAULT_DB,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help='Leave out what is older: "2 days ago".')
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="jsonl, csv: one of pages, visits, changes, versions as one file."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="zim, wacz: the title of the file.")] = None,
    json_out: Json = False,
) -> int:
    """Write the mirror for other programs, also while the daemon runs; asks the network nothing."""
    from crawld.cli.export import ExportOptions
    from crawld.cli.export import export as write

    options = ExportOptions(db=db, out=out, since=since, table=table, title=title, as_json=json_out)
    return write(form, options)


@app.command("import")
@with_exit_code
def import_(
    origin: Annotated[
        ImportFormat, typer.Argument(metavar="warc|zim|urls", help="What the files are.")
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What to import.")],
    *,
    db: Db = DEFAULT_DB,
    site: Annotated[
        str | None, typer.Option(help="The site of unknown pages; else by their host.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="URL", help="zim: what stands before names of entries.")
    ] = None,
    json_out: Json = False,
) -> int:
    """Start a mirror from what others have of a site; the daemon must not be running."""
    from crawld.cli.import_ import ImportOptions, import_files

    return import_files(origin, files, ImportOptions(db=db, site=site, base=base, as_json=json_out))


@app.command()
@with_exit_code
def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark.")],
    *,
    json_out: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small run of seconds.")] = False,
) -> None:
    """Measure against peers on this machine."""
    try:
        from crawld.cli.bench import bench as measure
    except ModuleNotFoundError as error:
        raise _missing_extra(error, "bench") from error
    measure(name, json_out=json_out, quick=quick)


@app.command(
    "lab",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
@with_exit_code
def lab(context: typer.Context) -> None:
    """Experiment on recorded change histories; see: crawld lab --help."""
    try:
        from crawld.cli.lab import app as lab_app
    except ModuleNotFoundError as error:
        raise _missing_extra(error, "lab") from error
    lab_app(context.args, prog_name="crawld lab")


def _missing_extra(error: ModuleNotFoundError, extra: str) -> OperatorError:
    return OperatorError(
        f"this command needs {error.name}, which is not installed",
        hint=f"pip install 'crawld[{extra}]'",
    )


@app.command()
@with_exit_code
def version() -> None:
    """Print the version."""
    print(f"crawld {version_of('crawld')}")


def main() -> None:
    """Run `crawld`."""
    app(prog_name="crawld")


if __name__ == "__main__":
    main()
