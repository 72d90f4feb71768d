"""PDFs, JSON and feeds as pages: compared by their text, searched and diffed."""

import contextlib
from functools import partial

import pytest
import trio

from crawld.daemon.jobs.search_index import SearchIndexJob
from crawld.store.versions import search_index
from tests.daemon.control_client import get
from tests.daemon.harness import until
from tests.daemon.http_server import listen, next_head
from tests.pdf_files import encrypted, make_pdf

TYPES = ["text/html", "text/plain", "application/json", "application/rss+xml", "application/pdf"]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
RSS = (
    "<rss><channel><title>Harbour news</title><lastBuildDate>{}</lastBuildDate>"
    "<item><title>Ships</title><description>{}</description></item></channel></rss>"
)


class OneDocument:
    """A server with one document: its Content-Type and its body."""

    def __init__(self, content_type, body):
        self.content_type, self.body = content_type, body

    async def serve(self, *, task_status):
        await listen(self, self.talk, task_status)

    async def talk(self, stream):
        async with stream:
            received = b""
            while (found := await next_head(stream, received)) is not None:
                head, received = found
                if " /document " in head:
                    stated = HEAD % (self.content_type.encode(), len(self.body))
                    await stream.send_all(stated + self.body)
                else:
                    await stream.send_all(MISSING)

    def url(self):
        return f"http://a.test:{self.port}/document"


@pytest.fixture
def visit_twice(nursery, daemon, mirror, wall):
    """Return a function that visits a document, changes it, and returns daemon, URL, outcomes."""

    async def visits_of(content_type, first, second):
        server = OneDocument(content_type, first)
        await nursery.start(lambda *, task_status: server.serve(task_status=task_status))
        running = await daemon(server.url(), site={"content_types": TYPES})
        visits = partial(mirror.rows, "SELECT outcome FROM visit ORDER BY visit_id")
        await until(visits, what="a visit")
        server.body = second
        wall.shift_s += 86_400.0
        await running.crawl.schedule.wake_all()
        await until(lambda: len(visits()) > 1, what="the next visit")
        return running, server.url(), [outcome for (outcome,) in visits()[:2]]

    return visits_of


async def hits(running, query):
    await running.crawl.recorder.drain()
    await SearchIndexJob(running.context).run()
    return [hit.url for hit in await running.database.read(search_index.find, query)]


EDITED = [
    ("application/pdf", make_pdf("The old ferry"), make_pdf("The new ferry")),
    ("application/octet-stream", make_pdf("The old ferry"), make_pdf("The new ferry")),
    ("application/json", b'{"a": 1, "name": "old ferry"}', b'{"name": "new ferry", "a": 1}'),
    ("text/xml", RSS.format("Mon", "old ferry").encode(), RSS.format("Tue", "new ferry").encode()),
    ("text/plain", b"the old ferry\n", b"the new ferry\n"),
]


@pytest.mark.parametrize(("content_type", "first", "second"), EDITED)
async def test_an_edit_is_found_searched_and_diffed(visit_twice, content_type, first, second):
    running, url, outcomes = await visit_twice(content_type, first, second)
    assert outcomes == ["changed", "changed"]
    assert await hits(running, '"new ferry"') == [url]
    assert await hits(running, "old") == []
    diff = (await get(running, "/diff", url=url)).json()
    pieces = [(each["op"], each["text"]) for hunk in diff["hunks"] for each in hunk["pieces"]]
    assert ("removed", "old") in pieces
    assert ("added", "new") in pieces
    assert (await get(running, "/body", url=url)).content == second


UNEDITED = [
    ("application/pdf", make_pdf("A report", stamp="Mon"), make_pdf("A report", stamp="Tue")),
    ("application/json", b'{"a": 1, "b": [2]}', b'{ "b": [2],\n "a": 1}'),
    ("text/xml", RSS.format("Mon", "x").encode(), RSS.format("Tue", "x").encode()),
]


@pytest.mark.parametrize(("content_type", "first", "second"), UNEDITED)
async def test_other_bytes_with_the_same_text_are_no_change(
    visit_twice, mirror, content_type, first, second
):
    _, _, outcomes = await visit_twice(content_type, first, second)
    assert outcomes == ["changed", "unchanged"]
    assert mirror.rows("SELECT count(*) FROM version") == [(1,)]


async def test_a_pdf_has_the_title_that_it_states(visit_twice, mirror):
    await visit_twice(
        "application/pdf", make_pdf("x", title="The ferry"), make_pdf("y", title="The ship")
    )
    assert mirror.rows("SELECT title FROM page") == [("The ship",)]
    assert mirror.rows("SELECT count(*) FROM document_text") == [(2,)]


async def test_a_pdf_that_cannot_be_read_is_stored_and_compared_by_its_bytes(visit_twice, mirror):
    locked = encrypted(make_pdf("a secret"))
    running, url, outcomes = await visit_twice("application/pdf", locked, locked[:-1] + b"\r")
    assert outcomes == ["changed", "changed"]
    assert mirror.rows("SELECT count(*) FROM document_text") == [(0,)]
    assert await hits(running, "secret") == []
    assert (await get(running, "/body", url=url)).content == locked[:-1] + b"\r"


class HugePdf(OneDocument):
    """A PDF of 500 MB, or one whose length is not said and that never ends; counts what it sent."""

    def __init__(self, *, states_length):
        super().__init__("application/pdf", b"")
        self.states_length, self.sent = states_length, 0

    async def talk(self, stream):
        async with stream:
            received = b""
            while (found := await next_head(stream, received)) is not None:
                head, received = found
                if " /document " not in head:
                    await stream.send_all(MISSING)
                    continue
                stated = HEAD % (b"application/pdf", 500_000_000)
                if not self.states_length:
                    stated = stated.replace(b"Content-Length: 500000000", b"Connection: close")
                await stream.send_all(stated + b"%PDF-1.7\n")
                with contextlib.suppress(trio.BrokenResourceError):
                    while self.sent < 500_000_000:
                        await stream.send_all(b"%" * 65_536)
                        self.sent += 65_536
                return


@pytest.mark.parametrize("states_length", [True, False])
async def test_a_pdf_of_500_mb_is_not_read_to_its_end(nursery, daemon, mirror, states_length):
    server = HugePdf(states_length=states_length)
    await nursery.start(lambda *, task_status: server.serve(task_status=task_status))
    await daemon(server.url(), site={"content_types": TYPES}, fetch={"max_body_bytes": 1_000_000})
    visits = partial(mirror.rows, "SELECT outcome, failure FROM visit")
    await until(visits, what="a visit")
    assert visits()[0] == ("failed", "too_large")
    assert server.sent < 20_000_000  # what sockets hold, beside the limit
