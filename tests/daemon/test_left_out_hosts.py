"""Hosts that are out of the scope of their site: the config named them before."""

import time
from contextlib import closing

import pytest

from crawld.core.page import Outcome, PageState
from crawld.store import visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, page, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.visit import VisitRecord
from tests.daemon.harness import make_site, until

VISITED, NEW = 150, 20


def fill(db, web, **more):
    """Let a file know pages of b.test."""
    migrate.migrate(db)
    now = time.time() - 86_400.0
    with closing(open_connection(db)) as connection:
        site.upsert(connection, "s", "{}", source="command_line", at=now)
        urls = [web.url(f"/{number}", "b.test") for number in range(VISITED + NEW)]
        found = [Discovery.of(url, site_id=1, at=now, depth=2, **more) for url in urls]
        for new in frontier.discover(connection, found)[:VISITED]:
            kept = {"outcome": Outcome.UNCHANGED, "state": PageState.VISITED}
            visit.record(connection, VisitRecord(page_id=new.page_id, visited_at=now, **kept))


@pytest.fixture
async def web(serve):
    return await serve(make_site("a.test", pages=3), make_site("b.test", pages=3))


@pytest.fixture
def pages_read(monkeypatch):
    """The pages whose rows were read for a visit."""
    found, before = [], page.for_visit

    def for_visit(connection, page_id):
        found.append(page_id)
        return before(connection, page_id)

    monkeypatch.setattr(page, "for_visit", for_visit)
    return found


def queue_of(running):
    [queue] = running.state.hosts["b.test"].pages.values()
    return queue


async def test_a_host_out_of_scope_is_left_out_at_once(web, daemon, mirror, pages_read):
    fill(mirror.db, web)
    running = await daemon(web.url("/", "a.test"), schedule={"min_revisit_s": 0.0})
    await until(
        lambda: running.state.hosts["b.test"].wanted_at(time.time(), {1}) is None,
        what="all left out",
    )
    of_b = {row[0] for row in mirror.rows("SELECT page_id FROM page WHERE host_id = 1")}
    assert len(of_b.intersection(pages_read)) == 1
    assert not queue_of(running).left_out.pages
    assert not any(path.strip("/").isdigit() for path in web.targets("b.test"))
    # The config names it again: its known pages are visited, and those never visited.
    start = mirror.make_start(web.url("/", "a.test"), site={"hosts": ["b.test"]})
    await running.site_registry.adopt(start.config, start.seeds)
    await until(lambda: of_b <= set(pages_read), what="visits to all pages of b.test")


async def test_a_host_with_a_seed_of_its_site_is_left_out_page_by_page(
    web, daemon, mirror, pages_read
):
    fill(mirror.db, web)
    with closing(open_connection(mirror.db)) as connection:
        connection.execute("UPDATE page SET seed = 1 WHERE page_id = 7")
    running = await daemon(web.url("/", "a.test"), schedule={"min_revisit_s": 0.0})
    await until(lambda: "/6" in web.targets("b.test"), what="the seed visited")
    await until(lambda: len(queue_of(running).left_out.pages) == VISITED + NEW - 1, what="the rest")
    assert not queue_of(running).left_out.all
