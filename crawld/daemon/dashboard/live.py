"""Live figures as server-sent events: made once a second for all clients together.

A client gets the newest event when it has read the last one: nothing is queued for it, and one that
does not read is dropped by the server (`stall_s`). While nobody listens, nothing is made.

Source: HTML Standard, section "Server-sent events".
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog
import trio

from crawld.daemon.dashboard.overview import Overview, live_values
from crawld.dashboard.rendering import SECURITY
from crawld.dashboard.words import ago
from crawld.web.reply import header

log = structlog.get_logger(__name__)

EVERY_S: Final = 1.0

RETRY_MS: Final = 3_000
"""When a browser connects again after the end of a stream."""

LONGEST_S: Final = 1_800.0
"""How long a stream lasts; then its client connects again."""

_HEAD: Final = [header("content-type", "text/event-stream"), *SECURITY]

Send = Callable[[dict[str, Any]], Awaitable[None]]


class LiveFigures:
    """Makes the events, and sends them to clients.

    Attributes:
        clients: open streams.
        made: events made so far.
    """

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._event = b""
        self._new = trio.Event()
        self._wanted = trio.Event()
        self.clients = 0
        self.made = 0

    async def run(self) -> None:
        """Make an event each second while somebody listens, until cancelled."""
        while True:
            if not self.clients:
                self._wanted = trio.Event()
                await self._wanted.wait()
            began_at = trio.current_time()
            await self._make()
            await trio.sleep_until(began_at + EVERY_S)

    async def send_to(self, send: Send) -> None:
        """Send events to a client until it is gone (ASGI).

        Raises:
            OSError: the client is gone, or does not read.
        """
        self.clients += 1
        self._wanted.set()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEAD})
            await _send_part(send, b"retry: %d\n\n" % RETRY_MS)
            with trio.move_on_after(LONGEST_S):
                while True:
                    new = self._new
                    if self._event:
                        await _send_part(send, self._event)
                    await new.wait()
            await send({"type": "http.response.body"})
        finally:
            self.clients -= 1

    async def _make(self) -> None:
        try:
            facts = await self._overview.facts()
        except Exception as error:
            # A failed read must not end the figures of all clients.
            log.error("live_figures_failed", why=str(error))
            return
        data: dict[str, Any] = {
            "values": live_values(facts),
            "concerns": [
                {
                    "severity": each.severity,
                    "text": each.text,
                    "remedy": each.remedy,
                    "target": each.target,
                }
                for each in facts.concerns[:20]
            ],
        }
        data["changes"] = [
            {
                "kind": each.kind,
                "title": each.title,
                "target": each.target,
                "details": each.details,
                "ago": ago(each.at, facts.status.now),
            }
            for each in facts.changes.shown
        ]
        # ASCII only: no line separator of any alphabet ends the line.
        self._event = b"data: %s\n\n" % json.dumps(data).encode("ascii")
        self.made += 1
        self._new.set()
        self._new = trio.Event()


async def _send_part(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
