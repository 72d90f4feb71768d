"""Pages of a replica that redirect to their twins rest; those that lead elsewhere do not."""

import pytest

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from tests.unit.store.rows import NOW, changed, found, unlike

KEPT, COPY = "a.test", "www.a.test"
PAGES, ELSEWHERE = 12, (3, 7)


def fill(connection):
    """Store two hosts: the pages of the second redirect to those of the first, but for a few."""
    site.upsert(connection, "web", "{}", source="config", at=NOW)
    for host in (KEPT, COPY):
        new = frontier.discover(connection, [found(f"p/{at}", host=host) for at in range(PAGES)])
        for at, page in enumerate(new):
            if host == KEPT:
                text = " ".join(f"word{at * 1_000 + place}" for place in range(60))
                known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text)}
                visit.record(connection, changed(page.page_id, f"<p>{text}".encode(), **known))
            else:
                to = f"https://{KEPT}/{'login' if at in ELSEWHERE else f'p/{at}'}"
                visit.record(connection, unlike(page.page_id, Outcome.MOVED, redirect_url=to))


@pytest.fixture
async def database(tmp_path):
    async with await Database.open(tmp_path / "w.db") as opened:
        yield opened


async def test_pages_that_redirect_to_their_twins_rest(database):
    await database.write(fill)
    job, _ = replicas_job(database, 1, lambda: NOW + 3_600.0, 3)
    await job.run()
    sql = "SELECT url FROM page WHERE state = 'suspended'"
    resting = await database.read(lambda connection: {url for (url,) in connection.execute(sql)})
    here = set(range(PAGES)) - set(ELSEWHERE)
    assert resting == {f"https://{COPY}/p/{at}" for at in here}
