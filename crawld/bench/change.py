"""`crawld bench change`: cost of reading a page, learning from it, and storing its history.

    analyse_ms                  parse, links, blocks, digests and sketch of a 60 KB article
    analyse_with_previous_ms    the same, plus reading the stored version and comparing both
    model_update_us             add one visit to a stored change model
    refit_1m_s                  priors and rates of a million page models on ten thousand hosts
    version_store_share         size of real revisions in the database, relative to their gzip sizes
    version_read_ms             time to read the slowest of these revisions

The baseline is parsel, which only extracts the links of the same articles. All times are CPU times
of the working thread, except `version_read_ms`, which is wall time.
"""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray
from parsel import Selector

from crawld.bench.result import Metrics, build_result, figures
from crawld.bench.revisions import Revision, phpdoc
from crawld.bench.run import Progress
from crawld.bench.stored_visit import page_response
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.record import records_of
from crawld.core.change.refit import blank_records, refit
from crawld.core.content.analysis import analyse, read_blocks
from crawld.core.page import Outcome, PageState
from crawld.core.units import DAY_S
from crawld.daemon.process import keep_heap_memory
from crawld.simweb.article import edit_article, make_article
from crawld.store import doctor, visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import body, delta, version
from crawld.store.visit import VisitRecord

T = TypeVar("T")

_HTML = "text/html; charset=utf-8"
_NOW = 1_780_000_000.0
_BODY_TABLES = frozenset({"body", "version"})


@dataclass(frozen=True, slots=True)
class ChangeSize:
    """Size of the measurement.

    Attributes:
        runs: repetitions.
        articles: different articles.
        updates: visits added to one model.
        models: page models in the refit.
        hosts: hosts of these models.
        pages: pages whose revisions are stored, at most four.
        reads: repeated reads of each version.
    """

    runs: int = 5
    articles: int = 40
    updates: int = 5_000
    models: int = 1_000_000
    hosts: int = 10_000
    pages: int = 4
    reads: int = 5


FULL = ChangeSize()
QUICK = ChangeSize(runs=1, articles=3, updates=200, models=5_000, hosts=50, pages=1, reads=1)


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    size = QUICK if quick else FULL
    keep_heap_memory()
    articles = [make_article(seed) for seed in range(size.articles)]
    versions = _store_revisions(size)
    progress(f"versions: {figures(versions)}")
    ours: list[Metrics] = []
    parsel: list[Metrics] = []
    for number in range(1, size.runs + 1):
        parsel.append({"analyse_ms": _milliseconds(_parsel_links, articles)})
        models = {"model_update_us": _model_update(size.updates), "refit_1m_s": _refit(size)}
        ours.append({**_measure_analysis(articles), **models, **versions})
        progress(f"run {number} of {size.runs}: {figures(ours[-1])}")
        progress(f"parsel: {figures(parsel[-1])}")
    return build_result("change", ours, {"parsel": parsel})


# --- page analysis -----------------------------------------------------------------------------


def _measure_analysis(articles: Sequence[bytes]) -> Metrics:
    pairs = [(page, edit_article(page, seed)) for seed, page in enumerate(articles)]
    return {
        "analyse_ms": _milliseconds(lambda page: analyse(page, _HTML), articles),
        "analyse_with_previous_ms": _milliseconds(
            lambda pair: analyse(pair[1], _HTML, previous=read_blocks(pair[0], _HTML)), pairs
        ),
    }


def _parsel_links(page: bytes) -> list[str]:
    links: list[str] = Selector(text=page.decode()).css("a::attr(href)").getall()
    return links


def _milliseconds(work: Callable[[T], object], items: Sequence[T]) -> float:
    """Return the median CPU time of one call over the items."""
    work(items[0])  # warm up: imports, compiled patterns
    spent = []
    for item in items:
        began = time.thread_time()
        work(item)
        spent.append(time.thread_time() - began)
    return 1e3 * median(spent)


# --- change models -----------------------------------------------------------------------------


