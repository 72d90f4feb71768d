"""Hosts whose texts turn out to be those of many hosts are not declared replicas."""

import pytest

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.replica import replica
from tests.unit.store.rows import NOW, changed, found

FIRST = ("ada.farm.com", "bob.farm.com")
LATER = tuple(f"{name}.farm.com" for name in ("cat", "dan", "eve", "flo", "gil", "hal", "ivy"))
FEW, PAGES = 4, 12


def show(connection, hosts, numbers):
    """Store visits of some of the pages that all hosts have."""
    for host in hosts:
        new = frontier.discover(connection, [found(f"p/{at}", host=host) for at in numbers])
        for at, page in zip(numbers, new, strict=True):
            text = " ".join(f"word{at * 1_000 + place}" for place in range(60))
            known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text)}
            visit.record(connection, changed(page.page_id, f"<p>{text}".encode(), **known))


@pytest.fixture
async def database(tmp_path):
    async with await Database.open(tmp_path / "w.db") as opened:
        await opened.write(site.upsert, "web", "{}", source="config", at=NOW)
        yield opened


@pytest.mark.parametrize(("more", "status"), [((), "pruned"), (LATER, "partly")])
async def test_rarity_is_that_of_now(database, more, status):
    await database.write(show, FIRST, range(FEW))
    job, _ = replicas_job(database, 1, lambda: NOW + 3_600.0, 3)
    await job.run()
    [row] = await database.read(replica.list_replicas)
    assert (row.host, row.status, row.suspended) == (FIRST[1], "partly", FEW)
    await database.write(show, more, range(PAGES))
    await database.write(show, FIRST, range(FEW, PAGES))
    for _ in range(2):
        await job.run()
    rows = await database.read(replica.list_replicas)
    found_now = {row.host: (row.status, row.suspended) for row in rows}
    assert found_now[FIRST[1]] == (status, PAGES)
