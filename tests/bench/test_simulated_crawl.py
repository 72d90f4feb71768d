"""The crawl without requests of the replica rounds: what it stores of its visits."""

import numpy as np

from crawld.bench.replica_rounds.rounds_web import rounds_web
from crawld.bench.replica_rounds.simulated_crawl import NEVER_DAY, SimulatedCrawl
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import make_web
from crawld.store.engine.database import Database


def failed_pages(connection):
    sql = """SELECT page_id FROM page WHERE state = 'discovered' AND last_outcome = 'failed'
             AND retry_at > last_visit_at"""
    return {page_id for (page_id,) in connection.execute(sql)}


async def test_a_page_that_shows_nothing_is_visited_and_fails(tmp_path):
    web = rounds_web(make_web(scale_web(STANDARD, 30, 0.3, 20), 1))
    shows = np.concatenate([(one.pages.text != 0) | (one.pages.redirect_to >= 0)
                            for one in web.hosts])  # fmt: skip
    async with await Database.open(tmp_path / "w.db") as database:
        crawl = SimulatedCrawl(web, database, step_days=1.0)
        await crawl.fill()
        empty = np.flatnonzero(~shows)
        later = empty[crawl.visited_day[empty] == NEVER_DAY]
        assert 0 < len(later) < len(empty)
        await crawl.step((), crawl.page_ids[later].tolist(), (), soon=True)
        failed = await database.read(failed_pages)
    assert (crawl.visited_day[empty] > NEVER_DAY).all()
    assert failed == set(crawl.page_ids[empty].tolist())
