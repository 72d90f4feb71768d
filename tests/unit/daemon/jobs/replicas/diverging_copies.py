"""Two copies in a database, of which one begins to differ, and the job that watches them."""

from crawld.bench.replica_rounds.job_stand_ins import replicas_job
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.frontier import frontier, site
from crawld.store.frontier.host import HostUpdate
from crawld.store.replica import survey
from tests.unit.store.rows import NOW, changed, found, unlike

HOUR_S, DAY_S = 3_600.0, 86_400.0
HOSTS = ("a.test", "www.a.test")
ADDRESSES = ("192.0.2.1", "192.0.2.2")


class Copies:
    """Two hosts with the same pages, of which the second begins to differ on some.

    Each is at an address of its own.

    Attributes:
        page_ids: those of the second; `original_ids`: those of the first.
        differing: numbers of its pages that differ now.
        changed: numbers of the pages that have changed on both.
        tick_s: how far the clock moves at each look.
    """

    def __init__(self, database, seed):
        self.database, self.now, self.tick_s = database, NOW, 0.0
        self.differing = self.changed = frozenset()
        self.job, self.requested = replicas_job(database, 1, self.wall, seed)
        self.original_ids, self.page_ids = [], []
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
            self.original_ids, self.page_ids = self.page_ids, [page.page_id for page in new]
            await self.visit(self.page_ids)

    async def visit(self, page_ids):
        """Visit pages now."""
        for page_id in page_ids:
            await self.database.write(self._visit, page_id)

    def _visit(self, connection, page_id):
        url = connection.execute("SELECT url FROM page WHERE page_id = ?", (page_id,)).get
        number = int(url.rpartition("/")[2])
        differs = HOSTS[1] in url and number in self.differing
        words = 60 + differs + 2 * (number in self.changed)
        text = " ".join(f"word{number * 1_000 + place}" for place in range(words))
        if self._shown.get(page_id) == text:
            visit.record(connection, unlike(page_id, Outcome.UNCHANGED, self.now))
            return
        self._shown[page_id] = text
        host = HostUpdate(last_fetch_at=self.now, address=ADDRESSES[HOSTS[1] in url])
        known = {"cleaned_digest": cleaned_digest(text), "sketch": sketch(text), "host": host}
        visit.record(connection, changed(page_id, f"<p>{text}".encode(), self.now, **known))

    async def pass_hour(self):
        """Run the job, then visit what it requests and what it resumes; return the latter."""
        self.now += HOUR_S
        await self.job.run()
        resting = set(await self.database.read(survey.resting_pages))
        resumed, self._resting = self._resting - resting, resting
        self.now += HOUR_S / 2
        await self.visit(sorted(self.requested.take() | resumed))
        self.now -= HOUR_S / 2
        return resumed

    @property
    def all_rest(self):
        return self._resting >= set(self.page_ids)

    @property
    def none_rests(self):
        return self._resting.isdisjoint(self.page_ids)