def _model_update(count: int) -> float:
    rng = np.random.default_rng(1)
    intervals_s = rng.exponential(DAY_S, count).tolist()
    changed = (rng.random(count) < 0.3).tolist()
    stored, at = PageModel().to_bytes(), _NOW
    began = time.thread_time()
    for interval_s, was_changed in zip(intervals_s, changed, strict=True):
        at += interval_s
        model = PageModel.from_bytes(stored)
        model.update(Observation(at, was_changed, interval_s=interval_s))
        stored = model.to_bytes()
    return 1e6 * (time.thread_time() - began) / count


def _refit(size: ChangeSize) -> float:
    packed, hosts = _packed_models(size)
    began = time.thread_time()
    fitted = refit(records_of(packed), groups=hosts)
    bytes_of = fitted.records.tobytes()
    spent_s = time.thread_time() - began
    if len(bytes_of) != sum(map(len, packed)):
        raise AssertionError("models were lost in the refit")
    return spent_s


def _packed_models(size: ChangeSize) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return stored models after a year of daily to monthly visits, and their hosts."""
    rng = np.random.default_rng(2)
    count = size.models
    rate_per_day = rng.gamma(0.5, 0.2, count)
    interval_days = rng.uniform(1.0, 30.0, count)
    visits = (365.0 / interval_days).astype(np.int64)
    changed = rng.binomial(visits, -np.expm1(-rate_per_day * interval_days))
    records = blank_records(count)
    records["visits"], records["changed_visits"] = visits, changed
    records["first_at"], records["last_visit_at"] = _NOW - 365 * DAY_S, _NOW
    records["last_change_at"] = _NOW - rng.uniform(0.0, 365.0, count) * DAY_S
    records["changed"] = changed
    records["changed_s"] = changed * interval_days * DAY_S
    records["unchanged_s"] = (visits - changed) * interval_days * DAY_S
    packed = [record.tobytes() for record in records]
    return packed, rng.integers(0, size.hosts, count)


# --- versions ----------------------------------------------------------------------------------


def _store_revisions(size: ChangeSize) -> Metrics:
    pages = phpdoc()[: size.pages]
    gzip_bytes = sum(len(gzip.compress(content)) for page in pages for _, content in page)
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as folder:
        path = Path(folder) / "versions.db"
        migrate.migrate(path)
        with closing(open_connection(path)) as connection:
            _fill(connection, pages)
        stored_bytes = sum(
            row.bytes for row in doctor.examine(path).space if row.table in _BODY_TABLES
        )
        with closing(open_connection(path, read_only=True)) as connection:
            slowest_s = _slowest_read(connection, pages, size.reads)
    return {
        "version_store_share": stored_bytes / gzip_bytes,
        "version_read_ms": 1e3 * slowest_s,
    }


def _fill(connection: apsw.Connection, pages: Sequence[Sequence[Revision]]) -> None:
    """Store each revision as a visit, then delta-compress the old versions."""
    with connection:
        site.upsert(connection, "revisions", "{}", source="command_line", at=_NOW)
        for number, revisions in enumerate(pages):
            url = f"http://revisions.test/{number}"
            [page] = frontier.discover(
                connection, [Discovery.of(url, site_id=1, at=revisions[0][0])]
            )
            visit.record_all(connection, [_visit(page.page_id, *each) for each in revisions])
    while (slice_ := delta.plan(connection)) is not None:
        with connection:
            delta.apply(connection, slice_)


def _visit(page_id: int, at: float, content: bytes) -> VisitRecord:
    encoded = body.encode(content)
    return VisitRecord(
        page_id=page_id,
        visited_at=at,
        outcome=Outcome.CHANGED,
        state=PageState.VISITED,
        response=page_response(content_type="text/xml"),
        digest=encoded.digest,
        body=encoded,
    )


def _slowest_read(
    connection: apsw.Connection, pages: Sequence[Sequence[Revision]], reads: int
) -> float:
    """Return the slowest version's median read time, seconds."""
    slowest_s = 0.0
    for page_id, revisions in enumerate(pages, 1):
        rows = version.list_versions(connection, page_id, limit=len(revisions) + 1)
        for row, (_, content) in zip(reversed(rows), revisions, strict=True):
            spent = []
            for _ in range(reads):
                began = time.perf_counter()
                read = version.read_body(connection, row.version_id)
                spent.append(time.perf_counter() - began)
                if read != content:
                    raise AssertionError(f"version {row.version_id} is not what was stored")
            slowest_s = max(slowest_s, median(spent))
    return slowest_s
