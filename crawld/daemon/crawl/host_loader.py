"""Loads hosts that wait in the file as those in memory get their first turns."""

from __future__ import annotations

from typing import Final

import trio

from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.store.engine.database import Database
from crawld.store.frontier import load
from crawld.store.frontier.load import WaitingHost

EVERY_S: Final = 1.0

READ_AT_ONCE: Final = 1_024
"""Hosts read at a time, on a reader's thread."""


class HostLoader:
    """The task that loads hosts."""

    def __init__(self, state: CrawlState, database: Database) -> None:
        self._state = state
        self._database = database

    async def run(self) -> None:
        """Load hosts while there is room, until cancelled."""
        while True:
            await self._state.known_hosts.any_left.wait()
            await self.load_some()
            await trio.sleep(EVERY_S)

    async def load_some(self) -> None:
        """Load hosts until none is left in the file, or no more may be in memory."""
        known = self._state.known_hosts
        while (after := known.after) is not None and known.room() >= READ_AT_ONCE:
            known.is_loading = True
            try:
                found = await self._database.read(load.next_hosts, after, READ_AT_ONCE)
                if known.after == after:  # else those that were skipped come again
                    is_all = len(found) < READ_AT_ONCE
                    known.loaded_up_to(None if is_all else found[-1].host_id)
                await self._enter(found)
            finally:
                known.is_loading = False

    async def _enter(self, found: list[WaitingHost]) -> None:
        slices = LoopSlices()
        for part in parts_of(found):
            for host in part:
                self._enter_host(host)
            await slices.pause()

    def _enter_host(self, found: WaitingHost) -> None:
        """Let a host have the queues of its never-visited pages.

        One that is in memory for another reason does not know its pages yet.
        """
        state = self._state
        is_active = any(each.site_id in state.active for each in found.waiting)
        if found.host not in state.hosts and not is_active:
            if found.waiting:
                state.known_hosts.skip(found.host_id)
            return
        host = state.enter_host(found.host_id, found.host)
        for each in (each for each in found.waiting if each.site_id in state.sites):
            state.pages_of(host, each.site_id, requisites=each.requisites).ahead.note_more()
        state.schedule.wake(host.slot)
