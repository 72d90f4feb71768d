"""`crawld`: the daemon and the commands on its database.

Each command imports what it needs when it runs, so that `crawld --help` does not load an event
loop, a database and a parser.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crawld.bench.run import ALL, BENCHMARKS
from crawld.cli import plugin_commands
from crawld.cli.export_command import export
from crawld.cli.formats import ImportFormat
from crawld.cli.imports import import_alone, uncollected
from crawld.cli.light_commands import LightCommand, LightGroup
from crawld.cli.output import exit_beneath_threads, missing_extra, with_exit_code
from crawld.cli.version import print_version
from crawld.version import crawld_version

app = typer.Typer(
    cls=LightGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="An embedded crawler daemon: one process, one SQLite file, a fresh and polite mirror.",
)

Db = Annotated[Path, typer.Option("--db", help="Database.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DEFAULT_DB = Path("crawld.db")


@app.callback()
def global_options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """Take the options before the command."""


@app.command(cls=LightCommand)
@with_exit_code
def run(
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Config file.")],
    socket: Annotated[
        Path | None,
        typer.Option(envvar="CRAWLD_SOCKET", help="Control socket; default: as in the config."),
    ] = None,
    *,
    supervise: Annotated[
        bool,
        typer.Option("--supervise", help="Restart the daemon when it crashes or freezes."),
    ] = False,
) -> int:
    """Run the daemon; SIGHUP reloads the config, SIGTERM drains and stops."""
    if supervise:
        from crawld.cli.supervise import supervise as run_supervised

        return run_supervised(config, socket)
    from crawld.cli.early_lock import lock_early

    early = lock_early(config)
    with uncollected():
        import_alone()
        from crawld.cli.run import run as run_config

    return run_config(config, socket, early)


@app.command(cls=LightCommand)
@with_exit_code
def mirror(
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="Seeds.")],
    *,
    db: Db = DEFAULT_DB,
    contact: Annotated[
        str | None,
        typer.Option(help="Contact URL or e-mail of the operator; required for public hosts."),
    ] = None,
    delay: Annotated[float, typer.Option(min=0, help="Seconds between requests.")] = 15.0,
    depth: Annotated[int, typer.Option(min=0, help="Maximum link depth.")] = 1,
    max_pages: Annotated[int, typer.Option(min=1, help="Maximum pages.")] = 1000,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow all private addresses.")
    ] = False,
    requisites: Annotated[
        bool,
        typer.Option(
            "--requisites/--no-requisites", help="Fetch images, styles, scripts and fonts too."
        ),
    ] = True,
    requisite_host: Annotated[
        list[str],
        typer.Option(help="Allow requisites of this host: *.cdn.example.net, * for any."),
    ] = [],  # noqa: B006 (typer makes a new one)
    include: Annotated[
        list[str],
        typer.Option(
            metavar="PATTERN",
            help='Only pages that match: "prefix:…", "glob:…", "regex:…".',
        ),
    ] = [],  # noqa: B006
    exclude: Annotated[
        list[str], typer.Option(metavar="PATTERN", help="No pages that match.")
    ] = [],  # noqa: B006
    no_parent: Annotated[
        bool, typer.Option("--no-parent", help="Only pages in the directories of the URLs.")
    ] = False,
    socket: Annotated[
        Path | None,
        typer.Option(envvar="CRAWLD_SOCKET", help="Control socket; default: next to the database."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop when every page has been visited.")
    ] = False,
    analysis: Annotated[
        bool, typer.Option("--analysis/--no-analysis", help="Analyse first copies.")
    ] = True,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Index copies for the search.")
    ] = True,
    json_out: Json = False,
) -> int:
    """Mirror URLs without a config and keep the mirror fresh until Ctrl-C."""
    with uncollected():
        import_alone()
        from crawld.cli.mirror import mirror as mirror_config
        from crawld.config.command_line import from_command_line

    config = from_command_line(
        urls,
        db=db,
        contact=contact,
        delay_s=delay,
        depth=depth,
        max_pages=max_pages,
        allow_private=allow_private,
        requisites=requisites,
        requisite_hosts=requisite_host,
        include=include,
        exclude=exclude,
        no_parent=no_parent,
        socket=socket,
        analyse=analysis,
        search=search,
    )
    return mirror_config(config, once=once, as_json=json_out)


@app.command(cls=LightCommand)
@with_exit_code
def demo(
    *,
    db: Annotated[
        Path | None,
        typer.Option(help="Keep the mirror in this new file.", show_default=False),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Stop after this time.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the site.")] = 1,
    json_out: Json = False,
) -> int:
    """Serve a small changing site on loopback and show its mirror live."""
    from crawld.cli.demo import demo as show

    return show(db=db, seconds=seconds, seed=seed, as_json=json_out)


@app.command("check-config", cls=LightCommand)
@with_exit_code
def check_config(
    config: Annotated[Path, typer.Argument(metavar="FILE")],
    *,
    online: Annotated[
        bool,
        typer.Option("--online", help="Ask wikis about titles, categories and prefixes, too."),
    ] = False,
    json_out: Json = False,
) -> int:
    """Check a config and print its effect."""
    from crawld.cli.check_config import check_config as check

    return check(config, as_json=json_out, online=online)


@app.command(cls=LightCommand)
@with_exit_code
def init(
    places: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL] [DIR]", help="Page of a site to mirror; target directory."),
    ] = None,
    *,
    contact: Annotated[
        str | None, typer.Option(help="Contact URL or e-mail of the operator.")
    ] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow a private address of the URL's host.")
    ] = False,
) -> int:
    """Write a config for a site, after a look at it; without URL: a commented template."""
    from crawld.cli.init import init as write

    return write(places or (), contact=contact, allow_private=allow_private)


@app.command(cls=LightCommand)
@with_exit_code
def migrate(*, db: Db = DEFAULT_DB) -> int:
    """Migrate a database to the schema of this version, after a backup."""
    from crawld.cli import offline

    return offline.migrate(db)


@app.command(cls=LightCommand)
@with_exit_code
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Backup; must not exist.")],
    *,
    db: Db = DEFAULT_DB,
) -> int:
    """Back up a database, also while the daemon runs."""
    from crawld.cli import offline

    return offline.backup(db, target)


@app.command(cls=LightCommand)
@with_exit_code
def restore(
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="A file made by crawld backup.")],
    *,
    db: Db = DEFAULT_DB,
) -> int:
    """Replace a database with a backup; the replaced file is kept."""
    from crawld.cli import offline

    return offline.restore(db, copy)


@app.command(cls=LightCommand)
@with_exit_code
def doctor(
    *,
    db: Db = DEFAULT_DB,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair data that can be derived from other rows.")
    ] = False,
    json_out: Json = False,
) -> int:
    """Check a database; list errors and the space of each table."""
    from crawld.cli import offline

    return offline.doctor(db, repair=repair, as_json=json_out)


@app.command(cls=LightCommand)
@with_exit_code
def why(
    url: Annotated[str, typer.Argument(metavar="URL")],
    *,
    db: Db = DEFAULT_DB,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="Config, for limits and lines.",
            show_default=False,
        ),
    ] = None,
    json_out: Json = False,
) -> int:
    """Tell why a URL was (not) fetched, and when it will be; with a daemon: crawlctl why."""
    from crawld.cli.offline_why import why as explain

    return explain(db, url, config, as_json=json_out)


@app.command(cls=LightCommand)
@with_exit_code
def purge(
    urls: Annotated[list[str], typer.Argument(metavar="URL...")],
    *,
    db: Db = DEFAULT_DB,
    reason: Annotated[
        str | None, typer.Option(help="Reason, stored with the deleted URLs.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json_out: Json = False,
) -> int:
    """Delete every copy of pages and block the URLs; with a running daemon: crawlctl purge."""
    from crawld.cli import offline, retention

    if not yes:
        retention.confirm_purge(urls)
    return offline.purge(db, urls, reason, as_json=json_out)


@app.command(cls=LightCommand)
@with_exit_code
def serve(
    *,
    db: Db = DEFAULT_DB,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address; port 0: any free port.")
    ] = "127.0.0.1:8080",
    banner: Annotated[
        bool, typer.Option(help="Show source, time and license on each page.")
    ] = True,
    scripts: Annotated[
        bool, typer.Option(help="Run scripts of mirrored pages in a sandbox.")
    ] = True,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Host name to accept requests for; repeatable."),
    ] = None,
    title: Annotated[
        str, typer.Option(help="Name of the mirror; default: the names of its sites.")
    ] = "",
    json_out: Json = False,
) -> int:
    """Serve the mirror to browsers, also while the daemon runs; read-only."""
    from crawld.cli.serve import serve as serve_mirror
    from crawld.web.mirror import DisplayOptions

    display = DisplayOptions(banner=banner, scripts=scripts)
    return serve_mirror(db, listen, display, hosts=host or (), title=title, as_json=json_out)


@app.command(cls=LightCommand)
@with_exit_code
def index(
    *,
    db: Db = DEFAULT_DB,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rebuild from scratch.")] = False,
) -> int:
    """Update the full-text search index; a running daemon does this by itself."""
    from crawld.cli.serve import index as update_index

    return update_index(db, rebuild=rebuild)


app.command(cls=LightCommand)(export)


@app.command("import", cls=LightCommand)
@with_exit_code
def import_(
    origin: Annotated[ImportFormat, typer.Argument(metavar="warc|zim|urls", help="Format.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files.")],
    *,
    db: Db = DEFAULT_DB,
    site: Annotated[
        str | None, typer.Option(help="Site of unknown pages; default: by host.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="URL", help="zim: URL prefix of the entry names.")
    ] = None,
    json_out: Json = False,
) -> int:
    """Fill a mirror from archives or URL lists; the daemon must not be running."""
    from crawld.cli.import_ import import_files

    return import_files(origin, files, db, site=site, base=base, as_json=json_out)


@app.command(cls=LightCommand)
@with_exit_code
def bench(
    name: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(BENCHMARKS)}; or all.",
            autocompletion=lambda: [*BENCHMARKS, ALL],
        ),
    ],
    *,
    json_out: Json = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short run: seconds, of replica and fetch some minutes.")
    ] = False,
    known: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="seen: known URLs; default: 1, 10 and 100 million."),
    ] = None,
    hosts: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="replica: only simulated days, of webs so large."),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(min=1.0, metavar="DAYS", help="replica: only simulated days, so many."),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(metavar="N", help="replica: seed of its webs; may be repeated."),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Show the ratios beside those of an earlier --json."),
    ] = None,
) -> int:
    """Benchmark crawld against comparable programs on this machine."""
    try:
        from crawld.cli.bench import bench as measure
    except ModuleNotFoundError as error:
        raise missing_extra(error, "bench") from error
    return measure(
        name,
        json_out=json_out,
        quick=quick,
        known=known,
        hosts=hosts,
        days=days,
        seed=seed,
        compare=compare,
    )


@app.command(
    "lab",
    cls=LightCommand,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
@with_exit_code
def lab(context: typer.Context) -> None:
    """Run experiments on recorded change histories; see: crawld lab --help."""
    try:
        from crawld.cli.lab import app as lab_app
    except ModuleNotFoundError as error:
        raise missing_extra(error, "lab") from error
    lab_app(context.args, prog_name="crawld lab")


app.add_typer(plugin_commands.app, name="plugins")


@app.command(cls=LightCommand)
@with_exit_code
def version() -> None:
    """Print the version."""
    print(f"crawld {crawld_version()}")


def main() -> None:
    """Run `crawld`."""
    try:
        app(prog_name="crawld")
    except SystemExit as end:
        exit_beneath_threads(end)
        raise


if __name__ == "__main__":
    main()
