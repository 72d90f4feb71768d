"""The full-text index follows the crawl."""

import math
from contextlib import closing

import pytest

from crawld.core.content.analysis import analyse
from crawld.daemon.jobs import search_index as search_job
from crawld.daemon.jobs.search_index import SearchIndexJob
from crawld.daemon.visit import spare_time
from crawld.daemon.visit.kept_texts import KeptTexts
from crawld.store.engine.connection import open_connection
from crawld.store.versions import search_index, version
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
def crawled(serve, daemon, wall, monkeypatch):
    """Return a function that crawls 20 pages, and empties the index so that all copies wait.

    Each copy is analysed at its visit, however slow the machine is.
    """
    monkeypatch.setattr(spare_time, "MAX_SPARE_S", math.inf)

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


async def test_a_text_whose_copy_was_not_stored_is_forgotten(crawled):
    running, _ = await crawled()
    texts, job = running.crawl.state.kept_texts, SearchIndexJob(running.context)
    texts.keep(b"not stored", "quokka")
    for _ in range(2):
        await job.run()
    assert texts.take(b"not stored") is None


async def test_a_text_whose_copy_was_replaced_is_forgotten_as_the_job_passes_the_copy(crawled):
    running, found = await crawled()
    texts, job = running.crawl.state.kept_texts, SearchIndexJob(running.context)
    replaced, by = found.copies[3], found.copies[5]
    texts.keep(replaced.digest, "quokka")

    def replace_copy(connection):
        connection.execute(
            "UPDATE page SET version_id = ? WHERE page_id = ?", (by.version_id, replaced.page_id)
        )

    await running.database.write(replace_copy)
    assert await job.run() == "19 pages indexed"
    assert texts.take(replaced.digest) is None


async def test_a_run_ends_although_visits_store_copies_all_the_time(crawled, monkeypatch):
    running, _ = await crawled()
    job, index, slices = SearchIndexJob(running.context), SearchIndexJob._index_slice, []

    def store_another(connection):
        connection.execute(
            "INSERT INTO version (page_id, visited_at, body_id, status, http_version, headers)"
            " SELECT page_id, visited_at, body_id, status, http_version, headers"
            " FROM version LIMIT 1"
        )

    async def beside_a_visit(job, most):
        slices.append(most)
        if len(slices) < 10:
            await running.database.write(store_another)
        return await index(job, most)

    monkeypatch.setattr(search_job, "SLICE_COPIES", 20)
    monkeypatch.setattr(SearchIndexJob, "_index_slice", beside_a_visit)
    await job.run()
    assert len(slices) == 1
    assert (await job.progress())["waiting"] == 1


async def test_a_one_off_mirror_analyses_and_indexes_its_copies_as_it_visits_them(
    serve, mirror, wall, monkeypatch
):
    read = []
    monkeypatch.setattr(search_job, "SLICE_COPIES", 1)
    monkeypatch.setattr(search_job, "LOOK_S", 0.001)
    monkeypatch.setattr(search_index, "read_content", lambda *of: read.append(of))
    web = await serve(make_site(), clock=wall)
    await mirror.run(web.url())
    with closing(open_connection(mirror.db)) as connection:
        found = connection.execute("SELECT version_id, cleaned_digest, sketch FROM page").fetchall()
        for version_id, *identity in found:
            analysed = analyse(*version.read_copy(connection, version_id))
            assert identity == [analysed.cleaned_digest, analysed.sketch]
        # The end of the mirror indexes what it visited last.
        assert len(found) == 20
        assert search_index.count_pending(connection) < 20
        assert not read


async def test_a_one_off_mirror_waits_for_its_index_rather_than_reading_copies_again(
    serve, mirror, wall, monkeypatch
):
    read, init = [], KeptTexts.__init__
    monkeypatch.setattr(KeptTexts, "__init__", lambda texts: init(texts, 4_000, 8_000))
    monkeypatch.setattr(search_job, "LOOK_S", 0.001)
    monkeypatch.setattr(search_index, "read_content", lambda *of: read.append(of))
    web = await serve(make_site(), clock=wall)
    await mirror.run(web.url())
    with closing(open_connection(mirror.db)) as connection:
        # All but the last: two texts fit in the room, and as many beside it.
        assert search_index.count_pending(connection) <= 4
    assert not read
