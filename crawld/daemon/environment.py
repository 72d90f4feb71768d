"""External dependencies of the daemon: clock, randomness, network and threads.

All four are passed in at start, so that a simulation can provide its own. Trio's clock, which
counts intervals, is passed to `trio.run`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from crawld.config.model import Config
from crawld.daemon.clock import Clock
from crawld.net.network import Network, SystemNetwork
from crawld.net.resolver import NameserverLookup, SystemLookup
from crawld.workers import THREADS, Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The four dependencies; a simulation replaces them.

    Attributes:
        clock: the wall clock and trio's clock.
        rng: the one source of randomness; a seeded one repeats a run.
        workers: runs work outside the event loop.
        network: connects, resolves and listens; None: the operating system's, as configured.
    """

    clock: Clock = field(default_factory=Clock)
    rng: random.Random = field(default_factory=random.Random)
    workers: Workers = THREADS
    network: Network | None = None

    def network_for(self, config: Config) -> Network:
        """Return the network, with the name servers of a config where it is the system's."""
        if self.network is not None:
            return self.network
        if config.dns.nameservers:
            nameservers = NameserverLookup(config.dns.nameservers, config.dns.nameserver_port)
            return SystemNetwork(nameservers)
        return SystemNetwork(SystemLookup(self.workers))
