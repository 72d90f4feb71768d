"""Event streams in a whole daemon: reconnects, silence, floods, gaps and invalid responses."""

import time

import pytest
import trio

from crawld.daemon.hints import documents
from crawld.daemon.hints.events import DISORDER_S
from crawld.daemon.run import run_daemon
from tests.daemon.harness import TIMEOUT_S, until
from tests.daemon.hints.event_server import EventServer, canary, event, framed, responding, sending
from tests.daemon.hints.test_documents import put_pages, reported, sources, visited


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    """Shorten the pauses of reconnects and commits to 0.1 s."""
    monkeypatch.setattr("crawld.daemon.hints.events.RECONNECT_S", 0.1)
    monkeypatch.setattr("crawld.daemon.hints.events.BATCH_S", 0.1)


@pytest.fixture
async def events(nursery):
    """A scripted server of events."""
    server = EventServer()
    await nursery.start(server.serve)
    return server


@pytest.fixture
def start_stream(server, events, daemon):
    """Return a function that starts a daemon with pages /a and /b and an event stream."""

    put_pages(server, "/a", "/b")
    server.put("/", '<a href="/a">a</a><a href="/b">b</a>')

    async def start(*script):
        events.script = list(script)
        return await daemon(server.origin + "/", site={"event_stream": events.url})

    return start


@pytest.fixture
def edit(server, mirror, wall):
    """Return a function that makes a piece: an edit of a page, sent after its visit."""

    def after_visits(number, path):
        async def piece():
            await until(lambda: {"/a", "/b"} <= visited(mirror), what="visits")
            # Event times are whole seconds.
            wall.shift_s += 2.0
            return event(number, path, server.origin, at=wall())

        return piece

    return after_visits


def stream(mirror):
    """Return cursor and told_until of the stream."""
    rows = mirror.rows("SELECT cursor, told_until FROM hint_source WHERE kind = 'event_stream'")
    return rows[0] if rows else (None, None)


async def test_a_change_is_reported_as_it_happens(server, start_stream, mirror, wall, edit):
    began_at = wall()
    other = event(8, "/a", "http://elsewhere.test")
    unknown = event(9, "/none", server.origin)
    junk = [framed(10, ["no", "event"]), b"data: {\n\n", b"id: [11]\ndata: \xff\n\n", canary(12)]
    await start_stream(sending(edit(7, "/a"), other, unknown, *junk))
    await until(lambda: reported(mirror), what="hint")
    await until(lambda: stream(mirror)[0] == "[12]", what="cursor")
    assert reported(mirror) == {"/a"}
    assert sources(mirror)["event_stream"] == (0, 0, 1, None)
    assert began_at - 1.0 <= stream(mirror)[1] + DISORDER_S <= wall()


async def test_a_reconnect_continues_after_the_last_id(start_stream, events, mirror, edit):
    quick = b"retry: 10\n\n"
    await start_stream(sending(quick, edit(7, "/a"), stay=False), sending(edit(8, "/b")))
    await until(lambda: "/a" in reported(mirror), what="first hint")
    await until(lambda: len(events.heads) > 1, what="second connection")
    assert events.last_ids() == [None, "[7]"]
    await until(lambda: reported(mirror) == {"/a", "/b"}, what="second hint")


async def test_a_restart_continues_after_the_last_id(server, start_stream, events, mirror, edit):
    events.script = [sending(edit(7, "/a")), sending(edit(8, "/b"))]
    async with trio.open_nursery() as nursery:
        start = mirror.make_start(
            server.origin + "/", once=False, site={"event_stream": events.url}
        )
        running = await nursery.start(run_daemon, start)
        await until(lambda: stream(mirror)[0] == "[7]", what="cursor")
        running.shutdown()
    await start_stream(*events.script)
    await until(lambda: reported(mirror) == {"/a", "/b"}, what="second hint")
    assert events.last_ids() == [None, "[7]"]


