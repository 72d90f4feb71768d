"""What the killed processes do: functions of the product, on a file with versions and replicas."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import apsw
import trio

from crawld.core.page import Outcome, PageState
from crawld.export import archive
from crawld.export.source import ExportRequest
from crawld.store import visit
from crawld.store.engine import backup, migrate
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.replica import pages
from crawld.store.versions import body, delta, retention
from crawld.store.versions.response import StoredResponse
from crawld.store.versions.retention import RetentionRule
from crawld.store.visit import VisitRecord

PAGES: Final = 8
VERSIONS: Final = 7
UNVISITED: Final = 40
KEPT_VERSIONS: Final = 3
NOW: Final = 1_767_225_600.0
ROUNDS: Final = 12
"""Rounds of the work that has no end of its own."""

_REST_S = 0.002

Report = Callable[[str], None]


def content_of(page: int, version: int) -> bytes:
    """Return the body of a version: mostly that of the version before, so that deltas save."""
    draw = random.Random(page)
    text = [f"<p>{draw.getrandbits(256):x}" for _ in range(150)]
    for change in range(version):
        text[change * 7 % len(text)] = f"<p>changed {page} {change}"
    return "".join(text).encode()


def found(name: str, host: str = "one.test") -> Discovery:
    """Return a discovered page."""
    url = f"https://{host}/{name}"
    return Discovery(
        url=url,
        url_hash=hash_of(url),
        site_id=1,
        host=host,
        origin=f"https://{host}",
        at=NOW,
    )


def hash_of(text: str) -> int:
    """Return a hash that is the same in all processes."""
    return int.from_bytes(body.digest(text.encode())[:8], "big", signed=True)


def record(page_id: int, at: float, content: bytes, discoveries: tuple[Discovery, ...] = ()):  # type: ignore[no-untyped-def]
    """Return a visit that stores a version."""
    return VisitRecord(
        page_id=page_id,
        visited_at=at,
        outcome=Outcome.CHANGED,
        state=PageState.VISITED,
        response=StoredResponse(status=200, http_version="HTTP/1.1", headers=b""),
        digest=body.digest(content)[:8],
        body=body.encode(content),
        discoveries=list(discoveries),
    )


async def _with_database(path: Path, work: Callable[[Database], Awaitable[None]]) -> None:
    async with (
        await Database.open(path, batch_max_age_s=0.002) as database,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(database.run_writer)
        await work(database)
        nursery.cancel_scope.cancel()


def prepare(path: Path, _: Report) -> None:
    """Make a file with some pages of several versions, and pages that were never visited."""

    async def fill(database: Database) -> None:
        await database.write(site.upsert, "s", "{}", source="config", at=NOW)
        known = [found(str(page)) for page in range(PAGES)]
        first = await database.write(frontier.discover, known)
        for version in range(VERSIONS):
            for page, row in enumerate(first):
                at = NOW + 1_000.0 * version + page
                await database.write(
                    visit.record, record(row.page_id, at, content_of(page, version))
                )
        others = [found(str(page), "two.test") for page in range(UNVISITED)]
        await database.write(frontier.discover, others)

    trio.run(_with_database, path, fill)


def crawl(path: Path, report: Report) -> None:
    """Store visits from several tasks, and checkpoint now and then; report what is acknowledged."""

    async def visits(database: Database) -> None:
        salt = os.getpid()
        first = await database.write(
            frontier.discover, [found(f"new-{salt}-{n}") for n in range(6)]
        )

        async def visit_page(page_id: int) -> None:
            for number in range(ROUNDS):
                content = f"{page_id} {number} ".encode() * 900
                new = found(f"{salt}-{page_id}-{number}")
                stored = await database.write(
                    visit.record, record(page_id, NOW + 1e6 + number, content, (new,))
                )
                report(f"{stored.visit_id} {stored.version_id} {stored.new_pages[0].page_id}")

        async with trio.open_nursery() as nursery:
            for row in first:
                nursery.start_soon(visit_page, row.page_id)
            for _ in range(ROUNDS):
                await database.checkpoint()
                await trio.sleep(_REST_S)

    trio.run(_with_database, path, visits)


def migrate_file(path: Path, report: Report) -> None:
    """Bring the file to the newest schema."""
    migrate.migrate(path)
    report("migrated")


def back_up(path: Path, report: Report) -> None:
    """Copy the file beside it."""
    backup.STEP_PAGES = 4  # type: ignore[misc]  # many steps in a small file
    backup.backup_file(path, path.with_name("copy.db"))
    report("copied")


def export(path: Path, report: Report) -> None:
    """Export all copies."""
    archive.export_warc(ExportRequest(path, path.with_name("out.warc.gz"), NOW + 1e7))
    report("exported")


def prune(path: Path, report: Report) -> None:
    """Suspend and resume the pages of a copy, as the job of replicas does."""

    async def rounds(database: Database) -> None:
        for _ in range(ROUNDS):
            ids = await database.read(_ids_of_two)
            report(f"suspended {await database.write(pages.suspend, ids)}")
            resumed = await database.write(pages.resume_some, 2)
            report(f"resumed {len(resumed)}")

    trio.run(_with_database, path, rounds)


def _ids_of_two(connection: apsw.Connection) -> list[int]:
    rows = connection.execute("SELECT page_id FROM page WHERE host_id = 2")
    return [number for (number,) in rows]


def retain(path: Path, report: Report) -> None:
    """Encode older copies as deltas, and remove the oldest, slice by slice."""

    async def slices(database: Database) -> None:
        while (
            slice_ := await database.read(lambda connection: delta.plan(connection, limit=6))
        ) is not None:
            await database.write(delta.apply, slice_)
            report("encoded")
        for kept in range(VERSIONS - 1, KEPT_VERSIONS - 1, -1):
            rules, after = {1: RetentionRule(keep_versions=kept)}, 0
            while (
                plan := await database.read(retention.plan, rules, NOW + 1e7, after=after)
            ) is not None:
                await database.write(retention.apply, plan)
                after = plan.up_to
                report("removed")

    trio.run(_with_database, path, slices)


WORK: Final[dict[str, Callable[[Path, Report], None]]] = {
    "prepare": prepare,
    "crawl": crawl,
    "migrate": migrate_file,
    "back_up": back_up,
    "export": export,
    "prune": prune,
    "retain": retain,
}
