"""`crawlctl` on the past of a page: its copies, the page as it was, what changed between two.

`mount` makes them commands: they are given what every command is given, a client and a way to show
an answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Protocol, TypeVar

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli import tables
from crawld.cli.client import Client
from crawld.cli.output import clean
from crawld.core.content.words import Op
from crawld.core.display import count_text, duration_text, iso_text, size_text
from crawld.daemon.api.schemas.history import Diff, DiffHunk, DiffPiece, History, VersionDetail
from crawld.daemon.api.schemas.status import PageDetail, VersionStatus

T = TypeVar("T")

EDGE_CHARACTERS = 120
"""Unchanged text shown on each side of a change; what lies between is left out."""

_STYLES = {Op.SAME: "", Op.REMOVED: "red strike", Op.ADDED: "green bold"}
_MARKS = {Op.SAME: ("", ""), Op.REMOVED: ("[-", "-]"), Op.ADDED: ("{+", "+}")}


class Call(Protocol):
    """What a command is given."""

    @property
    def client(self) -> Client:
        """The daemon's socket."""

    @property
    def as_json(self) -> bool:
        """Whether a program reads the answer."""

    def show(self, answer: bytes, kind: type[T], render: Callable[[T], RenderableType]) -> T:
        """Print an answer as it came, or rendered."""


Url = Annotated[str, typer.Argument(metavar="URL")]
When = typer.Option(
    metavar="TIME",
    help='A version number, Unix seconds, ISO 8601 or "2 days ago".',
    show_default=False,
)


def mount(command: Callable[[Callable[..., int | None]], object]) -> None:
    """Make the functions of this module commands."""
    for function in (page, history, diff):
        command(function)


def page(
    call: Call,
    url: Url,
    *,
    at: Annotated[str | None, When] = None,
    body: Annotated[
        bool, typer.Option("--body", help="Write the stored bytes, the last or those of --at.")
    ] = False,
) -> None:
    """Show one page: its state, visits, versions; with --at as it was."""
    if body:
        sys.stdout.flush()
        sys.stdout.buffer.write(call.client.get("/body", url=url, at=at))
        sys.stdout.buffer.flush()
        return
    answer = call.client.get("/page", url=url, at=at)
    if at is None:
        call.show(answer, PageDetail, lambda value: tables.page_table(value, time.time()))
    else:
        call.show(answer, VersionDetail, version_table)


def history(
    call: Call,
    url: Url,
    *,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only copies older than this.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The most to show.")] = 100,
) -> None:
    """Show the stored copies of a page, newest first."""
    answer = call.client.get("/history", url=url, before=before, limit=limit)
    call.show(answer, History, lambda value: history_table(value, time.time()))


def diff(
    call: Call,
    url: Url,
    a: Annotated[
        str | None, typer.Argument(metavar="A", help="From: a version number or a time.")
    ] = None,
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="To: a version number or a time.")
    ] = None,
    *,
    raw: Annotated[
        bool, typer.Option("--raw", help="Show also what changes by itself: dates, counters, ads.")
    ] = False,
) -> None:
    """Show what changed on a page word by word: from the last copy but one to the last."""
    answer = call.client.get("/diff", url=url, a=a, b=b, raw="true" if raw else None)
    colour = sys.stdout.isatty()
    call.show(answer, Diff, lambda value: diff_text(value, colour=colour))


def _time_text(at: float) -> str:
    try:
        return iso_text(at)
    except (ValueError, OverflowError, OSError):
        return f"{at:g}"


def history_table(history: History, now: float) -> RenderableType:
    """Return the copies of a page, one a line."""
    headings = ("version", "from", "kept for", "status", "size", "stored", "type")
    ends = [now, *(version.visited_at for version in history.versions)]
    rows = zip(history.versions, ends, strict=False)
    shown, brought = len(history.versions), history.change_count
    known = f"{count_text(shown)} shown; visits have brought {count_text(brought)}"
    head = tables.facts(
        [
            ("url", clean(history.url)),
            ("title", clean(history.title) or None),
            ("versions", known),
        ]
    )
    return Group(head, "", tables.table(headings, (_row(version, end) for version, end in rows)))


def _row(version: VersionStatus, end: float) -> Sequence[str]:
    return (
        str(version.version_id),
        _time_text(version.visited_at),
        duration_text(max(end - version.visited_at, 0.0)),
        str(version.status),
        size_text(version.size_bytes),
        size_text(version.stored_bytes),
        clean(version.content_type),
    )


def version_table(version: VersionDetail) -> RenderableType:
    """Return one copy in full, but for its body."""
    until = version.superseded_at
    line = f"{version.http_version} {version.status} {clean(version.reason)}"
    head = tables.facts(
        [
            ("url", clean(version.url)),
            ("version", str(version.version_id)),
            ("seen", _time_text(version.visited_at)),
            ("superseded", "not yet" if until is None else _time_text(until)),
            ("answer", line.strip()),
            ("type", clean(version.content_type) or None),
            ("charset", clean(version.charset) or None),
            (
                "size",
                f"{size_text(version.size_bytes)}, stored in {size_text(version.stored_bytes)}",
            ),
            ("digest", version.digest),
        ]
    )
    headers = tables.facts((clean(name), clean(value)) for name, value in version.headers)
    return Group(head, "", headers) if version.headers else head


def diff_text(diff: Diff, *, colour: bool) -> RenderableType:
    """Return what changed, hunk by hunk.

    Args:
        diff: what changed.
        colour: mark words by colour, not by `[-removed-]` and `{+added+}`.
    """
    head = tables.facts(
        [
            ("url", clean(diff.url)),
            *((name, _copy_text(copy)) for name, copy in (("from", diff.old), ("to", diff.new))),
            ("difference", f"{100 * diff.difference:.2f} %"),
            ("passed over", _noise_text(diff.noisy_blocks) if diff.noisy_blocks else None),
        ]
    )
    if not diff.hunks and diff.noisy_blocks:
        return Group(head, "", "only what changes by itself has changed")
    if not diff.hunks:
        return Group(head, "", "nothing that a reader sees has changed")
    return Group(head, *(part for hunk in diff.hunks for part in _hunk(hunk, colour=colour)))


def _noise_text(blocks: int) -> str:
    if blocks == 1:
        return "1 block that changes by itself; --raw shows it"
    return f"{blocks} blocks that change by themselves; --raw shows them"


def _copy_text(copy: VersionStatus) -> str:
    return f"version {copy.version_id} of {_time_text(copy.visited_at)}"


def _hunk(hunk: DiffHunk, *, colour: bool) -> Iterable[RenderableType]:
    text = Text()
    last = len(hunk.pieces) - 1
    for index, piece in enumerate(hunk.pieces):
        shown = _printable(piece, first=index == 0, last=index == last)
        before, after = ("", "") if colour else _MARKS[piece.op]
        text.append(f"{before}{shown}{after}", _STYLES[piece.op] if colour else "")
    yield Text(f"\n@ block {hunk.old_block} → {hunk.new_block}", "cyan" if colour else "")
    yield text


def _printable(piece: DiffPiece, *, first: bool, last: bool) -> str:
    """Return a piece as it may go to a terminal, long unchanged text cut."""
    text = "\n".join(clean(line) for line in piece.text.split("\n"))
    if piece.op is not Op.SAME:
        return text
    head = 0 if first else EDGE_CHARACTERS
    tail = 0 if last else EDGE_CHARACTERS
    if len(text) <= head + tail + 1:
        return text
    return f"{text[:head]}…{text[len(text) - tail :]}"
