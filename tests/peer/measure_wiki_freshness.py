"""Measure the freshness of a mirror of a busy wiki, with change hints and with MERGE without hints.

A real MediaWiki is edited every few seconds; the page is drawn by a Zipf distribution. A daemon
mirrors it at one request per second. This program measures the age of each copy itself: it saves
the edits and reads the mirror's database, independent of what the daemon reports. The second run
uses the policy `merge` without hints, which learns change rates from its visits. The upper bound of
MERGE with known rates follows from the closed form (equally spaced visits at the optimal
frequencies).

    python -m tests.peer.measure_wiki_freshness --pages 500 --every 2 --delay 1 --for 300
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from crawld.core.revisit.allocation import allocate
from crawld.core.revisit.freshness import mean_freshness
from crawld.core.revisit.pages_by_host import PagesByHost
from tests.peer.crawld_process import Crawld, with_crawld
from tests.peer.mediawiki import MediaWiki, WikiTemplate, make_template, with_mediawiki
from tests.peer.wiki_editor import CopyFreshness, CopyObserver, WikiEditor, measure_copies

WARM_UP_DELAY_S = 0.02
POLL_S = 0.1
ALLOCATE_EVERY_S = 30.0

CONFIG = """
[politeness]
host_delay_s = {delay_s}
[schedule]
min_revisit_s = 0.5
policy = "{policy}"
[jobs]
backfill_every_s = 5.0
[[site]]
name = "wiki"
seeds = ["{seed}"]
include = ["prefix:/wiki/"]
exclude = ["regex:/wiki/(Special|Category|Template|Entries|User|Help)(_talk)?:", "regex:[?]"]
allow_private = true
api = {api}
"""


def run(
    template: WikiTemplate,
    directory: Path,
    *,
    policy: str,
    hints: bool,
    arguments: argparse.Namespace,
) -> dict[str, object]:
    """Mirror a copy of the wiki while it is edited, and return the result."""
    with (
        with_mediawiki(directory / "wiki", template) as wiki,
        with_crawld(directory / "crawld") as crawld,
    ):
        titles = [page.title for page in wiki.pages[: arguments.pages]]
        _warm_up(crawld, wiki, policy=policy, hints=hints, pages=len(titles))
        _configure(crawld, wiki, policy=policy, hints=hints, delay_s=arguments.delay)
        crawld.post("/reload")
        figures = _measure_while_editing(crawld, wiki, titles, arguments)
        result: dict[str, object] = {"policy": policy, "hints": hints, **asdict(figures)}
        if hints:
            names = ("kind", "request_count", "hint_count", "real_count", "false_count", "lag_s")
            result["sources"] = [
                {name: each[name] for name in (*names, "missed_count", "interval_s", "gain")}
                for each in crawld.get("/hints")
            ]
        crawld.terminate()
        return result


def _configure(
    crawld: Crawld, wiki: MediaWiki, *, policy: str, hints: bool, delay_s: float
) -> Path:
    path = crawld.folder / "crawld.toml"
    api = "true" if hints else "false"
    path.write_text(CONFIG.format(seed=wiki.url(), policy=policy, api=api, delay_s=delay_s))
    return path


def _warm_up(crawld: Crawld, wiki: MediaWiki, *, policy: str, hints: bool, pages: int) -> None:
    """Mirror all pages quickly, with their histories."""
    path = _configure(crawld, wiki, policy=policy, hints=hints, delay_s=WARM_UP_DELAY_S)
    crawld.start("run", "-c", path)
    crawld.wait_until(
        lambda status: status["pages"]["visited"] > pages and not status["pages"]["discovered"],
        timeout_s=900,
    )
    if hints:
        crawld.wait_until(
            lambda jobs: all(
                not sum(each["progress"].get(state, 0) for state in ("unresolved", "open", "read"))
                for each in jobs
                if each["name"] == "backfill"
            ),
            "/jobs",
            timeout_s=900,
        )


def _measure_while_editing(
    crawld: Crawld, wiki: MediaWiki, titles: list[str], arguments: argparse.Namespace
) -> CopyFreshness:
    observer, editor = CopyObserver(crawld.db), WikiEditor(wiki, titles, zipf=arguments.zipf)
    urls = {title: wiki.url(title) for title in titles}
    over = threading.Event()

    def edit() -> None:
        next_at = time.monotonic()
        while not over.wait(max(next_at - time.monotonic(), 0.0)):
            editor.edit()
            next_at += arguments.every

    editing = threading.Thread(target=edit)
    editing.start()
    since = reported_at = time.time()
    allocated_at = 0.0
    # Skip the first fifth: policies that learn from visits know nothing yet.
    counts_from = since + 0.2 * arguments.for_s
    while time.time() < since + arguments.for_s:
        over.wait(POLL_S)
        observer.read_new_copies()
        if time.time() - allocated_at > ALLOCATE_EVERY_S:
            crawld.post("/jobs/allocate/run")
            allocated_at = time.time()
        if time.time() - reported_at > 20.0:
            reported_at = time.time()
            seen = measure_copies(editor.edits, observer.seen, urls, since=since, until=reported_at)
            print(f"{reported_at - since:5.0f} s  {seen}", file=sys.stderr, flush=True)
    over.set()
    editing.join()
    observer.read_new_copies()
    return measure_copies(editor.edits, observer.seen, urls, since=counts_from, until=time.time())


def merge_at_best(pages: int, zipf: float, every_s: float, delay_s: float) -> float:
    """Return the freshness of equally spaced visits at the optimal frequencies for true rates."""
    share = np.arange(1, pages + 1) ** -zipf
    rate = share / share.sum() / every_s
    web = PagesByHost(rate, np.array([0, pages]), np.array([1.0 / delay_s]), np.ones(pages))
    frequency = allocate(web, 1.0 / delay_s).frequency
    return float(np.mean(mean_freshness("fixed", rate, frequency)))


def main() -> None:
    """Run both policies and print the results as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two edits")
    parser.add_argument("--zipf", type=float, default=0.8, help="exponent of the choice of pages")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between two requests")
    parser.add_argument("--for", dest="for_s", type=float, default=300.0, help="seconds of editing")
    parser.add_argument("--only", choices=("hints", "merge"), help="one of the two runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        template = make_template(directory / "template", pages=arguments.pages, revisions=2)
        runs = {"hints": ("index", True), "merge": ("merge", False)}
        answers = {
            name: run(template, directory / name, policy=policy, hints=hints, arguments=arguments)
            for name, (policy, hints) in runs.items()
            if arguments.only in (None, name)
        }
    bound = merge_at_best(arguments.pages, arguments.zipf, arguments.every, arguments.delay)
    print(json.dumps({**answers, "merge_at_best": bound}, indent=2))


if __name__ == "__main__":
    main()
