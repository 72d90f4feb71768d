"""A copy that begins to differ: how soon its section is crawled again."""

import pytest

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.replica import survey
from tests.unit.store.rows import NOW, changed, found, unlike

HOUR_S, DAY_S = 3_600.0, 86_400.0
HOSTS = ("a.test", "www.a.test")


class Copies:
    """Two hosts with the same pages, of which the second begins to differ on some.

    Attributes:
        page_ids: those of the second.
        differing: numbers of its pages that differ now.
        tick_s: how far the clock moves at each look.
    """

    def __init__(self, database, seed):
        self.database, self.now, self.tick_s = database, NOW, 0.0
        self.differing = frozenset()
        self.job, self.requested = replicas_job(database, 1, self.wall, seed)
        self._resting, self._shown = set(), {}

    def wall(self):
        self.now += self.tick_s
        return self.now

    async def fill(self, pages):
        await self.database.write(site.upsert, "web", "{}", source="config", at=NOW)
        paths = [f"manual/{number}" for number in range(pages)]
        for host in HOSTS:
            new = await self.database.write(
                frontier.discover, [found(path, host=host) for path in paths]
            )
            self.page_ids = [page.page_id for page in new]
            for page_id in self.page_ids:
                await self.database.write(self._visit, page_id)

    def _visit(self, connection, page_id):
        url = connection.execute("SELECT url FROM page WHERE page_id = ?", (page_id,)).get
        number = int(url.rpartition("/")[2])
        differs = HOSTS[1] in url and number in self.differing
        text = " ".join(f"word{number * 1_000 + place}" for place in range(60 + differs))
        if self._shown.get(page_id) == text:
            visit.record(connection, unlike(page_id, Outcome.UNCHANGED, self.now))
            return
        self._shown[page_id] = text
        known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text)}
        visit.record(connection, changed(page_id, f"<p>{text}".encode(), self.now, **known))

    async def pass_hour(self):
        """Run the job, then visit what it requests and what it resumes; return the latter."""
        self.now += HOUR_S
        await self.job.run()
        resting = set(await self.database.read(survey.resting_pages))
        resumed, self._resting = self._resting - resting, resting
        self.now += HOUR_S / 2
        for page_id in sorted(self.requested.take() | resumed):
            await self.database.write(self._visit, page_id)
        self.now -= HOUR_S / 2
        return resumed

    @property
    def all_rest(self):
        return self._resting >= set(self.page_ids)

    @property
    def none_rests(self):
        return self._resting.isdisjoint(self.page_ids)


@pytest.fixture
async def open_copies(tmp_path):
    async with await Database.open(tmp_path / "w.db") as database:
        yield lambda seed: Copies(database, seed)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_section_of_which_a_tenth_differs_is_crawled_again(open_copies, seed):
    """Two days until a sample shows it, and few runs from then on: one compares all that rest."""
    copies = open_copies(seed)
    await copies.fill(100)
    await copies.pass_hour()
    assert copies.all_rest
    copies.differing = frozenset(range(seed, 100, 10))
    differing = {copies.page_ids[number] for number in copies.differing}
    began, seen = copies.now, None
    while not copies.none_rests and copies.now < began + 3 * DAY_S:
        resumed = await copies.pass_hour()
        if seen is None and resumed & differing:
            seen = copies.now
    assert seen is not None
    assert copies.now - seen <= 6 * HOUR_S
    assert copies.now - began <= 2 * DAY_S


async def test_a_visit_of_a_twin_during_the_comparison_is_later_than_it(open_copies):
    """Pages are compared by what was read of them: their twins may be visited meanwhile."""
    copies = open_copies(1)
    await copies.fill(20)
    copies.tick_s = 1.0
    await copies.pass_hour()
    times = await copies.database.read(
        lambda connection: connection.execute(
            "SELECT DISTINCT compared_at FROM page_twin"
        ).fetchall()
    )
    assert len(times) == 1
