"""The site of `crawld bench fetch` as nginx serves it, and the metrics of a crawl of it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from crawld.bench.process import Child, Usage, program_error
from crawld.bench.result import Metrics
from crawld.bench.site_tree import SiteTree

PAGES_PER_CPU_S = "pages_per_cpu_s"


@dataclass(frozen=True, slots=True)
class ServedSite:
    """The site as nginx serves it.

    Attributes:
        tree: its pages.
        port: port of all its addresses.
        directory: directory for the files of the benchmark.
    """

    tree: SiteTree
    port: int
    directory: Path

    def new_directory(self, name: str) -> Path:
        """Return an empty directory; delete an existing one of that name."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def seeds_file(self) -> Path:
        """Return a file of the seeds, one per line."""
        return self._lines("seeds.txt", self.tree.seeds(self.port))

    def urls_file(self) -> Path:
        """Return a file of all URLs, one per line."""
        return self._lines("urls.txt", self.tree.urls(self.port))

    def crawl_metrics(self, program: str, stored: int, usage: Usage, child: Child) -> Metrics:
        """Return the metrics of a crawl.

        Raises:
            OperatorError: it did not store every page.
        """
        pages = self.tree.page_count
        if stored != pages:
            raise program_error(program, f"stored {stored} of {pages} pages", child)
        return {
            PAGES_PER_CPU_S: stored / usage.cpu_s,
            "pages_per_s": stored / usage.wall_s,
            "peak_rss_mb": usage.peak_rss_mb,
        }

    def _lines(self, name: str, lines: list[str]) -> Path:
        path = self.directory / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path
