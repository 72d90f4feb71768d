"""The frontier at many known URLs: admission of links, a crawl beside them, and a start.

admission_us           processor time of a link: scope, traps, look-ups, commit, and its verdict;
                       each visit has 65 links to one host, of which 70 % are known, and differ
verdict_us             the part of the verdict, when as many links wait as in a daemon that visits
                       100 pages a second
crawl_rate_share       pages a second of the crawl of `crawld bench fetch` with the known URLs
                       in the file, on the same hosts, against a new file
crawl_cpu_share        the same of pages a second of processor
frontier_bytes_per_url the file without the pages that are rows
frontier_start_s       from process start until the daemon answers, and its peak memory
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import numpy as np
import trio

from crawld.bench import crawld_process, fetch_crawld, known_frontier, nginx
from crawld.bench.known_frontier import KNOWN_SITE, KnownFrontier
from crawld.bench.result import Metrics, figures
from crawld.bench.run import Progress
from crawld.bench.served_site import ServedSite
from crawld.bench.site_tree import SiteTree, write_site
from crawld.config.model import Config
from crawld.config.site import SiteConfig
from crawld.daemon.crawl.link_verdicts import READ_URLS_PER_S
from crawld.daemon.frontier.admission import Admission, Referrer
from crawld.daemon.frontier.site import ActiveSite, activate
from crawld.simweb.demo import loopback_addresses
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, verdicts
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.packed import DEFAULT_PACKING

RUNS: Final = 7
WAITING_SHARE: Final = 6_500 / READ_URLS_PER_S
"""Links that wait, of the known URLs: a daemon reads so many URLs for verdicts while it visits 100
pages."""

_LINKS: Final = 65
_KNOWN_LINKS: Final = 45
_PORT: Final = 9  # discard port: nothing answers


@dataclass(frozen=True, slots=True)
class FrontierLoad:
    """Size of the measurement.

    Attributes:
        hosts: hosts with known URLs.
        visits: visits in a transaction.
        crawled_hosts: hosts of the crawl, a hundred pages each.
        crawls: crawls with and without known URLs.
    """

    hosts: int = known_frontier.HOSTS
    visits: int = 200
    crawled_hosts: int = 200
    crawls: int = 3


FULL: Final = FrontierLoad()
QUICK: Final = FrontierLoad(hosts=20, visits=5, crawled_hosts=1, crawls=1)

Runs = list[Metrics]


def measure(directory: Path, known_urls: int, load: FrontierLoad, progress: Progress) -> Runs:
    """Return metrics of a file that knows so many URLs, in `RUNS` runs.

    Raises:
        OperatorError: nginx is missing, or a crawl did not fetch every page.
    """
    directory.chmod(0o711)  # nginx workers run as another user
    origins = [f"http://{address}:{_PORT}" for address in loopback_addresses(load.hosts)]
    progress(f"frontier: filling a file with {known_urls:,} URLs")
    known = known_frontier.fill(directory / "known.db", known_urls, origins, progress)
    runs: Runs = [{"frontier_bytes_per_url": known.path.stat().st_size / known_urls}]
    runs += [{} for _ in range(RUNS - 1)]
    for number, found in enumerate(crawl_metrics(directory, known, load, progress)):
        runs[number] |= found
    runs[0] |= start_metrics(directory, known)
    for number, found in enumerate(admission_metrics(known, load)):
        runs[number] |= found
        progress(f"frontier: {figures(runs[number])}")
    return runs


# --- admission -----------------------------------------------------------------------------------


def admission_metrics(known: KnownFrontier, load: FrontierLoad) -> Iterator[Metrics]:
    """Yield the time of a link in visits and of its verdict, several times; new links are added."""
    connection = open_connection(known.path)
    site = _site(known)
    links = _Links(known)
    groups = max(round(sum(known.sizes) * WAITING_SHARE / _LINKS / load.visits), 1)
    caps = Caps(packing=DEFAULT_PACKING)
    try:
        for _ in range(RUNS):
            admission = Admission(lambda origin: None)
            spent_s = 0.0
            for _ in range(groups):
                pages = [links.of_visit() for _ in range(load.visits)]
                began_s = time.process_time()
                trio.run(_admit, connection, admission, site, caps, pages)
                spent_s += time.process_time() - began_s
            began_s = time.process_time()
            with connection:
                verdicts.settle_all(connection, caps)
            connection.wal_checkpoint()
            verdict_s = time.process_time() - began_s
            count = _LINKS * load.visits * groups
            yield {
                "admission_us": (spent_s + verdict_s) / count * 1e6,
                "verdict_us": verdict_s / count * 1e6,
            }
    finally:
        connection.close()


class _Links:
    """Links of visits, most of them known."""

    def __init__(self, known: KnownFrontier) -> None:
        self._known = known
        self._rng = np.random.default_rng(5)
        self._weights = np.array(known.sizes) / sum(known.sizes)
        self._sizes = list(known.sizes)

    def of_visit(self) -> list[str]:
        """Return the links of a visit."""
        host = int(self._rng.choice(len(self._sizes), p=self._weights))
        numbers = self._rng.integers(0, self._known.sizes[host], _KNOWN_LINKS)
        known = self._known.texts_of(host, numbers).decoded()
        first = self._sizes[host]
        self._sizes[host] += _LINKS - _KNOWN_LINKS
        return known + self._known.urls(host, first, self._sizes[host])


def _site(known: KnownFrontier) -> ActiveSite:
    hosts = [origin.removeprefix("http://").partition(":")[0] for origin in known.origins]
    seeds = tuple(f"{origin}/" for origin in known.origins)
    config = SiteConfig(name=KNOWN_SITE, seeds=seeds)
    return activate(Config(), config, hosts, known.origins, site_id=1, paused=False, now=0.0)


async def _admit(
    connection: apsw.Connection,
    admission: Admission,
    site: ActiveSite,
    caps: Caps,
    pages: list[list[str]],
) -> None:
    with connection:
        for links in pages:
            source = Referrer(1, known_frontier.DEPTH)
            admitted = await admission.admit(site, links, source, 1.8e9)
            frontier.discover(connection, admitted.found, caps)
    connection.wal_checkpoint()


# --- a crawl and a start -------------------------------------------------------------------------


def crawl_metrics(
    directory: Path, known: KnownFrontier, load: FrontierLoad, progress: Progress
) -> Iterator[Metrics]:
    """Yield the rates of crawls with the known URLs as shares of those with none."""
    tree = write_site(directory / "site", load.crawled_hosts)
    for number in range(load.crawls):
        # In another order each time: other load on the machine comes and goes.
        order = [None, known.path] if number % 2 == 0 else [known.path, None]
        rates = {path: _crawl(directory, tree, number, path) for path in order}
        for path in order:
            progress(f"crawl with {'known' if path else 'no known'} URLs: {figures(rates[path])}")
        alone, beside = rates[None], rates[known.path]
        yield {
            "crawl_rate_share": beside["pages_per_s"] / alone["pages_per_s"],
            "crawl_cpu_share": beside["pages_per_cpu_s"] / alone["pages_per_cpu_s"],
            "crawl_pages_per_cpu_s": beside["pages_per_cpu_s"],
            "crawl_rss_mb": beside["peak_rss_mb"],
        }


def _crawl(directory: Path, tree: SiteTree, number: int, known: Path | None) -> Metrics:
    name = f"nginx-{number}-{'known' if known else 'new'}"
    with nginx.serve(tree, directory / name) as port:
        web = ServedSite(tree, port, directory)
        found = fetch_crawld.crawl(web, known=known)
    shutil.rmtree(directory / "crawld")
    return found


def start_metrics(directory: Path, known: KnownFrontier) -> Metrics:
    """Return the time until a daemon with the known URLs answers, and its memory."""
    seeds = [f"{origin}/" for origin in known.origins]
    tables = {"politeness": "host_delay_s = 900.0"}
    folder = directory / "start"
    folder.mkdir()
    config = crawld_process.write_config(folder, KNOWN_SITE, seeds, tables)
    file = crawld_process.database_path(folder)
    shutil.move(known.path, file)
    with crawld_process.run_daemon_process(config) as daemon:
        daemon.wait_answering()
        answered_s = time.monotonic() - daemon.child.started_s
        usage = daemon.child.stop(signal.SIGTERM)
    shutil.move(file, known.path)
    return {"frontier_start_s": answered_s, "frontier_start_rss_mb": usage.peak_rss_mb}
