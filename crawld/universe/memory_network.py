"""What every simulated network has: drawn latencies, a control socket, connections in memory."""

from __future__ import annotations

import random
from pathlib import Path

from crawld.net.listener import Listener
from crawld.universe.control import MemoryListener
from crawld.universe.memory_stream import MemoryStream


class MemoryNetwork:
    """The part of a daemon's `Network` that no web changes.

    Args:
        rng: draws latencies.
        mean_latency_s: their mean.

    Attributes:
        control: the control socket; None: it is not open.
    """

    def __init__(self, rng: random.Random, mean_latency_s: float) -> None:
        self._rng = rng
        self._mean_latency_s = mean_latency_s
        self._opened: list[MemoryStream] = []
        self.control: MemoryListener | None = None

    def left_open(self) -> int:
        """Return how many connections of the daemon are not closed."""
        return sum(not stream.is_closed for stream in self._opened)

    def listen_tcp(self, host: str, port: int) -> Listener:
        """Return a listener without clients."""
        return MemoryListener(f"http://{host}:{port}/")

    def listen_unix(self, path: Path, group: str | None) -> Listener:
        """Return the control socket."""
        del group
        self.control = MemoryListener(f"unix:{path}")
        return self.control

    def _latency_s(self) -> float:
        return self._rng.expovariate(1.0 / self._mean_latency_s)
