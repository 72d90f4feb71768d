"""Peers of `crawld bench fetch`: Scrapy in two setups, and wget2.

    scrapy        links by CSS, Scrapy's own duplicate filter, its file cache for revisits
    scrapy_tuned  a set of known URLs in the spider, the cache in a dbm file
    wget2         C, threads on all cores, plain files; for reference only

All obey robots.txt like crawld, send one request at a time to a host, and must store every page, or
the run fails.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from crawld.bench.process import measure_run, program_error, run_child
from crawld.bench.result import Metrics
from crawld.bench.scrapy_peer import REVALIDATED, stored_pages
from crawld.bench.served_site import PAGES_PER_CPU_S, ServedSite

_LIMIT_S = 1800.0
_WGET2_THREADS = 8


def scrapy_crawl(web: ServedSite, *, tuned: bool = False) -> Metrics:
    """Crawl the whole site with Scrapy, which only stores."""
    directory = web.new_directory("scrapy")
    database = directory / "pages.db"
    command = _scrapy("crawl", web.seeds_file(), database, tuned=tuned)
    with run_child(command, directory) as child:
        usage = child.wait(_LIMIT_S)
        stored = stored_pages(database) if database.exists() else 0
        metrics = web.crawl_metrics("scrapy", stored, usage, child)
        return metrics | {f"stored_{PAGES_PER_CPU_S}": metrics[PAGES_PER_CPU_S]}


def scrapy_fill_cache(web: ServedSite, *, tuned: bool = False) -> Path:
    """Fetch every page into Scrapy's cache; return its directory."""
    cache = web.new_directory("cache-tuned" if tuned else "cache")
    measure_run(_scrapy("revalidate", web.urls_file(), cache, tuned=tuned), cache, limit_s=_LIMIT_S)
    return cache


def scrapy_revalidate(web: ServedSite, cache: Path, *, tuned: bool = False) -> Metrics:
    """Request every page again through Scrapy's cache; all responses are 304."""
    command = _scrapy("revalidate", web.urls_file(), cache, tuned=tuned)
    with run_child(command, cache) as child:
        usage = child.wait(_LIMIT_S)
        done = int(child.output().rpartition(REVALIDATED)[2] or 0)
        if done != web.tree.page_count:
            raise program_error(
                "scrapy", f"revalidated {done} of {web.tree.page_count} pages", child
            )
    return {"revalidations_per_cpu_s": done / usage.cpu_s}


def wget2_crawl(web: ServedSite) -> Metrics | None:
    """Crawl the whole site with wget2; None if it is not installed."""
    program = shutil.which("wget2")
    if program is None:
        return None
    directory = web.new_directory("wget2")
    command = [program, "--quiet", "--recursive", "--level=50", "--tries=1", "--no-xattr"]
    # wget2 would also fetch style sheets and images.
    command += ["--ignore-tags=img,link", f"--max-threads={_WGET2_THREADS}"]
    with run_child([*command, f"--input-file={web.seeds_file()}"], directory) as child:
        usage = child.wait(_LIMIT_S)
        stored = sum(1 for _ in directory.glob("127.*/**/*") if _.is_file() and _.suffix != ".txt")
        metrics = web.crawl_metrics(program, stored, usage, child)
    shutil.rmtree(directory)
    return metrics


def _scrapy(mode: str, urls: Path, target: Path, *, tuned: bool) -> list[str]:
    full_mode = f"{mode}-tuned" if tuned else mode
    module = "crawld.bench.scrapy_peer"
    return [sys.executable, "-m", module, full_mode, str(urls), str(target)]
