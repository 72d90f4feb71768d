"""`crawlctl page`, `history` and `diff`: a page, its stored versions and their differences."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli import tables
from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.core.display import count_text, duration_text, iso_text, plural, size_text

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.history import Diff, DiffHunk, DiffPiece, History, VersionDetail
    from crawld.daemon.api.schemas.status import VersionStatus

EDGE_CHARACTERS = 120
"""Characters of unchanged text shown on each side of a change."""

_STYLES = {"same": "", "removed": "red strike", "added": "green bold"}
_MARKS = {"same": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}


Url = Annotated[str, typer.Argument(metavar="URL")]
When = typer.Option(
    metavar="TIME",
    help='Version number, Unix seconds, ISO 8601 or "2 days ago".',
    show_default=False,
)


def page(
    session: Session,
    url: Url,
    *,
    at: Annotated[str | None, When] = None,
    body: Annotated[
        bool, typer.Option("--body", help="Write the stored body, the newest or that of --at.")
    ] = False,
) -> None:
    """Show the state, visits and versions of a page; with --at one version."""
    if body:
        sys.stdout.flush()
        sys.stdout.buffer.write(session.client.get("/body", url=url, at=at))
        sys.stdout.buffer.flush()
        return
    response = session.client.get("/page", url=url, at=at)
    if at is None:
        session.show(response, partial(tables.page_table, now=time.time()))
    else:
        session.show(response, version_table)


def history(
    session: Session,
    url: Url,
    *,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only versions older than this.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows.")] = 100,
) -> None:
    """List the stored versions of a page, newest first."""
    response = session.client.get("/history", url=url, before=before, limit=limit)
    session.show(response, partial(history_table, now=time.time()))


def diff(
    session: Session,
    url: Url,
    a: Annotated[
        str | None, typer.Argument(metavar="A", help="Old version: number or time.")
    ] = None,
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="New version: number or time.")
    ] = None,
    *,
    raw: Annotated[
        bool, typer.Option("--raw", help="Include noise: dates, counters, ads.")
    ] = False,
) -> None:
    """Show the word difference of two versions; default: the last two."""
    response = session.client.get("/diff", url=url, a=a, b=b, raw="true" if raw else None)
    color = sys.stdout.isatty()
    session.show(response, partial(diff_text, color=color))


def _time_text(at: float) -> str:
    try:
        return iso_text(at)
    except (ValueError, OverflowError, OSError):
        return f"{at:g}"


def history_table(history: History, now: float) -> RenderableType:
    """Return the versions of a page, one per line."""
    headings = ("version", "from", "valid for", "status", "size", "stored", "type")
    ends = [now, *(version.visited_at for version in history.versions)]
    rows = zip(history.versions, ends, strict=False)
    shown, total = len(history.versions), history.change_count
    known = f"{count_text(shown)} shown, {count_text(total)} stored by visits so far"
    title = clean(history.title) or None
    head = tables.facts([("url", clean(history.url)), ("title", title), ("versions", known)])
    empty = f"no version; why: crawlctl why {clean(history.url)}"
    found = tables.listing(headings, (_row(version, end) for version, end in rows), empty)
    return Group(head, "", found)


def _row(version: VersionStatus, end: float) -> Sequence[str]:
    return (
        str(version.version_id),
        _time_text(version.visited_at),
        duration_text(max(end - version.visited_at, 0.0)),
        str(version.status),
        tables.copy_size_text(version),
        size_text(version.stored_bytes),
        clean(version.content_type),
    )


def version_table(version: VersionDetail) -> RenderableType:
    """Return one version without its body."""
    until = version.superseded_at
    line = f"{version.http_version} {version.status} {clean(version.reason)}"
    size = tables.copy_size_text(version)
    head = tables.facts(
        [
            ("url", clean(version.url)),
            ("version", str(version.version_id)),
            ("fetched", _time_text(version.visited_at)),
            ("superseded", "not yet" if until is None else _time_text(until)),
            ("response", line.strip()),
            ("type", clean(version.content_type) or None),
            ("charset", clean(version.charset) or None),
            ("size", f"{size}, stored in {size_text(version.stored_bytes)}"),
            ("digest", version.digest),
            *((clean(name), clean(value)) for name, value in version.tags.items()),
        ]
    )
    headers = tables.facts((clean(name), clean(value)) for name, value in version.headers)
    return Group(head, "", headers) if version.headers else head


def diff_text(diff: Diff, *, color: bool) -> RenderableType:
    """Return a difference hunk by hunk; without color as `[-removed-]` and `{+added+}`."""
    head = tables.facts(
        [
            ("url", clean(diff.url)),
            *((name, _copy_text(copy)) for name, copy in (("from", diff.old), ("to", diff.new))),
            ("difference", f"{100 * diff.difference:.2f} %"),
            ("ignored", _noise_text(diff.noisy_blocks) if diff.noisy_blocks else None),
        ]
    )
    if not diff.hunks:
        what = "only noise" if diff.noisy_blocks else "no visible text"
        return Group(head, "", f"{what} has changed")
    return Group(head, *(part for hunk in diff.hunks for part in _hunk(hunk, color=color)))


def _noise_text(blocks: int) -> str:
    return f"{plural(blocks, 'block')} of noise; --raw shows {'it' if blocks == 1 else 'them'}"


def _copy_text(copy: VersionStatus) -> str:
    return f"version {copy.version_id} of {_time_text(copy.visited_at)}"


def _hunk(hunk: DiffHunk, *, color: bool) -> Iterable[RenderableType]:
    text = Text()
    last = len(hunk.pieces) - 1
    for index, piece in enumerate(hunk.pieces):
        shown = _printable(piece, first=index == 0, last=index == last)
        before, after = ("", "") if color else _MARKS[piece.op]
        text.append(f"{before}{shown}{after}", _STYLES[piece.op] if color else "")
    yield Text(f"\n@ block {hunk.old_block} → {hunk.new_block}", "cyan" if color else "")
    yield text


def _printable(piece: DiffPiece, *, first: bool, last: bool) -> str:
    """Return a piece as printable text; long unchanged text is cut."""
    text = "\n".join(clean(line) for line in piece.text.split("\n"))
    if piece.op != "same":
        return text
    head = 0 if first else EDGE_CHARACTERS
    tail = 0 if last else EDGE_CHARACTERS
    if len(text) <= head + tail + 1:
        return text
    return f"{text[:head]}…{text[len(text) - tail :]}"


COMMANDS = (page, history, diff)
