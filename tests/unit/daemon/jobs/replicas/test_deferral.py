"""Pages of a replica that were never visited: deferred after a sample, and still visited once."""

import pytest

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, packed_list, site, verdicts
from crawld.store.frontier.caps import NO_CAPS, Caps
from crawld.store.frontier.packed import Packing
from tests.unit.store.rows import NOW, changed, found

DAY_S = 86_400.0
HOSTS = ("a.test", "www.a.test")
PAGES, VISITED = 160, 40
ALL_PACKED = Caps(packing=Packing(file_pages=0))


class Store:
    """Two hosts with the same pages; of the second, few were visited."""

    def __init__(self, database, differing=(), caps=NO_CAPS):
        self.database = database
        self.differing = differing
        self.caps = caps
        self.now = NOW

    def wall(self):
        return self.now

    async def fill(self):
        await self.database.write(site.upsert, "web", "{}", source="config", at=NOW)
        for host in HOSTS:
            paths = [f"manual/{number}" for number in range(PAGES)]
            few = PAGES if host == HOSTS[0] else VISITED
            new = await self._discover(host, paths[:few], NO_CAPS)
            await self._discover(host, paths[few:], self.caps)
            await self.visit([page.page_id for page in new])

    async def _discover(self, host, paths, caps):
        links = [found(path, host=host) for path in paths]
        new = await self.database.write(frontier.discover, links, caps)
        await self.database.write(verdicts.settle_all, caps)
        return new

    async def visit(self, page_ids):
        for page_id in page_ids:
            await self.database.write(self._visit, page_id)

    def _visit(self, connection, page_id):
        url = connection.execute("SELECT url FROM page WHERE page_id = ?", (page_id,)).get
        number = int(url.rpartition("/")[2])
        differs = HOSTS[1] in url and number in self.differing
        text = " ".join(f"word{number * 1_000 + place}" for place in range(60 + differs))
        known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text)}
        content = f"<p>{text}".encode()
        visit.record(connection, changed(page_id, content, self.now, **known))

    async def pages(self, where):
        sql = f"SELECT page_id FROM page JOIN host USING (host_id) WHERE host = ? AND {where}"
        return await self.database.read(
            lambda connection: [row[0] for row in connection.execute(sql, (HOSTS[1],))]
        )


DEFERRED = "state = 'suspended' AND last_visit_at IS NULL"
RESTING = "state = 'suspended' AND last_visit_at IS NOT NULL"


@pytest.fixture
async def open_store(tmp_path):
    async with await Database.open(tmp_path / "w.db") as database:
        yield lambda **more: Store(database, **more)


async def sample(store, job, requested):
    """Run the job and visit what it requests, until it requests no more."""
    visited = 0
    while True:
        store.now += 3_600.0
        await job.run()
        wanted = requested.take()
        if not wanted:
            return visited
        await store.visit(wanted)
        visited += len(wanted)


@pytest.mark.parametrize("caps", [NO_CAPS, ALL_PACKED])
async def test_unvisited_pages_are_deferred_after_a_sample_and_visited_in_the_end(open_store, caps):
    store = open_store(caps=caps)
    await store.fill()
    packed = await store.database.read(packed_list.list_packed, after=0, limit=PAGES)
    assert len(packed) == (PAGES - VISITED) * (caps is ALL_PACKED)
    job, requested = replicas_job(store.database, 1, store.wall, 3)
    visited = await sample(store, job, requested)
    deferred = await store.pages(DEFERRED)
    assert len(deferred) == PAGES - VISITED - visited
    assert len(deferred) > PAGES // 4
    assert len(await store.pages(RESTING)) >= VISITED
    begun = store.now
    seen = set()
    while store.now < begun + 50 * DAY_S:
        store.now += 10 * DAY_S
        await job.run()
        released = set(await store.pages("state = 'discovered'"))
        assert released <= set(deferred) - seen
        await store.visit(released)
        seen |= released
        assert len(seen) >= (store.now - begun - 20 * DAY_S) / (50 * DAY_S) * len(deferred)
    assert seen == set(deferred)
    store.now += 3_600.0
    await job.run()
    assert await store.pages(DEFERRED) == []


async def test_nothing_is_deferred_where_many_pages_differ(open_store):
    store = open_store(differing=range(0, PAGES, 8))
    await store.fill()
    job, requested = replicas_job(store.database, 1, store.wall, 3)
    await sample(store, job, requested)
    assert await store.pages(DEFERRED) == []
