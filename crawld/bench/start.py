"""Time to start on a large database: from process start until the control socket answers.

The database is made by the store's own functions: nine of ten pages were visited and wait for their
revisit, one of ten waits for its first visit. The file is in the page cache, as after a restart.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import apsw
import trio

from crawld.bench import crawld_process
from crawld.bench.process import program_error
from crawld.bench.result import Metrics, medians
from crawld.bench.stored_visit import page_response
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.page import Outcome, PageState
from crawld.core.units import DAY_S
from crawld.simweb.demo import loopback_addresses
from crawld.simweb.stateless_random import uniform
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import body
from crawld.store.visit import VisitRecord

KNOWN_SITE = "known"
_PORT = 9  # discard port: nothing answers, and the daemon is stopped before it fetches
_HISTORY_S = 30 * DAY_S
_BODY_BYTES = 26_000
ETAG = '"6b012e4c-6590"'
"""As nginx writes it: modification time and size of a file."""
_BODY = body.encode(b"<!doctype html><title>Page</title>")
_WRITE_PAGES = 20_000


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """What a database holds.

    Attributes:
        pages: number of pages.
        hosts: number of hosts.
        unvisited_every: one of so many pages waits for its first visit; 0: none.
        port: of all hosts.
        copies: whether visited pages have a stored copy and a change model, as after a crawl: a
            daemon asks for them with conditions, and its jobs read their models.
        starts: how many starts are measured.
    """

    pages: int = 1_000_000
    hosts: int = 10_000
    unvisited_every: int = 10
    port: int = _PORT
    copies: bool = False
    starts: int = 3


def measure(directory: Path, size: DatabaseSize) -> Metrics:
    """Make the database, start daemons on it, and return the median time until one answers."""
    directory = directory / "start"
    directory.mkdir()
    addresses = loopback_addresses(size.hosts)
    config = crawld_process.write_config(
        directory, KNOWN_SITE, [known_url(addresses[0], 0)], {"politeness": "host_delay_s = 900.0"}
    )
    trio.run(fill_known_pages, crawld_process.database_path(directory), size, addresses)
    return medians([_start(config, size) for _ in range(size.starts)])


def _start(config: Path, size: DatabaseSize) -> Metrics:
    with crawld_process.run_daemon_process(config) as daemon:
        status = daemon.wait_answering()
        answered_s = time.monotonic() - daemon.child.started_s
        if status["pages_in_all"] != size.pages:
            raise program_error("crawld", f"knows {status['pages_in_all']} pages", daemon.child)
        usage = daemon.child.stop(signal.SIGTERM)
    return {"start_1m_s": answered_s, "start_1m_rss_mb": usage.peak_rss_mb}


async def fill_known_pages(path: Path, size: DatabaseSize, addresses: Sequence[str]) -> None:
    """Make a database of pages, most of them visited, of one site on hosts with these addresses."""
    async with await Database.open(path) as database:
        now = time.time()
        site_id = await database.write(site.upsert, KNOWN_SITE, "{}", source="config", at=now)
        discoveries = _discoveries(size, addresses, site_id, now - _HISTORY_S)
        while part := list(islice(discoveries, _WRITE_PAGES)):
            await database.write(_store, part, size, now)
            await database.checkpoint()  # else the log of ten million pages takes 70 GB


def _discoveries(
    size: DatabaseSize, addresses: Sequence[str], site_id: int, since: float
) -> Iterator[Discovery]:
    """Yield the pages, taking hosts in turn, like a crawl of all hosts at once."""
    for number in range(size.pages):
        url = known_url(addresses[number % size.hosts], number // size.hosts, size.port)
        yield Discovery.of(url, site_id=site_id, at=since, depth=min(number // size.hosts, 5))


def _store(
    connection: apsw.Connection, part: list[Discovery], size: DatabaseSize, now: float
) -> None:
    for page in frontier.discover(connection, part):
        if size.unvisited_every and page.page_id % size.unvisited_every == 0:
            continue
        at = now - _HISTORY_S * uniform(page.page_id)
        record = partial(
            VisitRecord,
            page_id=page.page_id,
            visited_at=at,
            outcome=Outcome.CHANGED,
            state=PageState.VISITED,
            wire_bytes=_BODY_BYTES,
            body_bytes=_BODY_BYTES,
            digest=blake2b(page.url.encode(), digest_size=16).digest(),
            etag=ETAG,
        )
        if not size.copies:
            visit.record(connection, record())
            continue
        model = PageModel()
        model.update(Observation(at, changed=False))
        stored = record(body=_BODY, response=page_response(), model=model.to_bytes())
        visit.record(connection, stored)


def known_url(address: str, number: int, port: int = _PORT) -> str:
    """Return the URL of a page of a host."""
    return f"http://{address}:{port}/" + (f"wiki/{number}" if number else "")
