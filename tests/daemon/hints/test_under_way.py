"""Changes that a source reports while the page is being visited."""

import time
from dataclasses import dataclass, field

import pytest
import trio

from crawld.core.page import Outcome
from crawld.core.url import url_hash
from crawld.daemon.hints.source import Hint, Poll
from crawld.store.changes import hint_source
from crawld.store.frontier.removal import RemovalReport
from tests.daemon.harness import until
from tests.daemon.hints.document_server import DocumentServer
from tests.daemon.http_server import next_head


@dataclass
class HoldingServer(DocumentServer):
    """A server that holds back its finished responses for /page until `may_send`."""

    may_send: trio.Event = field(default_factory=trio.Event)

    async def _talk(self, stream):
        rest = b""
        async with stream:
            while (read := await next_head(stream, rest)) is not None:
                head, rest = read
                answer = self._answer(head)
                if " /page " in head:
                    await self.may_send.wait()
                await stream.send_all(answer)


class Reports:
    """A source whose next poll returns what a test puts into `next`."""

    polite_host = "a.test"
    is_free = True

    def __init__(self, row):
        self.row = row
        self.next = []
        self.polls = 0

    def is_waiting(self, row):
        return True

    async def poll(self, row):
        self.polls += 1
        if self.next:
            return self.next.pop()
        return Poll(at=time.time(), cursor="none", requests=0, wait_s=0.01)


class OneSource:
    def __init__(self):
        self.sources = []

    async def find(self):
        return self.sources


@pytest.fixture
async def visited(nursery, daemon, mirror):
    """A server that holds the first visit of /page, and a source of reports."""
    server = HoldingServer()
    await nursery.start(server.serve)
    server.put("/robots.txt", "")
    server.put("/page", "<title>t</title><p>the old text")
    server.put("/", '<title>t</title><p>home <a href="/page">page</a>')
    running = await daemon(f"{server.origin}/", jobs={"poll_share": 1.0})
    await until(lambda: server.count("/page") == 1, what="the first visit")
    [site_id] = running.state.sites
    host_id = running.state.hosts["a.test"].host_id
    row = await running.database.write(
        hint_source.ensure, site_id, host_id, "recent_changes", server.origin, time.time()
    )
    source, finder = Reports(row), OneSource()
    finder.sources.append(source)
    running.background.hint_poller._finders.append(finder)
    running.background.hint_poller.find_soon()
    await until(lambda: source.polls, what="a poll")
    return server, source


async def report(source, poll):
    """Let a source report; return when it is stored and delivered."""
    source.next.append(poll)
    polls = source.polls
    await until(lambda: source.polls >= polls + 2, what="the polls")


async def test_a_change_during_the_first_visit_of_a_page_is_copied_after_it(visited, mirror):
    server, source = visited
    server.put("/page", "<title>t</title><p>quite another text")
    now = time.time()
    await report(source, Poll(at=now, hints=[Hint(f"{server.origin}/page", now - 1.0, now)]))
    assert mirror.rows("SELECT count(*) FROM hint") == [(1,)]
    server.may_send.set()
    await until(lambda: server.count("/page", 200) == 2, what="the visit of the changed page")
    await until(lambda: mirror.rows("SELECT count(*) FROM hint") == [(0,)])
    [[outcomes]] = mirror.rows(
        "SELECT group_concat(visit.outcome) FROM visit JOIN page USING (page_id)"
        " WHERE url LIKE '%/page'"
    )
    assert outcomes == f"{Outcome.CHANGED},{Outcome.CHANGED}"


async def test_a_page_deleted_during_its_first_visit_is_marked(visited, mirror):
    server, source = visited
    url, now = f"{server.origin}/page", time.time()
    deleted = RemovalReport(url_hash(url), "deletion", now - 1.0, now)
    await report(source, Poll(at=now, removals=[deleted]))
    server.may_send.set()
    await until(lambda: mirror.rows("SELECT 1 FROM page WHERE state = 'visited' AND url = ?", url))
    assert mirror.rows("SELECT kind FROM removal") == [("deletion",)]


async def test_a_change_before_the_first_visit_brings_no_second(visited, mirror):
    server, source = visited
    url, at = f"{server.origin}/page", time.time() - 60.0
    await report(source, Poll(at=time.time(), hints=[Hint(url, at, at)]))
    server.may_send.set()
    await until(lambda: mirror.rows("SELECT 1 FROM page WHERE state = 'visited' AND url = ?", url))
    assert mirror.rows("SELECT count(*) FROM hint") == [(0,)]
