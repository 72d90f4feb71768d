"""A paused daemon with rules of notification, and pages that change when the test says so."""

from dataclasses import replace

from crawld.core.page import Outcome, PageState
from crawld.store import visit
from crawld.store.frontier import frontier
from crawld.store.frontier.frontier import Discovery
from crawld.store.visit import VisitRecord
from tests.daemon.harness import until
from tests.daemon.page_history import BEGIN, DAY_S, visit_record


class Story:
    """A paused daemon with rules, its receiver, and pages that change when the test says so."""

    def __init__(self, running, receiver, wall, mirror):
        self.daemon, self.receiver, self.wall, self.mirror = running, receiver, wall, mirror
        self.pages = {}
        self.numbers = {}

    async def change(self, path="/page", count=1, title=None, *, wake=True):
        """Give a page new copies; rules look at once, or when they notice."""
        for _ in range(count):
            page_id = await self._page(path)
            record = visit_record(page_id, self.numbers[path])
            self.numbers[path] += 1
            await self.daemon.database.write(
                visit.record, replace(record, title=title, difference=0.02)
            )
        if wake:
            self.daemon.background.notifier.config_changed()

    async def change_often(self, count):
        """Give a page many new copies at once."""
        page_id = await self._page("/page")
        records = [visit_record(page_id, number) for number in range(count)]

        def write(connection):
            for record in records:
                visit.record(connection, record)

        await self.daemon.database.write(write)
        self.daemon.background.notifier.config_changed()

    async def lose(self, path="/page"):
        """Let a page be gone."""
        record = VisitRecord(
            page_id=await self._page(path),
            visited_at=BEGIN + self.numbers[path] * DAY_S,
            outcome=Outcome.GONE,
            state=PageState.GONE,
        )
        await self.daemon.database.write(visit.record, record)

    async def _page(self, path):
        if path not in self.pages:
            url = f"http://a.test{path}"
            discovery = Discovery.of(url, site_id=1, at=BEGIN, depth=1)
            [page] = await self.daemon.database.write(frontier.discover, [discovery])
            self.pages[path], self.numbers[path] = page.page_id, 0
        return self.pages[path]

    def ids(self):
        """Return the ids of all events."""
        return [row[0] for row in self.mirror.rows("SELECT event_id FROM event ORDER BY 1")]

    def state(self, name="team"):
        [found] = self.mirror.rows(
            "SELECT tries, next_try_at, trouble, events_delivered, events_given_up, due_at,"
            " examined_id, trouble_at FROM notify_rule WHERE name = ?",
            name,
        )
        names = (
            "tries",
            "next_try_at",
            "trouble",
            "delivered",
            "given_up",
            "due_at",
            "examined",
            "trouble_at",
        )
        return dict(zip(names, found, strict=True))

    async def delivered(self, count, name="team"):
        await until(lambda: self.state(name)["delivered"] == count, what=f"{count} delivered")

    async def failed(self, tries, name="team"):
        await until(lambda: self.state(name)["tries"] >= tries, what=f"{tries} tries")

    def pass_time(self, seconds):
        """Let time pass at once."""
        self.wall.shift_s += seconds
        self.daemon.background.notifier.config_changed()  # wakes all, like the end of their pauses
