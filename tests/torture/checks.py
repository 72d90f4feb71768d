"""What must hold of a file, whenever the process that wrote it was killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crawld.export.warc_reader import read_warc
from crawld.store import doctor
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.versions import version
from tests.torture import work


@dataclass(frozen=True, slots=True)
class Left:
    """What a process has left.

    Attributes:
        path: its file.
        reported: the lines that it reported, each after what it tells was acknowledged.
        whole: whether it came to its end.
    """

    path: Path
    reported: list[str]
    whole: bool

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        with closing(open_connection(self.path)) as connection:
            return connection.execute(sql).fetchall()


def _sound(left: Left) -> Iterator[str]:
    """The file is whole, and each body is the one that was stored."""
    for finding in doctor.examine(left.path).findings:
        yield str(finding)
    with closing(open_connection(left.path)) as connection:
        stored = connection.execute(
            "SELECT version.version_id, url, visited_at FROM version JOIN page USING (page_id)"
            " WHERE version.visited_at < ?",
            (work.NOW + 1e5,),
        ).fetchall()
        for version_id, url, visited_at in stored:
            number = int(url.rpartition("/")[2])
            expected = work.content_of(number, int((visited_at - work.NOW) // 1_000.0))
            if version.read_body(connection, version_id) != expected:
                yield f"version {version_id} of {url} has another body"


def crawl(left: Left) -> Iterator[str]:
    """Each acknowledged visit is there, with its version and its page."""
    yield from _sound(left)
    reported = [tuple(map(int, line.split())) for line in left.reported]
    for table, ids in zip(("visit", "version", "page"), zip(*reported), strict=False):  # noqa: B905
        stored = {key for (key,) in left.rows(f"SELECT {table}_id FROM {table}")}
        if lost := sorted(set(ids) - stored):
            yield f"{len(lost)} acknowledged rows of {table} are lost: {lost[:5]}"


def migrated(left: Left) -> Iterator[str]:
    """The schema is that of one version, and the newest at the end."""
    fresh = left.path.with_name("fresh.db")
    (number,) = left.rows("PRAGMA user_version")[0]
    fresh.unlink(missing_ok=True)
    migrate.migrate(fresh, upto=int(str(number)) or None)
    schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
    if number and left.rows(schema) != Left(fresh, [], whole=True).rows(schema):
        yield f"the schema is not that of version {number}"
    if left.whole and number != len(migrate.migrations()):
        yield f"the migration ended at version {number}"
    if left.rows("PRAGMA integrity_check") != [("ok",)]:
        yield "the file is damaged"


def backed_up(left: Left) -> Iterator[str]:
    """The copy is complete, or there is none."""
    yield from _sound(left)
    copy = left.path.with_name("copy.db")
    if left.whole and not copy.exists():
        yield "there is no copy"
    if copy.exists():
        yield from (f"copy: {fault}" for fault in _sound(Left(copy, [], whole=True)))
        counts = "SELECT (SELECT count(*) FROM visit), (SELECT count(*) FROM version)"
        if left.rows(counts) != Left(copy, [], whole=True).rows(counts):
            yield "the copy has other rows"
        copy.unlink()
    if left.whole and (rest := sorted(each.name for each in left.path.parent.glob("*copy*"))):
        yield f"left over: {rest}"


def exported(left: Left) -> Iterator[str]:
    """The archive is complete, or there is none."""
    yield from _sound(left)
    archive = left.path.with_name("out.warc.gz")
    if left.whole and not archive.exists():
        yield "there is no archive"
    if archive.exists():
        with archive.open("rb") as file:
            responses = sum(record.kind == "response" for record in read_warc(file))
        if responses != work.PAGES * work.VERSIONS:
            yield f"the archive has {responses} responses"
        archive.unlink()
    if left.whole and (rest := sorted(each.name for each in left.path.parent.glob("out*"))):
        yield f"left over: {rest}"


def pruned(left: Left) -> Iterator[str]:
    """All pages of the copy are suspended, or none."""
    yield from _sound(left)
    states = left.rows("SELECT state, count(*) FROM page WHERE host_id = 2 GROUP BY state")
    if states not in ([("suspended", work.UNVISITED)], [("discovered", work.UNVISITED)]):
        yield f"pages of the copy: {states}"


def retained(left: Left) -> Iterator[str]:
    """First and newest copies stay, and at the end as many as the rule keeps."""
    yield from _sound(left)
    counts = left.rows(
        "SELECT page_id, count(*), min(visited_at), max(visited_at) FROM version GROUP BY page_id"
    )
    last_at = work.NOW + 1_000.0 * (work.VERSIONS - 1)
    for page_id, count, first_at, newest_at in counts:
        if float(str(first_at)) >= work.NOW + 1_000.0 or float(str(newest_at)) < last_at:
            yield f"page {page_id} lost its first or its newest copy"
        if left.whole and int(str(count)) > work.KEPT_VERSIONS + 1:
            yield f"page {page_id} has {count} copies"
    if len(counts) != work.PAGES:
        yield f"{len(counts)} pages have copies"


CHECKS: Final[dict[str, Callable[[Left], Iterator[str]]]] = {
    "crawl": crawl,
    "migrate": migrated,
    "back_up": backed_up,
    "export": exported,
    "prune": pruned,
    "retain": retained,
}
