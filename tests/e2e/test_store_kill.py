"""SIGKILL during writes: reported writes are stored, and the database is intact."""

import subprocess
import sys
from contextlib import closing

import pytest

from crawld.store import doctor
from crawld.store.engine.connection import open_connection

WRITE = """
import sys
from pathlib import Path
import trio
from crawld.core.page import Outcome, PageState
from crawld.store import visit
from crawld.store.frontier import frontier, site
from crawld.store.versions import body
from crawld.store.engine.database import Database
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord

def found(name, salt):
    url = f"https://example.org/{salt}/{name}"
    return Discovery(url=url, url_hash=hash(url), site_id=1, host="example.org",
                     origin="https://example.org", at=1.0)

async def main():
    salt = sys.argv[2]
    async with await Database.open(Path(sys.argv[1]), batch_max_age_s=0.01) as database:
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run_writer)
            await database.write(site.upsert, "s", "{}", source="config", at=1.0)
            first = await database.write(frontier.discover, [found(n, salt) for n in range(40)])

            async def crawl(page):
                for round_ in range(1_000_000):
                    name = f"{page.page_id}-{round_}"
                    answer = StoredResponse(status=200, http_version="HTTP/1.1", headers=b"")
                    recorded = await database.write(visit.record, VisitRecord(
                        page_id=page.page_id, visited_at=float(round_), outcome=Outcome.CHANGED,
                        state=PageState.VISITED, response=answer, digest=b"d",
                        body=body.encode(name.encode() * 500), discoveries=[found(name, salt)]))
                    new = recorded.new_pages[0].page_id
                    print(recorded.visit_id, recorded.version_id, new, flush=True)

            for page in first:
                nursery.start_soon(crawl, page)

trio.run(main)
"""


@pytest.mark.parametrize("reports", [1, 60, 400])
def test_every_reported_write_survives_a_kill(tmp_path, reports):
    path = tmp_path / "crawld.db"
    lines = []
    for life in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path), str(life)], stdout=subprocess.PIPE, text=True
        ) as process:
            lines += [process.stdout.readline() for _ in range(reports)]
            process.kill()
            # Output left in the pipe was reported too; its last line may be incomplete.
            lines += process.stdout.read().splitlines(keepends=True)
    reported = [tuple(map(int, line.split())) for line in lines if line.endswith("\n")]
    assert len(reported) >= 2 * reports
    with closing(open_connection(path)) as connection:
        for table, ids in zip(
            ("visit", "version", "page"), zip(*reported, strict=True), strict=True
        ):
            stored = {key for (key,) in connection.execute(f"SELECT {table}_id FROM {table}")}
            assert set(ids) <= stored
    assert doctor.examine(path).findings == ()
