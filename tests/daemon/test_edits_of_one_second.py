"""A page that changes again in the second in which it was copied.

Its Last-Modified has whole seconds and stays, so a server answers 304 to who holds the older text.
"""

from email.utils import formatdate, parsedate_to_datetime

import pytest

from tests.daemon.harness import until
from tests.daemon.http_server import listen, next_head

DAY_S = 86_400.0


class EditedServer:
    """Serves one page; sends 304 unless it was modified after the second of the condition.

    Attributes:
        text: of the page.
        modified_at: Unix seconds, truncated in the header.
        conditions: If-Modified-Since of each request for the page, in order.
        fails: whether the page answers 500.
    """

    def __init__(self, clock):
        self.text = "the first text"
        self.modified_at = clock()
        self.conditions = []
        self.fails = False
        self._clock = clock

    async def serve(self, task_status):
        await listen(self, self._talk, task_status)

    async def _talk(self, stream):
        rest = b""
        async with stream:
            while (received := await next_head(stream, rest)) is not None:
                head, rest = received
                status, body = self._answer(head)
                lines = (
                    f"HTTP/1.1 {status}",
                    f"Date: {formatdate(self._clock(), usegmt=True)}",
                    f"Last-Modified: {formatdate(self.modified_at, usegmt=True)}",
                    "Content-Type: text/html",
                    *([] if status.startswith("304") else [f"Content-Length: {len(body)}"]),
                )
                await stream.send_all("\r\n".join((*lines, "", body)).encode())

    def _answer(self, head):
        if not head.startswith("GET / "):
            return "404 Not Found", ""
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        since = fields.get("if-modified-since")
        self.conditions.append(since)
        if self.fails:
            return "500 Internal Server Error", ""
        if since and parsedate_to_datetime(since).timestamp() >= int(self.modified_at):
            return "304 Not Modified", ""
        return "200 OK", f"<title>t</title><p>{self.text}"


@pytest.fixture
async def copied(nursery, daemon, mirror, wall):
    """A server whose page was copied in the second of its last change; a function to visit it."""
    web = await nursery.start(EditedServer(wall).serve)
    running = await daemon(f"http://a.test:{web.port}/", schedule={"min_revisit_s": 3_600.0})

    def visits():
        return [row[0] for row in mirror.rows("SELECT outcome FROM visit ORDER BY visit_id")]

    async def visit():
        count = len(visits())
        wall.shift_s += DAY_S
        await running.crawl.schedule.wake_all()
        await until(lambda: len(visits()) > count, what="a visit")
        return visits()[-1]

    await until(lambda: visits() == ["changed"])
    return web, visit


async def test_an_edit_in_the_second_of_the_copy_is_seen(copied):
    web, visit = copied
    web.text = "quite another text"
    assert await visit() == "changed"
    assert set(web.conditions) == {None}


async def test_the_next_body_shows_that_nothing_was_missed(copied):
    web, visit = copied
    assert await visit() == "unchanged"
    assert await visit() == "not_modified"
    web.text, web.modified_at = "quite another text", web.modified_at + DAY_S
    assert await visit() == "changed"
    assert await visit() == "not_modified"  # this copy is a day younger than its text


async def test_a_failure_in_between_changes_nothing(copied):
    web, visit = copied
    web.fails = True
    assert await visit() == "failed"
    web.fails, web.text = False, "quite another text"
    assert await visit() == "changed"


async def test_that_edit_is_no_evidence_against_the_server(copied):
    web, visit = copied
    web.text = "quite another text"
    assert await visit() == "changed"
    assert await visit() == "not_modified"
