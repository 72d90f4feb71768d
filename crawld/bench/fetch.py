"""`crawld bench fetch`: a crawl, revisits, slot jitter on many hosts, and a start, with peers.

All crawlers fetch the same pages from the same loopback nginx, one after the other, in several
runs. Figures count from process start to process end, imports included.

    pages_per_cpu_s, pages_per_s, peak_rss_mb   a crawl with delay 0, every body stored, and first
                                                copies analysed and indexed (crawld only)
    stored_pages_per_cpu_s                      the same with analysis and search off
    revalidations_per_cpu_s                     every page requested again and answered 304
    slot_jitter_p99_ms, jitter_*                many hosts at their full delay (`jitter.py`)
    start_1m_s                                  a start on a large database (`start.py`)
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crawld.bench import fetch_crawld, fetch_peers, jitter, nginx, start
from crawld.bench.result import Metrics, build_result, figures
from crawld.bench.run import Progress
from crawld.bench.served_site import ServedSite
from crawld.bench.site_tree import write_site


@dataclass(frozen=True, slots=True)
class FetchSize:
    """Size of the measurement.

    Attributes:
        runs: crawls per crawler.
        hosts: hosts of the site, a hundred pages each.
        jitter: size of the jitter measurement.
        start: size of the database to start on.
        warms_up: whether a page is mirrored first, so that no figure counts the making of bytecode.
    """

    runs: int
    hosts: int
    jitter: jitter.JitterLoad
    start: start.DatabaseSize
    warms_up: bool = True


FULL = FetchSize(3, 200, jitter.JitterLoad(), start.DatabaseSize())
QUICK = FetchSize(
    1,
    1,
    jitter.JitterLoad(hosts=50, delay_s=1.0, warm_up_s=2.0, window_s=4.0),
    start.DatabaseSize(pages=2_000, hosts=20, starts=1),
    warms_up=False,
)


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark.

    Raises:
        OperatorError: nginx is missing, or a crawler did not fetch every page.
    """
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as name:
        directory = Path(name)
        directory.chmod(0o711)  # nginx workers run as another user
        bench = _FetchBenchmark(directory, size, progress)
        bench.run_crawls()
        bench.record("ours", "start", partial(start.measure, directory, size.start))
        bench.record("ours", "jitter", partial(jitter.measure, directory, size.jitter))
        return build_result("fetch", bench.metrics_per_run("ours"), bench.baselines())


class _FetchBenchmark:
    """Collects metrics by crawler and measurement."""

    def __init__(self, directory: Path, size: FetchSize, progress: Progress) -> None:
        self._directory = directory
        self._size = size
        self._progress = progress
        self._found: dict[str, dict[str, list[Metrics]]] = {}

    def record(self, who: str, what: str, measured: Callable[[], Metrics | None]) -> None:
        """Measure once; a peer that is not installed adds nothing."""
        metrics = measured()
        if metrics is None:
            self._progress(f"{who} {what}: not installed")
            return
        self._progress(f"{who} {what}: {figures(metrics)}")
        self._found.setdefault(who, {}).setdefault(what, []).append(metrics)

    def run_crawls(self) -> None:
        """Let every crawler crawl and revisit the site."""
        self._progress(f"writing a site of {self._size.hosts} hosts")
        tree = write_site(self._directory / "site", self._size.hosts)
        with nginx.serve(tree, self._directory / "nginx") as port:
            web = ServedSite(tree, port, self._directory)
            self._progress("filling the caches of Scrapy and of Python")
            if self._size.warms_up:
                fetch_crawld.warm_up(web)
            caches = {tuned: fetch_peers.scrapy_fill_cache(web, tuned=tuned) for tuned in _TUNED}
            for number in range(1, self._size.runs + 1):
                self._progress(f"run {number} of {self._size.runs}")
                self._run_once(web, caches)

    def _run_once(self, web: ServedSite, caches: dict[bool, Path]) -> None:
        self.record("ours", "crawl", partial(fetch_crawld.crawl, web))
        self.record("ours", "revisits", partial(fetch_crawld.revalidate, web))
        self.record("ours", "stored", partial(fetch_crawld.store, web))
        self.record("wget2", "crawl", partial(fetch_peers.wget2_crawl, web))
        for tuned, who in _TUNED.items():
            self.record(who, "crawl", partial(fetch_peers.scrapy_crawl, web, tuned=tuned))
            revisits = partial(fetch_peers.scrapy_revalidate, web, caches[tuned], tuned=tuned)
            self.record(who, "revisits", revisits)

    def metrics_per_run(self, who: str) -> list[Metrics]:
        """Return the metrics of each run of one crawler, all measurements combined."""
        runs: list[Metrics] = [{} for _ in range(self._size.runs)]
        for measured in self._found.get(who, {}).values():
            for number, metrics in enumerate(measured):
                runs[number].update(metrics)
        return runs

    def baselines(self) -> dict[str, list[Metrics]]:
        """Return the metrics per run of every installed peer."""
        return {who: self.metrics_per_run(who) for who in self._found if who != "ours"}


_TUNED = {False: "scrapy", True: "scrapy_tuned"}