async def test_a_silent_stream_is_closed(start_stream, events, mirror):
    running = await start_stream(sending(canary(1)))
    await until(lambda: stream(mirror)[0] == "[1]", what="cursor")
    pieces = []

    async def keep(piece):
        pieces.append(piece)

    with trio.fail_after(TIMEOUT_S):
        over = await running.background.documents.listen(
            documents.DocumentRequest(1, events.url, 0),
            lambda status, headers: keep,
            silence_s=0.2,
        )
    assert (over.trouble, over.pause_s) == ("broken_off", None)
    assert "no data for 0.2 s" in over.detail
    assert b"canary" in b"".join(pieces)


async def test_told_until_does_not_pass_a_gap(start_stream, events, mirror, edit):
    late = time.time() + 250.0  # a little ahead of our clock, and far behind the break
    await start_stream(sending(edit(7, "/a"), stay=False), sending(canary(9, at=late)))
    await until(lambda: stream(mirror)[0] == "[7]", what="first cursor")
    told_until = stream(mirror)[1]
    await until(lambda: stream(mirror)[0] == "[9]", what="second cursor")
    assert stream(mirror)[1] == told_until


async def test_pages_from_before_a_gap_are_possibly_stale(start_stream, mirror, edit):
    ahead = time.time() + 250.0
    after = [canary(number, at=ahead + number) for number in range(9, 19)]
    await start_stream(sending(edit(7, "/a"), stay=False), sending(*after))
    await until(lambda: stream(mirror)[0] == "[18]", what="cursor")
    await until(lambda: reported(mirror) == {"/", "/a", "/b"}, what="doubts")
    kinds = sources(mirror)
    assert kinds["gap"] == (0, 0, 3, None)
    assert kinds["event_stream"][2:] == (1, None)
    assert mirror.rows("SELECT cursor FROM hint_source WHERE kind = 'gap'") == [(None,)]


async def test_a_refused_event_id_is_dropped(start_stream, events, mirror, edit):
    quick = b"retry: 10\n\n"
    steps = [sending(quick, edit(7, "/a"), stay=False), responding(400), sending(edit(8, "/b"))]
    await start_stream(*steps)
    await until(lambda: reported(mirror) == {"/a", "/b"}, what="second hint")
    assert events.last_ids() == [None, "[7]", None]
    assert "?since=" in events.heads[2][""]


async def test_an_empty_stream_is_reconnected_soon(start_stream, mirror):
    await start_stream(sending(stay=False))
    await until(lambda: sources(mirror).get("event_stream", (0,))[0] > 1, what="connections")
    assert sources(mirror)["event_stream"][3] == "ended"


async def test_half_a_surrogate_pair_does_not_end_a_stream(server, start_stream, mirror, edit):
    moved = event(
        7, "/a", server.origin, type="log", log_type="move", log_params={"target": "\ud800"}
    )
    await start_stream(sending(moved, edit(8, "/b")))
    await until(lambda: "/b" in reported(mirror), what="hint")


@pytest.mark.parametrize(
    ("step", "trouble", "pause_s"),
    [
        (responding(404), "status_404", 60.0),
        (responding(503, Retry_After="7200"), "status_503", 7_200.0),
        (responding(200, b"<html>", Content_Type="text/html"), "ended", 60.0),
    ],
)
async def test_a_response_that_is_no_stream_starts_a_back_off(
    start_stream, mirror, step, trouble, pause_s
):
    await start_stream(step)
    await until(lambda: sources(mirror).get("event_stream", (0, 0, 0, None))[3] is not None)
    assert sources(mirror)["event_stream"][3] == trouble
    ((paused_s,),) = mirror.rows("SELECT closed_until - last_poll_at FROM hint_source")
    assert paused_s == pytest.approx(pause_s, abs=30.0)


async def test_a_flood_is_reported_in_full(server, start_stream, mirror, wall, edit):
    count, paths = 20_000, ["/a", "/b", "/none", "/nothing"]

    async def flood():
        await edit(0, "/a")()
        numbers = range(count)
        return b"".join(event(each, paths[each % 4], server.origin, at=wall()) for each in numbers)

    await start_stream(sending(flood))
    await until(lambda: stream(mirror)[0] == f"[{count - 1}]", what="the end of the flood")
    assert reported(mirror) == {"/a", "/b"}
