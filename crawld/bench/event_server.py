"""Server of change events at a constant rate, for `crawld bench stream`; runs in its own process.

Events are prepared in advance; only time and number are filled in when they are sent, so the daemon
is the limit. Each event is its own chunk, as from servers that flush after each event.

    python -m crawld.bench.event_server --host 127.0.0.1 --url-prefix http://127.0.0.2:80/held/
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from functools import partial

import trio

_TICK_S = 0.02
_PREPARED = 20_000
_SECOND = b"@@second@@"
_ID_DIGITS = 12
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_ROBOTS = b"HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n"


def prepare_events(prefix: str, pages: int, share: float) -> list[tuple[bytes, bytes]]:
    """Return events in Wikimedia's format, split at their ids; a share names stored pages."""
    rng = random.Random(5)
    events = []
    for number in range(_PREPARED):
        page = rng.randrange(pages)
        held = rng.random() < share
        url = f"{prefix}{page}" if held else f"https://w{page % 300}.example.org/wiki/Page_{page}"
        events.append(_chunk(number, url))
    return events


def _chunk(number: int, url: str) -> tuple[bytes, bytes]:
    event = {
        "$schema": "/mediawiki/recentchange/1.0.0",
        "meta": {"uri": url, "id": f"{number:032x}", "domain": "w.example.org", "partition": 0},
        "id": number,
        "type": "edit",
        "namespace": 0,
        "title": url.rpartition("/")[2],
        "title_url": url,
        "comment": "a comment as long as they are, with a link to what was changed " * 4,
        "timestamp": _SECOND.decode(),
        "user": "Somebody",
        "revision": {"old": number, "new": number + 1},
        "parsedcomment": '<a href="/wiki/Somewhere">a comment as long as they are</a> ' * 7,
        "wiki": "awiki",
    }
    data = json.dumps(event).replace(f'"{_SECOND.decode()}"', _SECOND.decode()).encode()
    after = b"\ndata: " + data + b"\n\n"
    size = len(b"id: ") + _ID_DIGITS + len(after)
    return b"%x\r\nid: " % size, after + b"\r\n"


async def _serve_client(
    events: Sequence[tuple[bytes, bytes]], per_s: int, stream: trio.SocketStream
) -> None:
    head = await stream.receive_some(65_536)
    if b"/robots.txt" in head:
        await stream.send_all(_ROBOTS)
        return
    await stream.send_all(_HEAD)
    began_at, sent = time.monotonic(), 0
    while True:
        await trio.sleep(_TICK_S)
        # Events that could not be sent in time are sent later: the reader limits the rate.
        due = min(int((time.monotonic() - began_at) * per_s), sent + per_s)
        numbered = ((number, *events[number % _PREPARED]) for number in range(sent, due))
        block = b"".join(b"%b%0*d%b" % (a, _ID_DIGITS, n, b) for n, a, b in numbered)
        sent = due
        await stream.send_all(block.replace(_SECOND, b"%010d" % int(time.time())))


async def _serve(arguments: argparse.Namespace) -> None:
    events = prepare_events(arguments.url_prefix, arguments.pages, arguments.share)
    listeners = await trio.open_tcp_listeners(0, host=arguments.host)
    print("PORT", listeners[0].socket.getsockname()[1], flush=True)
    await trio.serve_listeners(partial(_serve_connection, events, arguments.per_s), listeners)


async def _serve_connection(
    events: Sequence[tuple[bytes, bytes]], per_s: int, stream: trio.SocketStream
) -> None:
    try:
        await _serve_client(events, per_s, stream)
    except trio.BrokenResourceError:
        await stream.aclose()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--url-prefix", required=True, help="URL prefix of the stored pages")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--share", type=float, default=0.05, help="share of events that name them")
    parser.add_argument("--per-s", type=int, default=10_000)
    trio.run(_serve, parser.parse_args())


if __name__ == "__main__":
    main()
