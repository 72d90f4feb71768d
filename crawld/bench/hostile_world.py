"""Run the hostile web in its own process, and write the config of a daemon that crawls it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crawld.bench.process import run_child
from crawld.bench.simweb_process import wait_port
from crawld.simweb.hostile.case import HostileCase, Transport
from crawld.simweb.hostile.catalogue import CASES, address_of
from crawld.simweb.ledger import Ledger

HEALTHY_HOST = "healthy.test"
MAX_MEMORY_BYTES = 256 * 2**20
_START_S = 300.0
# Of each hostile host, unless the case says otherwise.
_SITE = {"allow_private": "true", "max_pages": "40", "max_requisites": "40"}
_PORT_OF = {Transport.HTTP: "http", Transport.RAW: "raw", Transport.TLS: "tls"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one request, and the delays.

    Attributes:
        total_s: time of a whole request; the others are shares of it.
        healthy_delay_s: delay of the healthy host.
        delay_s: delay of each hostile host.
        max_memory_bytes: budget of the daemon; None: its default.
    """

    total_s: float = 8.0
    healthy_delay_s: float = 0.25
    delay_s: float = 0.05
    max_memory_bytes: int | None = MAX_MEMORY_BYTES

    def lines(self) -> str:
        """Return the lines of `[fetch]`."""
        return (
            f"connect_s = {self.total_s / 4}\nheader_s = {self.total_s / 2}\n"
            f"stall_s = {self.total_s / 4}\ntotal_s = {self.total_s}\nhttp2 = true"
        )

    def deadline_s(self, case: HostileCase) -> float:
        """Return the longest time from the first request of a case to its outcome."""
        return case.wait * (self.total_s + self.delay_s) + 1.0


@dataclass(frozen=True, slots=True)
class HostileWorld:
    """A running hostile web.

    Attributes:
        directory: where its ledger and its certificate authority are.
        ports: port of each transport and of its name server.
    """

    directory: Path
    ports: dict[str, int]

    @property
    def authority(self) -> Path:
        """The certificates that a client has to trust."""
        return self.directory / "authority.pem"

    def output(self) -> str:
        """Return what it printed: bugs of its cases."""
        return (self.directory / "output.txt").read_text(encoding="utf-8", errors="replace")

    def ledger(self) -> Ledger:
        """Return every request so far."""
        return Ledger.read(self.directory / "ledger.jsonl")

    def url(self, case: HostileCase) -> str:
        """Return the URL of a case's page."""
        return f"{self._origin(case)}{case.path}"

    def _origin(self, case: HostileCase) -> str:
        return f"{case.scheme}://{case.host}:{self.ports[_PORT_OF[case.transport]]}"

    def site(self, case: HostileCase, limits: Limits) -> str:
        """Return the `[[site]]` of a case."""
        return case.site_table(self._origin(case), host_delay_s=limits.delay_s, **_SITE)


@contextmanager
def run_hostile_world(directory: Path, names: Sequence[str]) -> Iterator[HostileWorld]:
    """Run the hostile web of some cases until the block ends."""
    directory.mkdir(parents=True)
    command = [sys.executable, "-m", "crawld.simweb.hostile.world", str(directory), *names]
    with run_child(command, directory) as child:
        wait_port(child, _START_S)
        ports = json.loads((directory / "ports.json").read_text(encoding="utf-8"))
        yield HostileWorld(directory, ports)


def write_config(
    directory: Path,
    world: HostileWorld,
    cases: Iterable[HostileCase],
    limits: Limits,
    *,
    healthy_seeds: Sequence[str] = (),
    web_port: int | None = None,
) -> Path:
    """Write the config of a daemon that crawls the cases, and perhaps a healthy host.

    It resolves all cases, also those that are not its sites yet, so that a reload can add them.
    """
    hosts = {case.host: address_of(case.name) for case in CASES.values()}
    hosts[HEALTHY_HOST] = "127.0.0.1"
    daemon = [f'db = "{directory}/mirror.db"', 'log_level = "warning"', 'contact = "a@test"']
    if limits.max_memory_bytes is not None:
        daemon.append(f"max_memory = {limits.max_memory_bytes}")
    tables = {
        "daemon": "\n".join(daemon),
        "dns": f'nameservers = ["127.0.0.1"]\nnameserver_port = {world.ports["names"]}\n'
        + "[dns.hosts]\n"
        + "\n".join(f'"{host}" = ["{address}"]' for host, address in hosts.items()),
        "fetch": limits.lines(),
        "politeness": "address_delay_s = 0.0",
        "store": "min_free_bytes = 0",
    }
    if web_port is not None:
        tables["web"] = f'listen = "127.0.0.1:{web_port}"'
    blocks = [f"[{table}]\n{lines}" for table, lines in tables.items()]
    if healthy_seeds:
        seeds = ", ".join(f'"{seed}"' for seed in healthy_seeds)
        blocks.append(
            f'[[site]]\nname = "healthy"\nseeds = [{seeds}]\nallow_private = true\n'
            f"requisites = false\nhost_delay_s = {limits.healthy_delay_s}"
        )
    blocks += [world.site(case, limits) for case in cases]
    path = directory / "crawld.toml"
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


def trusting(world: HostileWorld, command: Sequence[str]) -> list[str]:
    """Return a command that trusts the authority of the hostile web."""
    return ["env", f"SSL_CERT_FILE={world.authority}", *command]
