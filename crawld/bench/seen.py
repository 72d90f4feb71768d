"""`crawld bench seen`: is a URL known? Cycles of a million URLs, at 1, 10 and 100 million known.

Baselines in the same run, on the same cycles: DRUM and VEUNI over flat files (structure alone, with
the published sizes of records) and a plain SQLite B-tree with random inserts. All are durable at
the end of each cycle. Cycles count only when as many URLs wait as may. `cycle_s` is the structure
alone: from keys that were hashed before, without texts. Then the frontier of a daemon at as many
known URLs (`seen_frontier`).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from crawld.bench import seen_frontier
from crawld.bench.result import Metrics, build_result, figures, size_suffix
from crawld.bench.run import Progress
from crawld.bench.seen_btree import Btree
from crawld.bench.seen_drum import Drum
from crawld.bench.seen_files import Ids, size
from crawld.bench.seen_structure import SeenContender, texts_of
from crawld.bench.seen_veuni import REPOSITORIES, Veuni
from crawld.bench.seen_web import Cycle, SeenWeb, SomeUrls
from crawld.core.url import canonicalize
from crawld.daemon.process import return_heap_memory
from crawld.process_status import memory_mb

SIZES: Final = (1_000_000, 10_000_000, 100_000_000)
CYCLE_URLS: Final = 1_000_000

_CYCLES: Final = seen_frontier.RUNS
_PART_URLS: Final = 1_000_000
_TOLD_PARTS: Final = 10

Runs = list[Metrics]


def run(*, quick: bool, progress: Progress, known: int | None = None) -> dict[str, object]:
    """Run the benchmark.

    Args:
        known: how many URLs are known before the first cycle; by default three sizes in turn.
    """
    sizes = (known,) if known else (50_000,) if quick else SIZES
    cycle_urls = CYCLE_URLS // 50 if quick else CYCLE_URLS
    runs: dict[str, Runs] = {name: [{} for _ in range(_CYCLES)] for name in _CONTENDERS}
    for metrics in runs["ours"]:
        metrics["canonicalise_us"] = _canonicalise_us()
    for known_urls in sizes:
        suffix = "" if len(sizes) == 1 else size_suffix(known_urls)
        for name, measure in _CONTENDERS.items():
            with tempfile.TemporaryDirectory(prefix="crawld-bench-seen-") as folder:
                progress(f"{name}: {known_urls:,} known URLs")
                found = measure(Path(folder), SeenWeb(known_urls, 1), cycle_urls, progress)
            if name == "ours":
                found[0]["known_urls"] = known_urls
            for number, metrics in enumerate(found):
                progress(f"{name}: cycle {number}: {figures(metrics)}")
                runs[name][number] |= {f"{key}{suffix}": each for key, each in metrics.items()}
        with tempfile.TemporaryDirectory(prefix="crawld-bench-frontier-") as folder:
            load = seen_frontier.QUICK if quick else seen_frontier.FULL
            found = seen_frontier.measure(Path(folder), known_urls, load, progress)
        for number, metrics in enumerate(found):
            runs["ours"][number] |= {f"{key}{suffix}": each for key, each in metrics.items()}
    return build_result("seen", runs.pop("ours"), runs)


def _ours(folder: Path, web: SeenWeb, urls: int, progress: Progress) -> Runs:
    contender = SeenContender(folder)
    for done, part in enumerate(web.parts(_PART_URLS), 1):
        contender.load(part)
        if done % _TOLD_PARTS == 0:
            progress(f"ours: {done * _PART_URLS:,} URLs are hashed")
    contender.finish_load()
    progress("ours: all are loaded")
    runs: Runs = [{} for _ in range(_CYCLES)]
    while not _end_to_end(contender, web, urls):
        pass
    _reset_peak()
    _measure_end_to_end(contender, web, urls, runs, "cycle_end_to_end")
    progress("ours: end to end is measured")
    runs[0]["peak_rss_mb"] = memory_mb(os.getpid(), "VmHWM")
    runs[0]["bytes_per_url"] = contender.structure_bytes() / contender.known()
    runs[0]["text_bytes_per_url"] = contender.text_bytes() / contender.known()
    runs[0]["waiting_text_bytes_per_url"] = contender.waiting_text_bytes() / contender.known()
    runs[0]["waiting_per_known"] = contender.waiting() / contender.known()
    runs[0] |= _timed("remember", contender.remember)
    assert contender.keys is not None
    runs[0]["keys_mb"] = contender.keys.octets / 2**20
    contender.settle_all()  # what the other mode left is no work of this one
    while contender.may_wait(urls):
        _end_to_end(contender, web, urls)
    _measure_end_to_end(contender, web, urls, runs, "cycle_end_to_end_immediate")
    contender.forget()
    contender.drop_waiting_texts()
    _measure_structure(contender, web, urls, runs, "cycle")
    contender.remember()
    _measure_structure(contender, web, urls, runs, "cycle_immediate")
    contender.close()
    return runs


def _measure_end_to_end(
    contender: SeenContender, web: SeenWeb, urls: int, runs: Runs, name: str
) -> None:
    for metrics in runs:
        cycle = web.cycle(urls)
        metrics |= _timed(name, partial(contender.take, *texts_of(cycle)))


def _measure_structure(
    contender: SeenContender, web: SeenWeb, urls: int, runs: Runs, name: str
) -> None:
    for metrics in runs:
        cycle = contender.hashed(web.cycle(urls))
        metrics |= _timed(name, partial(contender.structure_cycle, cycle))


def _end_to_end(contender: SeenContender, web: SeenWeb, urls: int) -> int:
    """Take a cycle and return of how many queues new pages were told."""
    return contender.take(*texts_of(web.cycle(urls)))


def _drum(folder: Path, web: SeenWeb, urls: int, progress: Progress) -> Runs:
    drum = Drum(folder)
    drum.check(_all_ids(web))
    runs = []
    for _ in range(_CYCLES):
        ids = _both(web.cycle(urls)).ids()
        runs.append(_timed("cycle", partial(drum.check, ids)))
    runs[0]["bytes_per_url"] = size(folder) / web.known
    return runs


def _veuni(folder: Path, web: SeenWeb, urls: int, progress: Progress) -> Runs:
    veuni = Veuni(folder)
    veuni.load(web.parts(_PART_URLS))
    runs = []
    for _ in range(REPOSITORIES - 1):  # as much waits for each as does all the time
        veuni.offer(_both(web.cycle(urls)))
    for _ in range(_CYCLES):
        both = _both(web.cycle(urls))
        runs.append(_timed("cycle", partial(veuni.check, both)))
    runs[0]["bytes_per_url"] = size(folder) / web.known
    return runs


def _btree(folder: Path, web: SeenWeb, urls: int, progress: Progress) -> Runs:
    btree = Btree(folder / "btree.db")
    btree.load(_all_ids(web))
    runs = []
    for _ in range(_CYCLES):
        ids = _both(web.cycle(urls)).ids()
        runs.append(_timed("cycle", partial(btree.check, ids)))
    runs[0]["bytes_per_url"] = btree.octets() / web.known
    btree.close()
    return runs


def _all_ids(web: SeenWeb) -> Ids:
    """Return the known URLs; not at once, because numbers of hosts and URLs take twice as much."""
    found = np.empty(web.known, np.uint64)
    start = 0
    for part in web.parts(_PART_URLS):
        found[start : start + len(part)] = part.ids()
        start += len(part)
    return found


def _both(cycle: Cycle) -> SomeUrls:
    one, other = cycle.fetched, cycle.extracted
    return SomeUrls(
        np.concatenate([one.host, other.host]), np.concatenate([one.number, other.number])
    )


def _timed(name: str, work: Callable[[], object]) -> Metrics:
    """Return the seconds that some work takes, and those of the processor: they bear other load."""
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    work()
    cpu_s = time.process_time() - began_cpu_s
    return {f"{name}_s": time.perf_counter() - began_s, f"{name}_cpu_s": cpu_s}


def _canonicalise_us() -> float:
    """Return the processor time of one URL; half of them are canonical already."""
    texts = SeenWeb(50_000, 2, 5_000).cycle(20_000).extracted.texts()
    texts[::2] = [text.replace("www.", "WWW.") for text in texts[::2]]
    began_s = time.process_time()
    for text in texts:
        canonicalize(text)
    return (time.process_time() - began_s) / len(texts) * 1e6


def _reset_peak() -> None:
    """Let the kernel measure the largest memory from here on, without what loading left free."""
    return_heap_memory()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


_CONTENDERS: Final[dict[str, Callable[[Path, SeenWeb, int, Progress], Runs]]] = {
    "ours": _ours,
    "drum": _drum,
    "veuni": _veuni,
    "btree": _btree,
}
