"""`python -m crawld.simweb.hostile.world DIRECTORY [CASE ...]`: hostile servers in a process.

Makes the bytes of the named cases (of all, without names), then serves them, prints `PORT n`, and
runs until it is terminated. The directory gets `ports.json` (port of each transport and of the name
server), `authority.pem` (to be trusted by the client) and `ledger.jsonl` (every request, and every
connection of a case that reads none).
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

import trio

from crawld.simweb.hostile.case import Connection, HostileCase, Place, Transport
from crawld.simweb.hostile.catalogue import CASES, address_of
from crawld.simweb.hostile.names import FAST_ADDRESS, VAULT_ADDRESS, serve_names
from crawld.simweb.hostile.serving import BROKEN_CONNECTION, Authority, CaseSite, LeafSite
from crawld.simweb.ledger import Ledger, LedgerRow
from crawld.simweb.server import SimWeb


class ConnectionServer:
    """The cases that speak from the first byte of a connection on, by their addresses."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._cases: dict[str, tuple[HostileCase, Connection]] = {}

    def add(self, address: str, case: HostileCase, connection: Connection) -> None:
        """Add a case; works while serving."""
        self._cases[address] = case, connection

    async def accept(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its end."""
        local, peer = stream.socket.getsockname()[0], stream.socket.getpeername()[0]
        case, connection = self._cases.get(local, (None, None))
        if case is not None and connection is not None:
            now_s = trio.current_time()
            self._ledger.record(
                LedgerRow(now_s, now_s, time.time(), case.host, peer, local, "(connection)", 0)
            )
            try:
                await connection(stream)
            except* BROKEN_CONNECTION:
                pass
            except* Exception as errors:
                # A bug of one case must not end the servers of the others; tests look for it.
                traceback.print_exception(errors)
        await trio.aclose_forcefully(stream)


async def serve(directory: Path, names: Iterable[str], ready: Callable[[], None]) -> None:
    """Serve the named cases until cancelled; call `ready` when all of them are."""
    ledger = Ledger(directory / "ledger.jsonl")
    web = SimWeb((LeafSite((FAST_ADDRESS, VAULT_ADDRESS)),), ledger=ledger, any_loopback=True)
    connections = ConnectionServer(ledger)
    authority = Authority()
    authority.trusted.cert_pem.write_to_path(str(directory / "authority.pem"))
    async with trio.open_nursery() as nursery:
        ports = {
            Transport.HTTP: (await nursery.start(web.serve)).port,
            Transport.RAW: await _listen(nursery, connections),
            Transport.TLS: await _listen(nursery, connections),
        }
        name_port = await nursery.start(serve_names)
        vault = f"http://{VAULT_ADDRESS}:{ports[Transport.HTTP]}/"
        for name in names:
            case = CASES[name]
            place = Place(case.host, ports[case.transport], vault, authority.context)
            address = address_of(name)
            if case.respond is not None:
                web.add(CaseSite((case.host, address), case, case.respond(place)))
            if case.connect is not None:
                connections.add(address, case, case.connect(place))
        (directory / "ports.json").write_text(json.dumps({**ports, "names": name_port}))
        ready()
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                nursery.cancel_scope.cancel()
    ledger.close()


async def _listen(nursery: trio.Nursery, connections: ConnectionServer) -> int:
    listeners = await trio.open_tcp_listeners(0, host="0.0.0.0")
    nursery.start_soon(trio.serve_listeners, connections.accept, listeners)
    port: int = listeners[0].socket.getsockname()[1]
    return port


def main(arguments: list[str] | None = None) -> None:
    """Serve the cases that the command line names."""
    directory, *names = sys.argv[1:] if arguments is None else arguments
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    trio.run(serve, Path(directory), names or list(CASES), lambda: print("PORT 0", flush=True))


if __name__ == "__main__":
    main()
