"""Run crawld as a benchmark measures it: in its own process, by its command line.

While it runs, its control socket is read; afterwards its database, by the store's functions.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

import apsw
import httpx
import trio

from crawld.bench.process import Child, program_error, run_child
from crawld.core.page import Outcome
from crawld.store import visit_log
from crawld.store.engine.database import Database

_START_S = 120.0
_RESPONSE_S = 30.0
_MAX_VISITS = 10_000_000

Status = Mapping[str, object]


def command(*arguments: str) -> list[str]:
    """Return the command line of `crawld ARGUMENTS` for this Python."""
    return [sys.executable, "-c", "from crawld.cli.main import main; main()", *arguments]


def write_config(
    directory: Path,
    name: str,
    seeds: Sequence[str],
    tables: Mapping[str, str],
    site: Sequence[str] = (),
) -> Path:
    """Write a config of one site on loopback and return its path.

    Args:
        directory: for config, database (`mirror.db`) and socket (`mirror.sock`).
        name: name of the site.
        seeds: URLs.
        tables: config table to its lines, besides `[daemon]`.
        site: more config lines of the site.
    """
    (directory / "seeds.txt").write_text("\n".join(seeds) + "\n", encoding="utf-8")
    blocks = {
        "[daemon]": f'db = "{database_path(directory)}"\nlog_level = "error"',
        **{f"[{table}]": lines for table, lines in tables.items()},
        "[[site]]": f'name = "{name}"\nseeds_file = "{directory}/seeds.txt"\nallow_private = true'
        # The peers load no images or styles either.
        "\nrequisites = false" + "".join(f"\n{line}" for line in site),
    }
    path = directory / "crawld.toml"
    text = "\n\n".join(f"{head}\n{lines}" for head, lines in blocks.items())
    path.write_text(text + "\n", encoding="utf-8")
    return path


def database_path(directory: Path) -> Path:
    """Return the path of the database in a directory."""
    return directory / "mirror.db"


class DaemonProcess:
    """A running daemon and its control socket."""

    def __init__(self, child: Child, path: Path) -> None:
        self.child = child
        self._path = path
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(path)),
            base_url="http://crawld",
            timeout=_RESPONSE_S,
            trust_env=False,
        )

    def status(self) -> Status | None:
        """Return what `crawlctl status` shows; None if the socket does not answer."""
        found = self.get("/status")
        return found if isinstance(found, dict) else None

    def get(self, target: str) -> object:
        """Return the JSON of a target; None if it does not answer, or with an error."""
        return self._request("GET", target)

    def command(self, target: str, form: Mapping[str, object] | None = None) -> object:
        """Give a command and return its JSON, like `get`."""
        return self._request("POST", target, form)

    def _request(
        self, method: str, target: str, form: Mapping[str, object] | None = None
    ) -> object:
        if not self._listening():
            return None
        try:
            response = self._http.request(method, target, json=form)
        except httpx.TransportError:
            return None
        return json.loads(response.content) if response.is_success else None

    def wait_answering(self) -> Status:
        """Wait for the daemon's first status and return it.

        Raises:
            OperatorError: it ended, or did not answer in time.
        """
        until_s = time.monotonic() + _START_S
        while time.monotonic() < until_s and self.child.running(for_ms=5):
            if (status := self.status()) is not None:
                return status
        raise program_error("crawld", "does not answer on its control socket", self.child)

    def _listening(self) -> bool:
        # httpx leaves a socket open for ever if nobody listens.
        with closing(socket.socket(socket.AF_UNIX)) as probe:
            return probe.connect_ex(str(self._path)) == 0

    def close(self) -> None:
        """Close the client."""
        self._http.close()


@contextmanager
def run_daemon_process(config: Path) -> Iterator[DaemonProcess]:
    """Run `crawld run` until the block ends."""
    directory = config.parent
    path = directory / "mirror.sock"  # overrides the environment
    started = command("run", "--config", str(config), "--socket", str(path))
    with run_child(started, directory) as child:
        handle = DaemonProcess(child, path)
        try:
            yield handle
        finally:
            handle.close()


def visits_made(status: Status) -> int:
    """Return how many visits a daemon has made since its start."""
    return sum(cast("Mapping[str, int]", status["visits"]).values())


def count_visits(directory: Path) -> dict[Outcome, int]:
    """Return the number of visits per outcome in the database of a directory."""

    def count(connection: apsw.Connection) -> dict[Outcome, int]:
        return {
            outcome: len(visit_log.log(connection, after=0, limit=_MAX_VISITS, outcome=outcome))
            for outcome in Outcome
        }

    async def read() -> dict[Outcome, int]:
        async with await Database.open(database_path(directory), read_only=True) as database:
            return await database.read(count)

    return trio.run(read)
