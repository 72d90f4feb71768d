"""Pages that go from one site to another."""

from types import SimpleNamespace

import pytest

from crawld.core.page import Outcome, PageState
from crawld.daemon.crawl.hand_over import hand_over
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import site
from tests.unit.store.rows import NOW, discover_in_full, found, unlike

MONTH_S = 30 * 86_400.0


def prepare(connection, outcome, state, retry_at):
    for name in ("one", "two"):
        site.upsert(connection, name, "{}", source="config", at=NOW)
    [page] = discover_in_full(connection, [found("a")]).new
    record = unlike(page.page_id, outcome, state=state, retry_at=retry_at)
    visit.record(connection, record)
    return page.page_id


@pytest.mark.parametrize(
    ("outcome", "state", "retry_at", "visited_again"),
    [
        (Outcome.GONE, PageState.GONE, NOW + MONTH_S, False),
        (Outcome.UNCHANGED, PageState.VISITED, None, True),
    ],
)
async def test_a_page_that_is_gone_is_not_visited_again_for_another_site(
    tmp_path, outcome, state, retry_at, visited_again
):
    queues = {
        number: PageQueue(number, 1, "index", discovery_share=0.5, min_revisit_s=0.0)
        for number in (1, 2)
    }
    host = SimpleNamespace(pages=queues, slot=None)
    crawl = SimpleNamespace(
        hosts={"example.org": host},
        pages_of=lambda host, site_id: host.pages[site_id],
        schedule=SimpleNamespace(wake=lambda slot: None),
    )
    heir = SimpleNamespace(site_id=2, importance=lambda url: 1.0)
    async with await Database.open(tmp_path / "w.db") as database:
        page_id = await database.write(prepare, outcome, state, retry_at)
        page = await database.read(page_rows.for_visit, page_id)
        await hand_over(crawl, database, page, heir)
    assert (queues[2].take(NOW + 60.0) == page_id) == visited_again
    assert queues[2].wanted_at(NOW) == retry_at
    assert queues[1].take(NOW + 60.0) is None
