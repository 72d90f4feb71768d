"""`crawld bench serve`: page views per second of one process, and view times during a crawl.

Every view is of a different page, rewritten and with its banner, over loopback keep-alive
connections; crawld's caches response nothing. Four clients share a separate process.

    views_per_cpu_s   views per second of the server's CPU time: the capacity of one core
    views_per_s       views per second of wall time, clients and server on this machine together
    view_p50_ms, view_p99_ms          one view after the other, while a daemon crawls from nginx
                                      into the same database; its pages are among those viewed
    growth_mb         memory of the server after all views, minus that after the first hundred

Baselines in the same run, with the same pages as plain files: `nginx`, the upper bound, and
`starlette`, that framework's file server on the same HTTP server as crawld.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import random
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

from crawld.bench import crawld_process, nginx
from crawld.bench.article_mirror import ArticleMirror, write_mirror
from crawld.bench.process import Child, program_error, run_child
from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.bench.site_tree import SiteTree, write_site
from crawld.errors import OperatorError
from crawld.web.address import mirror_path

_PAGES = 3_000
_PAGE_BYTES = 30_000
_VIEWS = 6_000
_SEQUENTIAL_VIEWS = 1_500
_WARM_UP = 100
_RUNS = 3
_CLIENTS = 4
_HOSTS = 20
_ADDRESS = "127.0.0.1"
_START_S = 60.0


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    mirror = ArticleMirror(200 if quick else _PAGES, _PAGE_BYTES)
    views = 400 if quick else _VIEWS
    sequential = 200 if quick else _SEQUENTIAL_VIEWS
    runs: list[Metrics] = []
    plain: list[Metrics] = []
    starlette: list[Metrics] = []
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as name:
        directory = Path(name)
        progress(f"{mirror.pages:,} pages into a database")
        write_mirror(directory / "mirror.db", mirror)
        paths = [mirror_path(mirror.url(number)) for number in range(mirror.pages)]
        for number in range(1 if quick else _RUNS):
            progress(f"views, run {number + 1}")
            with _serve(_crawld_serve(directory / "mirror.db"), directory) as (child, port):
                runs.append(_measure_views(child, port, _shuffled(paths, number), views))
            files = [f"/{n}.html" for n in range(mirror.pages)]
            tree = _write(directory / f"plain-{number}", mirror, files)
            with nginx.serve(tree, directory / f"nginx-{number}") as port:
                _request_views(port, files, _WARM_UP)
                plain.append({"views_per_s": views / _request_views(port, files, views)})
            command = [sys.executable, "-c", _STARLETTE, str(tree.directory / _ADDRESS)]
            with _serve(command, directory) as (child, port):
                starlette.append(_measure_views(child, port, _shuffled(files, number), views))
        progress("views while a daemon crawls")
        runs.append(_views_during_crawl(directory, mirror, paths, sequential))
    return build_result("serve", runs, {"nginx": plain, "starlette": starlette})


def _shuffled(paths: Sequence[str], seed: int) -> list[str]:
    return random.Random(seed).sample(paths, len(paths))


def _crawld_serve(db: Path) -> list[str]:
    return crawld_process.command("serve", "--db", str(db), "--listen", f"{_ADDRESS}:0")


_STARLETTE = """
import socket, sys, trio
from functools import partial
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
listening = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
config = Config()
config.bind = [f"fd://{listening.detach()}"]
config.keep_alive_max_requests = 1_000_000
config.errorlog = None
app = Starlette(routes=[Mount("/", StaticFiles(directory=sys.argv[1]))])
trio.run(partial(serve, app, config, mode="asgi"))
"""


@contextmanager
def _serve(command: Sequence[str], directory: Path) -> Iterator[tuple[Child, int]]:
    """Run a server that prints its URL first; yield its process and port."""
    with run_child(command, Path(tempfile.mkdtemp(dir=directory))) as child:
        until_s = time.monotonic() + _START_S
        while "/\n" not in (output := child.output()):
            if not child.running() or time.monotonic() > until_s:
                raise program_error(command[0], "does not serve", child)
        yield child, urlsplit(output.split()[0]).port or 0


@contextmanager
def serve_mirror(db: Path, directory: Path) -> Iterator[tuple[Child, int]]:
    """Run `crawld serve` of a database; yield its process and port."""
    with _serve(_crawld_serve(db), directory) as serving:
        yield serving


def _write(directory: Path, mirror: ArticleMirror, files: Sequence[str]) -> SiteTree:
    """Write the same pages as plain files."""
    tree = SiteTree(directory, (_ADDRESS,))
    (directory / _ADDRESS).mkdir(parents=True)
    for number, file in enumerate(files):
        (directory / _ADDRESS / file[1:]).write_bytes(mirror.body(number))
    return tree


def _measure_views(child: Child, port: int, paths: Sequence[str], views: int) -> Metrics:
    _request_views(port, paths, _WARM_UP)
    child.running(for_ms=0)
    before_mb, before_s = child.rss_mb(), child.cpu_s()
    wall_s = _request_views(port, paths, views)
    return {
        "views_per_cpu_s": views / (child.cpu_s() - before_s),
        "views_per_s": views / wall_s,
        "growth_mb": max(child.rss_mb() - before_mb, 0.0),
    }


def _views_during_crawl(
    directory: Path, mirror: ArticleMirror, paths: Sequence[str], views: int
) -> Metrics:
    """View pages one after the other while a daemon crawls from nginx into the same database."""
    tree = write_site(directory / "crawled", _HOSTS)
    crawl_directory = directory / "daemon"
    crawl_directory.mkdir()
    db = crawld_process.database_path(crawl_directory)
    (directory / "mirror.db").rename(db)
    with nginx.serve(tree, directory / "crawled-nginx") as port:
        tables = {
            # Slow enough to last, fast enough to keep the daemon busy: 100 pages per second.
            "politeness": "host_delay_s = 0.2\naddress_delay_s = 0.0",
            "schedule": "min_revisit_s = 1.0",
        }
        config = crawld_process.write_config(crawl_directory, "crawled", tree.seeds(port), tables)
        with (
            crawld_process.run_daemon_process(config) as crawling,
            _serve(_crawld_serve(db), directory) as (_, web_port),
        ):
            crawling.wait_answering()
            before = _visits(crawling)
            fresh = [mirror_path(seed) for seed in tree.seeds(port)]
            mixed = [*itertools.islice(itertools.cycle(fresh), len(paths) // 10), *paths]
            spent = _request_one_by_one(web_port, _shuffled(mixed, 0), views)
            if _visits(crawling) == before:
                raise OperatorError("the daemon did not crawl during the measurement")
    cuts = quantiles(spent, n=100)
    return {"view_p50_ms": cuts[49] * 1e3, "view_p99_ms": cuts[98] * 1e3}


def _visits(daemon: crawld_process.DaemonProcess) -> object:
    return json.dumps((daemon.status() or {}).get("visits"))


# --- clients ---------------------------------------------------------------------------------


def _request_views(port: int, paths: Sequence[str], views: int) -> float:
    """Request pages over a few connections from a separate process; return the seconds used."""
    requested = list(itertools.islice(itertools.cycle(paths), views))
    shares = [requested[start::_CLIENTS] for start in range(_CLIENTS)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_request_all, (port, shares))


def _request_all(port: int, shares: Sequence[Sequence[str]]) -> float:
    connections = [_Connection(port) for _ in shares]
    began_s = time.monotonic()
    for requested in itertools.zip_longest(*shares):
        # The last round may have fewer paths than connections.
        pairs = [pair for pair in zip(connections, requested, strict=True) if pair[1] is not None]
        for connection, path in pairs:
            connection.send(path)
        for connection, path in pairs:
            connection.receive(path)
    return time.monotonic() - began_s


def _request_one_by_one(port: int, paths: Sequence[str], views: int) -> list[float]:
    connection, spent = _Connection(port), []
    for path in itertools.islice(itertools.cycle(paths), views):
        began_s = time.perf_counter()
        connection.send(path)
        connection.receive(path, statuses=(b"200", b"404"))
        spent.append(time.perf_counter() - began_s)
    return spent


class _Connection:
    """A minimal keep-alive HTTP client."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((_ADDRESS, port), timeout=_START_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", buffering=262_144)

    def send(self, path: str) -> None:
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {_ADDRESS}\r\n\r\n".encode())

    def receive(self, path: str, statuses: tuple[bytes, ...] = (b"200",)) -> None:
        status = self._file.readline().split()[1:2]
        length = 0
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        self._file.read(length)
        if not status or status[0] not in statuses:
            raise OperatorError(f"{path} was answered by {status}")
