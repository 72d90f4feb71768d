"""What a run of the replicas job reads and writes, in numbers of calls."""

import pytest

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.replica import replica
from tests.unit.store.rows import NOW, changed, found, unlike

PAGES = 12
SAMPLED_S = 7 * 3_600.0
"""Time after which the first samples are due."""


class CountedDatabase(Database):
    """Counts the calls that leave the event loop."""

    reads = writes = 0

    async def read(self, *args, **kwargs):
        self.reads += 1
        return await super().read(*args, **kwargs)

    async def write(self, *args, **kwargs):
        self.writes += 1
        return await super().write(*args, **kwargs)

    def forget(self):
        self.reads = self.writes = 0


class Copies:
    """Hosts, and of each a copy under www."""

    def __init__(self, database, count):
        self.database = database
        self.count = count
        self.now = NOW

    async def open(self):
        write = self.database.write
        await write(site.upsert, "web", "{}", source="config", at=NOW)
        for number in range(self.count):
            for host in (f"a{number}.test", f"www.a{number}.test"):
                paths = [f"manual/{page}" for page in range(PAGES)]
                new = await write(frontier.discover, [found(path, host=host) for path in paths])
                records = [self._visit(page, number) for page in new]
                await write(visit.record_all, records)
        self.job, self.requested = replicas_job(self.database, 1, lambda: self.now, 3)
        await self.job.run()
        await self.job.run()
        rows = await self.database.read(replica.list_replicas)
        assert [row.status for row in rows] == ["pruned"] * self.count
        assert sum(row.suspended for row in rows) == PAGES * self.count
        self.database.forget()

    def _visit(self, page, number):
        first = number * 100_000 + int(page.url.rpartition("/")[2]) * 1_000
        text = " ".join(f"word{first + place}" for place in range(60))
        known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text)}
        return changed(page.page_id, f"<p>{text}".encode(), self.now, **known)

    async def sample(self):
        """Run the job when the samples are due, visit what it resumes, and run it again."""
        self.now += SAMPLED_S
        await self.job.run()
        sql = "SELECT page_id FROM page JOIN host USING (host_id) WHERE host LIKE ? AND state = ?"
        resumed = await self.database.read(
            lambda connection: connection.execute(sql, ("www.%", "visited")).fetchall()
        )
        self.now += 60.0
        await self.database.write(
            visit.record_all,
            [unlike(page_id, Outcome.UNCHANGED, self.now) for (page_id,) in resumed],
        )
        await self.job.run()
        return len(resumed)


@pytest.fixture
async def copies_of(tmp_path):
    opened = []

    async def make(count):
        database = await CountedDatabase.open(tmp_path / f"{count}.db")
        opened.append(database)
        copies = Copies(database, count)
        await copies.open()
        return copies

    yield make
    for database in opened:
        await database.aclose()


async def test_a_run_without_news_writes_nothing(copies_of):
    copies = await copies_of(4)
    await copies.job.run()
    assert copies.database.writes == 0


async def test_a_sample_of_all_replicas_is_one_write(copies_of):
    copies = await copies_of(4)
    copies.now += SAMPLED_S
    await copies.job.run()
    assert copies.database.writes == 1


async def test_replicas_share_reads_and_writes(copies_of):
    few, many = await copies_of(4), await copies_of(24)
    for copies in (few, many):
        assert await copies.sample() >= copies.count
    further = many.count - few.count
    assert many.database.reads - few.database.reads < further / 2
    assert many.database.writes - few.database.writes < further / 2
