"""Browsers that hold live figures, and readers that poll a feed, on a thread of their own."""

from __future__ import annotations

import threading
import time
from typing import Final

import httpx
import trio

FEED: Final = "/changes.json"

READERS: Final = 8
"""Connections that poll the feed; each waits for its answer."""

START_S: Final = 60.0
"""How long the first event of every stream is awaited."""

_STOP_CHECK_S: Final = 0.1


class LiveClients:
    """Listens and polls as long as its block runs, which begins when every stream got an event.

    Attributes:
        listening: streams that got events and were open at the end of the block.
        polls: answers of the feed; `failed` of them were none.
        seen: when the feed first held an event (Unix seconds), by the id of the event.
    """

    def __init__(self, url: str, live: str, *, clients: int, polls_per_s: float) -> None:
        self.listening = 0
        self.polls = 0
        self.failed = 0
        self.seen: dict[int, float] = {}
        self._url, self._live = url, live
        self._clients, self._polls_per_s = clients, polls_per_s
        self._heard: set[int] = set()
        self._all_heard = threading.Event()
        self._stop = threading.Event()
        self._began_s = 0.0
        self._thread = threading.Thread(target=trio.run, args=(self._run,), daemon=True)

    def __enter__(self) -> LiveClients:
        self._began_s = time.monotonic()
        self._thread.start()
        self._all_heard.wait(START_S)
        return self

    def __exit__(self, *_: object) -> None:
        ended_s = time.monotonic()
        self.listening = len(self._heard)
        self.polls_per_s = self.polls / (ended_s - self._began_s)
        self._stop.set()
        self._thread.join(10.0)

    async def _run(self) -> None:
        limits = httpx.Limits(max_connections=None)
        async with (
            httpx.AsyncClient(base_url=self._url, limits=limits, timeout=60.0) as http,
            trio.open_nursery() as nursery,
        ):
            for number in range(self._clients):
                nursery.start_soon(self._listen, http, number)
            for number in range(READERS):
                nursery.start_soon(self._poll, http, number)
            while not self._stop.is_set():  # noqa: ASYNC110 (set by another thread)
                await trio.sleep(_STOP_CHECK_S)
            nursery.cancel_scope.cancel()

    async def _listen(self, http: httpx.AsyncClient, number: int) -> None:
        while True:
            try:
                async with http.stream("GET", self._live) as stream:
                    async for part in stream.aiter_bytes():
                        if b"data: " in part:
                            self._hear(number)
            except httpx.TransportError:
                pass
            self._heard.discard(number)
            await trio.sleep(1.0)

    def _hear(self, number: int) -> None:
        self._heard.add(number)
        if len(self._heard) == self._clients:
            self._all_heard.set()

    async def _poll(self, http: httpx.AsyncClient, number: int) -> None:
        every_s = READERS / self._polls_per_s
        at = trio.current_time() + every_s * number / READERS
        etag = ""
        while True:
            await trio.sleep_until(at)
            at += every_s
            try:
                answer = await http.get(FEED, headers={"If-None-Match": etag} if etag else {})
            except httpx.TransportError:
                self.failed += 1
                continue
            self.polls += 1
            etag = answer.headers.get("etag", "")
            if answer.status_code == httpx.codes.OK:
                now = time.time()
                for item in answer.json().get("items", []):
                    self.seen.setdefault(int(str(item["id"]).rpartition(":")[2]), now)
            elif answer.status_code != httpx.codes.NOT_MODIFIED:
                self.failed += 1
