"""Which page a turn takes, and what it may skip."""

from types import SimpleNamespace

import trio

from crawld.daemon.crawl.page_selection import MAX_SKIPPED, PageSelection
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import site
from tests.unit.store.rows import NOW, changed, discover_in_full, found


def prepare(connection):
    site.upsert(connection, "one", "{}", source="config", at=NOW)
    pages = discover_in_full(connection, [found(f"p{n}") for n in range(MAX_SKIPPED)]).new
    for page in pages:
        visit.record(connection, changed(page.page_id, page.url.encode(), NOW))
    return [page.page_id for page in pages]


async def test_other_tasks_run_while_a_turn_skips_pages_out_of_scope(tmp_path):
    queue = PageQueue(1, 1, "uniform", discovery_share=0.5, min_revisit_s=0.0)
    host = SimpleNamespace(
        queues=lambda: [queue],
        take=lambda now, active, requisite_share: (
            (queue, page) if (page := queue.take(now)) is not None else None
        ),
    )
    state = SimpleNamespace(
        settings=SimpleNamespace(requisite_share=0.5),
        active={1},
        sites={1: None},
        in_scope=lambda page, site: False,
        heir=lambda page: None,
    )
    passes = 0

    async def count(ended):
        nonlocal passes
        while not ended:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with await Database.open(tmp_path / "w.db") as database:
        for page in await database.write(prepare):
            queue.load_retry(page, NOW - 9.0)
        selection = PageSelection(state, None, database, SimpleNamespace(now=lambda: NOW))
        ended = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count, ended)
            assert await selection.take(host) is None
            ended.append(True)
    assert passes > MAX_SKIPPED // 10
