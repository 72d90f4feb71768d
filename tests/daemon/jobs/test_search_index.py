"""The full-text index follows the crawl."""

from crawld.daemon.jobs.search_index import SearchIndexJob
from crawld.store.versions import search_index
from tests.daemon.harness import make_site, until


async def test_new_copies_can_be_found_after_a_run(serve, daemon, mirror, wall):
    web = await serve(make_site(), clock=wall)
    running = await daemon(web.url())
    await until(lambda: running.crawl.visitor.counts["changed"] == 20)
    await running.crawl.recorder.drain()
    job = SearchIndexJob(running.context)
    waiting = (await job.progress())["waiting"]
    indexed = int((await job.run()).split()[0])
    # The daemon's own job may have indexed them first.
    assert indexed <= waiting <= 20
    assert await job.progress() == {"indexed": indexed, "waiting": 0}
    assert await job.run() == "0 pages indexed"
    for url, title in mirror.rows("SELECT url, title FROM page"):
        hits = await running.database.read(search_index.find, f'title:"{title}"', limit=30)
        assert url in [hit.url for hit in hits]
