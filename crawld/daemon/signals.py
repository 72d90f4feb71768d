"""Obey the signals of the operator: SIGTERM and SIGINT drain, then end at once; SIGHUP reloads."""

from __future__ import annotations

import signal
from typing import Protocol

import structlog
import trio

from crawld.daemon.phase import Phase
from crawld.errors import CrawldError

log = structlog.get_logger(__name__)


class Obedient(Protocol):
    """What signals are for: the daemon."""

    @property
    def phase(self) -> Phase:
        """How far it is."""

    def shutdown(self) -> None:
        """Start no more turns, and end when those under way are recorded."""

    def stop_now(self) -> None:
        """Shut down without waiting for turns."""

    async def reload(self) -> list[str]:
        """Read the config again."""


async def obey_signals(daemon: Obedient) -> None:
    """Do what signals say, until cancelled."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            if number == signal.SIGHUP:
                await _reload(daemon)
            elif daemon.phase in ("starting", "running"):
                log.info("draining", hint="send the signal again to end at once")
                daemon.shutdown()
            else:
                daemon.stop_now()


async def _reload(daemon: Obedient) -> None:
    try:
        await daemon.reload()
    except CrawldError as error:
        log.error("reload_refused", why=error.message, hint=error.hint)
