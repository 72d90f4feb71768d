"""An event stream heard by a whole daemon: breaks, stalls, floods, gaps, and what is no stream."""

import time

import pytest
import trio

from crawld.daemon.hints import documents as asking
from crawld.daemon.hints.events import DISORDER_S
from crawld.daemon.run import run_daemon
from tests.daemon.hints.event_server import Wire, answering, canary, event, framed, saying
from tests.daemon.hints.test_documents import lay, sources, told, visited
from tests.daemon.whole_daemon import PATIENCE_S, until


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    """Let a broken stream be connected again, and what it said be delivered, within 0.1 s."""
    monkeypatch.setattr("crawld.daemon.hints.events.RECONNECT_S", 0.1)
    monkeypatch.setattr("crawld.daemon.hints.events.BATCH_S", 0.1)


@pytest.fixture
async def wire(nursery):
    """A server of events."""
    made = Wire()
    await nursery.start(made.serve)
    return made


@pytest.fixture
def listening(desk, wire, daemon):
    """Return a function that starts a daemon with /a and /b to visit, and the stream to hear."""

    lay(desk, "/a", "/b")
    desk.put("/", '<a href="/a">a</a><a href="/b">b</a>')

    async def start(*script):
        wire.script = list(script)
        return await daemon(desk.origin + "/", site={"event_stream": wire.url})

    return start


@pytest.fixture
def edit(desk, mirror, wall):
    """Return a function that makes a piece: an edit of a page after its visit."""

    def after_visits(number, path):
        async def said():
            await until(lambda: {"/a", "/b"} <= visited(mirror), what="visits")
            # Streams tell whole seconds.
            wall.shift_s += 2.0
            return event(number, path, desk.origin, at=wall())

        return said

    return after_visits


def stream(mirror):
    """Return cursor and told_until of the stream."""
    rows = mirror.rows("SELECT cursor, told_until FROM hint_source WHERE kind = 'event_stream'")
    return rows[0] if rows else (None, None)


async def test_a_change_is_reported_as_it_happens(desk, listening, mirror, wall, edit):
    began_at = wall()
    other = event(8, "/a", "http://elsewhere.test")
    unknown = event(9, "/none", desk.origin)
    junk = [framed(10, ["no", "event"]), b"data: {\n\n", b"id: [11]\ndata: \xff\n\n", canary(12)]
    await listening(saying(edit(7, "/a"), other, unknown, *junk))
    await until(lambda: told(mirror), what="hint")
    await until(lambda: stream(mirror)[0] == "[12]", what="cursor")
    assert told(mirror) == {"/a"}
    assert sources(mirror)["event_stream"] == (0, 0, 1, None)
    assert began_at - 1.0 <= stream(mirror)[1] + DISORDER_S <= wall()


async def test_a_reconnect_continues_after_the_last_id(listening, wire, mirror, edit):
    quick = b"retry: 10\n\n"
    await listening(saying(quick, edit(7, "/a"), stay=False), saying(edit(8, "/b")))
    await until(lambda: "/a" in told(mirror), what="first hint")
    await until(lambda: len(wire.heads) > 1, what="second connection")
    assert wire.last_ids() == [None, "[7]"]
    await until(lambda: told(mirror) == {"/a", "/b"}, what="second hint")


async def test_a_restart_continues_after_the_last_id(desk, listening, wire, mirror, edit):
    wire.script = [saying(edit(7, "/a")), saying(edit(8, "/b"))]
    async with trio.open_nursery() as nursery:
        start = mirror.start_of(desk.origin + "/", once=False, site={"event_stream": wire.url})
        running = await nursery.start(run_daemon, start)
        await until(lambda: stream(mirror)[0] == "[7]", what="cursor")
        running.shutdown()
    await listening(*wire.script)
    await until(lambda: told(mirror) == {"/a", "/b"}, what="second hint")
    assert wire.last_ids() == [None, "[7]"]


