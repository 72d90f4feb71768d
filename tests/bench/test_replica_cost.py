"""The measurement of the replicas job's CPU time: its database, and what it reports."""

import pytest
import trio

from crawld.bench.replica_cost import CostScenario, measure_cost
from crawld.bench.replica_stored_crawl import StoredCrawl
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import make_web
from crawld.store.engine.database import Database
from crawld.store.replica import inputs


def test_each_kind_of_run_is_measured():
    metrics = measure_cost(CostScenario(hosts=20, pages=5))
    kinds = {
        f"{run}_run_{unit}"
        for run in ("first", "idle", "later")
        for unit in ("cpu_s", "hold_ms", "writer_hold_ms")
    }
    assert set(metrics) == kinds | {"chained_plan_s", "declared_plan_s"}
    assert metrics.pop("idle_run_writer_hold_ms") == 0.0
    assert all(value > 0.0 for value in metrics.values())


def test_new_visits_find_new_pages_new_texts_and_nothing_new(tmp_path):
    web = make_web(scale_web(STANDARD, 20, 0.3, 10), 0)

    async def crawl():
        async with await Database.open(tmp_path / "m.db") as database:
            stored = StoredCrawl(database, web, 0)
            await stored.fill()
            before = {
                page.page_id: page for page in await database.read(inputs.pages_after, 0, 9_999)
            }
            stored.now += 60.0
            await stored.visit(90)
            return before, await database.read(inputs.pages_after, 0, 9_999)

    before, after = trio.run(crawl)
    visited = [
        page for page in after if page.last_visit_at > next(iter(before.values())).last_visit_at
    ]
    new = [page for page in visited if page.page_id not in before]
    changed = [
        page
        for page in visited
        if page.page_id in before and page.cleaned_digest != before[page.page_id].cleaned_digest
    ]
    assert (len(visited), len(new)) == (90, 30)
    assert len(changed) == pytest.approx(30, abs=2)
