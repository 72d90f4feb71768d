"""The full-text index follows the crawl."""

import pytest

from crawld.daemon.jobs.search_index import SearchIndexJob
from crawld.daemon.visit.kept_texts import KeptTexts
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


@pytest.fixture
def crawled(serve, daemon, wall):
    """Return a function that crawls 20 pages, and empties the index so that all copies wait."""

    async def crawl():
        web = await serve(make_site(), clock=wall)
        running = await daemon(web.url())
        await until(lambda: running.crawl.visitor.counts["changed"] == 20)
        await running.crawl.recorder.drain()
        await running.database.write(search_index.rebuild)
        return running, await running.database.read(search_index.next_copies)

    return crawl


async def test_texts_that_visits_keep_are_those_of_the_stored_copies(crawled, monkeypatch):
    kept, keep = {}, KeptTexts.keep

    def noted(texts, digest, text):
        kept[digest] = text
        keep(texts, digest, text)

    monkeypatch.setattr(KeptTexts, "keep", noted)
    running, found = await crawled()
    assert len(found.copies) == 20
    assert {copy.digest for copy in found.copies} == set(kept)
    for copy in found.copies:
        stored = await running.database.read(search_index.read_content, copy)
        read = search_index.words_of(copy, stored.content_type, stored.body)
        assert search_index.words_of_text(copy, kept[copy.digest]) == read


async def test_a_kept_text_is_indexed_without_reading_its_copy(crawled):
    running, found = await crawled()
    running.crawl.state.kept_texts.keep(found.copies[7].digest, "quokka")
    assert await SearchIndexJob(running.context).run() == "20 pages indexed"
    hits = await running.database.read(search_index.find, "quokka", limit=30)
    assert [hit.url for hit in hits] == [found.copies[7].url]
    assert running.crawl.state.kept_texts.take(found.copies[7].digest) is None
