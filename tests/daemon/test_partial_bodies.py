"""A large page whose connection breaks is continued by its next visit."""

from functools import partial

import pytest

from tests.daemon.harness import until
from tests.daemon.http_server import listen, next_head

PAGE = b"<html><title>Long</title>" + b"".join(b"<p>Line %d</p>\n" % n for n in range(60_000))
HALF = len(PAGE) // 2
ETAG = b'ETag: "one"\r\n'


class BreakingServer:
    """Breaks off the first response to each page, and answers ranges unless it `ignores` them."""

    def __init__(self, *, ignores=False, status=None):
        self.ignores, self.status = ignores, status
        self.ranges = []

    async def serve(self, *, task_status):
        await listen(self, self.talk, task_status)

    async def talk(self, stream):
        async with stream:
            found = await next_head(stream)
            if found is None:
                return
            head = found[0]
            if " /robots.txt " in head:
                await stream.send_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                return
            lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
            asked = {name.lower(): value for name, value in lines.items()}.get("range")
            self.ranges.append(asked)
            await stream.send_all(self.answer(asked))

    def answer(self, asked):
        if asked and self.status:
            return b"HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n" % self.status
        if asked and not self.ignores:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            stated = b"Content-Range: bytes %d-%d/%d\r\n" % (start, len(PAGE) - 1, len(PAGE))
            return self.head(b"206 Partial Content", len(PAGE) - start, stated) + PAGE[start:]
        sent = PAGE if len(self.ranges) > 1 else PAGE[:HALF]
        return self.head(b"200 OK", len(PAGE)) + sent

    def head(self, status, length, more=b""):
        fixed = b"Content-Type: text/html\r\nContent-Length: %d\r\n" % length
        return b"HTTP/1.1 " + status + b"\r\n" + ETAG + fixed + more + b"\r\n"


@pytest.fixture
def run(mirror, daemon, nursery, wall):
    """Return a function that lets a server break off a page, and returns the visits a day later."""

    async def visit_twice(server):
        await nursery.start(lambda *, task_status: server.serve(task_status=task_status))
        running = await daemon(f"http://a.test:{server.port}/")
        visits = partial(mirror.rows, "SELECT outcome, failure FROM visit ORDER BY visit_id")
        await until(visits, what="a visit")
        kept = mirror.rows("SELECT total_bytes, length(body) FROM partial_body")
        assert kept == [(len(PAGE), HALF)]
        wall.shift_s += 86_400.0
        await running.crawl.schedule.wake_all()
        await until(lambda: len(visits()) > 1, what="the next visit")
        return visits()

    return visit_twice


async def test_the_rest_of_a_page_is_fetched_by_the_next_visit(run, mirror):
    server = BreakingServer()
    visits = await run(server)
    assert visits[0] == ("failed", "truncated")
    assert visits[1] == ("changed", None)
    assert server.ranges[:2] == [None, f"bytes={HALF}-"]
    assert mirror.rows("SELECT status, size_bytes FROM version JOIN body USING (body_id)") == [
        (200, len(PAGE))
    ]
    assert mirror.rows("SELECT * FROM partial_body") == []


REFUSED = {416: ("failed", "http_status"), 404: ("gone", None)}


@pytest.mark.parametrize("status", REFUSED)
async def test_a_refused_range_is_not_asked_for_again(run, mirror, status):
    server = BreakingServer(status=status)
    assert (await run(server))[1] == REFUSED[status]
    assert server.ranges[:2] == [None, f"bytes={HALF}-"]
    assert mirror.rows("SELECT * FROM partial_body") == []


async def test_a_server_may_ignore_the_range(run, mirror):
    server = BreakingServer(ignores=True)
    assert (await run(server))[1] == ("changed", None)
    assert mirror.rows("SELECT size_bytes FROM body") == [(len(PAGE),)]
    assert mirror.rows("SELECT * FROM partial_body") == []


async def test_a_server_that_is_busy_is_asked_for_the_rest_later(run, mirror):
    await run(BreakingServer(status=503))
    assert len(mirror.rows("SELECT * FROM partial_body")) == 1