async def test_a_silent_stream_is_closed(listening, wire, mirror):
    running = await listening(saying(canary(1)))
    await until(lambda: stream(mirror)[0] == "[1]", what="cursor")
    pieces = []

    async def keep(piece):
        pieces.append(piece)

    with trio.fail_after(PATIENCE_S):
        over = await running.documents.listen(
            asking.DocumentRequest(1, wire.url, 0), lambda status, headers: keep, silence_s=0.2
        )
    assert (over.trouble, over.pause_s) == ("broken_off", None)
    assert "no data for 0.2 s" in over.detail
    assert b"canary" in b"".join(pieces)


async def test_told_until_does_not_pass_a_gap(listening, wire, mirror, edit):
    late = time.time() + 250.0  # a little ahead of our clock, and far behind the break
    await listening(saying(edit(7, "/a"), stay=False), saying(canary(9, at=late)))
    await until(lambda: stream(mirror)[0] == "[7]", what="first cursor")
    told_until = stream(mirror)[1]
    await until(lambda: stream(mirror)[0] == "[9]", what="second cursor")
    assert stream(mirror)[1] == told_until


async def test_pages_from_before_a_gap_are_possibly_stale(listening, mirror, edit):
    ahead = time.time() + 250.0
    after = [canary(number, at=ahead + number) for number in range(9, 19)]
    await listening(saying(edit(7, "/a"), stay=False), saying(*after))
    await until(lambda: stream(mirror)[0] == "[18]", what="cursor")
    await until(lambda: told(mirror) == {"/", "/a", "/b"}, what="doubts")
    kinds = sources(mirror)
    assert kinds["gap"] == (0, 0, 3, None)
    assert kinds["event_stream"][2:] == (1, None)
    assert mirror.rows("SELECT cursor FROM hint_source WHERE kind = 'gap'") == [(None,)]


async def test_a_refused_event_id_is_dropped(listening, wire, mirror, edit):
    quick = b"retry: 10\n\n"
    steps = [saying(quick, edit(7, "/a"), stay=False), answering(400), saying(edit(8, "/b"))]
    await listening(*steps)
    await until(lambda: told(mirror) == {"/a", "/b"}, what="second hint")
    assert wire.last_ids() == [None, "[7]", None]
    assert "?since=" in wire.heads[2][""]


async def test_an_empty_stream_is_reconnected_soon(listening, mirror):
    await listening(saying(stay=False))
    await until(lambda: sources(mirror).get("event_stream", (0,))[0] > 1, what="connections")
    assert sources(mirror)["event_stream"][3] == "ended"


async def test_half_a_surrogate_pair_does_not_end_a_stream(desk, listening, mirror, edit):
    moved = event(
        7, "/a", desk.origin, type="log", log_type="move", log_params={"target": "\ud800"}
    )
    await listening(saying(moved, edit(8, "/b")))
    await until(lambda: "/b" in told(mirror), what="hint")


@pytest.mark.parametrize(
    ("step", "trouble", "pause_s"),
    [
        (answering(404), "status_404", 60.0),
        (answering(503, Retry_After="7200"), "status_503", 7_200.0),
        (answering(200, b"<html>", Content_Type="text/html"), "ended", 60.0),
    ],
)
async def test_a_response_that_is_no_stream_starts_a_back_off(
    listening, mirror, step, trouble, pause_s
):
    await listening(step)
    await until(lambda: sources(mirror).get("event_stream", (0, 0, 0, None))[3] is not None)
    assert sources(mirror)["event_stream"][3] == trouble
    ((paused_s,),) = mirror.rows("SELECT closed_until - last_poll_at FROM hint_source")
    assert paused_s == pytest.approx(pause_s, abs=30.0)


async def test_a_flood_is_reported_in_full(desk, listening, mirror, wall, edit):
    count, paths = 20_000, ["/a", "/b", "/none", "/nothing"]

    async def flood():
        await edit(0, "/a")()
        numbers = range(count)
        return b"".join(event(each, paths[each % 4], desk.origin, at=wall()) for each in numbers)

    await listening(saying(flood))
    await until(lambda: stream(mirror)[0] == f"[{count - 1}]", what="the end of the flood")
    assert told(mirror) == {"/a", "/b"}
