"""The jobs `analyse` and `estimate` in a whole daemon."""

import pytest

from crawld.core.change.model import PageModel
from crawld.core.change.site_model import SiteModel
from crawld.core.content.analysis import analyse
from crawld.daemon.api.page_views import next_visit
from crawld.daemon.api.views import page_detail
from crawld.daemon.jobs.analyse_copies import AnalyseCopiesJob
from crawld.daemon.jobs.refit_models import FIRST_S, RefitModelsJob
from crawld.daemon.jobs.search_index import SearchIndexJob
from crawld.simweb.change_process import STATIC, poisson_process
from crawld.store.changes import model
from crawld.store.frontier import page as page_rows
from crawld.store.versions import search_index, version
from tests.daemon.harness import make_site, until

DAY_S = 86_400.0


@pytest.fixture
async def crawled(serve, daemon, mirror, wall):
    """A daemon that visited 20 pages, and its simulated site."""
    start_at = wall() - DAY_S
    site = make_site(
        changes=lambda page: (
            poisson_process(DAY_S, start_at=start_at, seed=page) if page % 2 else STATIC
        )
    )
    web = await serve(site, clock=wall)
    running = await daemon(web.url())
    await until(lambda: running.crawl.visitor.counts["changed"] == 20)
    await running.crawl.recorder.drain()
    # The first runs of the jobs must not do the work that these tests check.
    own = "SELECT 1 FROM job WHERE name IN ('analyse', 'estimate') AND last_finished_at > 0"
    await until(lambda: len(mirror.rows(own)) == 2, what="the first runs of the jobs")
    return running


async def rounds(running, wall, count):
    for _ in range(count):
        before = sum(running.crawl.visitor.counts.values())
        wall.shift_s += DAY_S / 2
        await running.crawl.schedule.wake_all()
        await until(lambda before=before: sum(running.crawl.visitor.counts.values()) >= before + 20)
        await running.crawl.recorder.drain()


async def identities(running, mirror):
    """Return the stored and the computed digest and sketch of each copy."""
    rows = mirror.rows(
        "SELECT page.cleaned_digest, page.sketch, visit.cleaned_digest, visit.sketch,"
        " visit.version_id FROM page JOIN visit ON visit.version_id = page.version_id"
    )
    stored, expected = [], []
    for *identity, version_id in rows:
        kept = await running.database.read(version.read_body, version_id)
        analysed = analyse(kept, "text/html; charset=utf-8")
        stored.append(identity)
        expected.append([analysed.cleaned_digest, analysed.sketch] * 2)
    return stored, expected


async def test_an_idle_crawl_analyses_first_copies_during_the_visit(crawled, mirror):
    stored, expected = await identities(crawled, mirror)
    # Even on a slow machine at least the first copy is analysed, and completely.
    analysed = [(one, wanted) for one, wanted in zip(stored, expected, strict=True) if any(one)]
    assert analysed
    assert all(one == wanted for one, wanted in analysed)


def delete_identities(connection):
    for table in ("page", "visit"):
        connection.execute(f"UPDATE {table} SET cleaned_digest = NULL, sketch = NULL")


async def test_first_copies_of_a_busy_crawl_are_analysed_once_old_enough(crawled, mirror, wall):
    await crawled.database.write(delete_identities)
    job = AnalyseCopiesJob(crawled.context)
    assert await job.run() == "0 copies analysed"
    wall.shift_s += 120.0
    assert await job.run() == "20 copies analysed"
    assert await job.run() == "0 copies analysed"
    stored, expected = await identities(crawled, mirror)
    assert len(stored) == 20
    assert stored == expected


async def test_first_copies_are_only_stored_where_the_config_says_so(serve, daemon, mirror, wall):
    web = await serve(make_site(), clock=wall)
    running = await daemon(web.url(), content={"analyse": False, "search": False})
    await until(lambda: running.crawl.visitor.counts["changed"] == 20)
    await running.crawl.recorder.drain()
    wall.shift_s += 120.0
    assert await AnalyseCopiesJob(running.context).run() == "off"
    assert await SearchIndexJob(running.context).run() == "off"
    assert mirror.rows("SELECT count(sketch), count(cleaned_digest) FROM page") == [(0, 0)]
    assert await running.database.read(search_index.count_pending) == 20


async def test_models_are_refitted_and_sites_get_a_scale(crawled, mirror, wall):
    await rounds(crawled, wall, 12)
    before = dict(mirror.rows("SELECT page_id, record FROM model"))
    job = RefitModelsJob(crawled.context)
    assert job.every_s == FIRST_S
    result = await job.run()
    assert result.startswith("20 models, ")
    assert job.every_s == 2 * FIRST_S
    after = dict(mirror.rows("SELECT page_id, record FROM model"))
    models = [PageModel.from_bytes(record) for record in after.values()]
    assert len({one.prior for one in models}) == 1
    assert after != before
    [[shape]] = mirror.rows("SELECT prior_shape FROM host")
    assert models[0].prior.shape == pytest.approx(shape)
    # Only rate and prior changed: the counts of visits stayed.
    for page_id, record in after.items():
        old, new = PageModel.from_bytes(before[page_id]), PageModel.from_bytes(record)
        kept = ("visits", "bins", "last_visit_at", "unchanged_s", "changed")
        assert all(getattr(old, name) == getattr(new, name) for name in kept)
    rates = {page: PageModel.from_bytes(record).rate for page, record in after.items()}
    assert len(set(rates.values())) > 1
    stored = await crawled.database.read(model.site_of, 1)
    assert SiteModel.from_dict(stored).as_dict() == stored
    again = await job.run()
    assert "20 models, 0 changed" in again


async def test_a_page_detail_explains_model_and_next_visit(crawled, wall):
    await rounds(crawled, wall, 3)
    record = await crawled.database.read(page_rows.for_visit, 2)
    detail = await page_detail(crawled, record)
    low, high = detail.model.rate_interval_per_day
    assert 0 < low < detail.model.change_rate_per_day < high
    assert detail.model.visits == 4
    assert detail.validators.etag == "trusted"
    assert detail.next_visit_at >= record.last_visit_at + 3600
    assert "rests until then" in detail.next_visit_why
    crawled.state.hosts[record.host].paused = True
    assert next_visit(crawled, record) == (None, "its host is paused")


async def test_a_site_is_fitted_again_when_enough_is_new(crawled, mirror, wall):
    job = RefitModelsJob(crawled.context)
    await rounds(crawled, wall, 12)
    assert "1 sites" in await job.run()
    assert "0 sites" in await job.run()
    await rounds(crawled, wall, 12)
    assert "1 sites" in await job.run()
    before = SiteModel.from_dict(await crawled.database.read(model.site_of, 1)).as_dict()
    await rounds(crawled, wall, 4)
    assert "1 sites" in await job.run()
    after = SiteModel.from_dict(await crawled.database.read(model.site_of, 1)).as_dict()
    assert {name for name in before if before[name] != after[name]} == {"base", "excitation"}
