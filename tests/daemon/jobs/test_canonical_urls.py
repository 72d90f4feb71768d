"""The job that renames known pages, beside the crawl, and sites that sort parameters."""

from contextlib import closing

from crawld.core.url import url_hash
from crawld.daemon.jobs.canonical_urls import CanonicalUrlsJob
from crawld.store.engine.connection import open_connection
from crawld.store.versions import canonical_urls
from tests.daemon.harness import make_site, run_job

NAMES = "SELECT page.url, page_name.url FROM page_name JOIN page USING (page_id)"


def set_urls(path, urls):
    """Give pages other URLs, as rules of version 1 left them."""
    with closing(open_connection(path)) as connection:
        for url, old in urls.items():
            connection.execute(
                "UPDATE page SET url = ?, url_hash = ? WHERE url = ?", (old, url_hash(old), url)
            )
        connection.execute("DELETE FROM meta WHERE key = ?", (canonical_urls.RULES,))


async def test_an_older_file_is_renamed_while_it_is_crawled(serve, daemon, mirror):
    web = await serve(make_site(pages=12))
    await mirror.run(web.url())
    urls = [url for (url,) in mirror.rows("SELECT url FROM page ORDER BY page_id")]
    old = {url: f"{url}?utm_id=4" for url in urls[1:6]}
    set_urls(mirror.db, old)
    versions = mirror.rows("SELECT count(*) FROM version")
    running = await daemon(web.url())
    row = await run_job(running, CanonicalUrlsJob.name)
    assert row.result == "done"
    assert {url for (url,) in mirror.rows("SELECT url FROM page")} == set(urls)
    # A link may have added a page under its new URL before the job came to the old one.
    assert dict(mirror.rows(NAMES)) == old
    orphans = "SELECT count(*) FROM version WHERE page_id NOT IN (SELECT page_id FROM page)"
    assert mirror.rows(orphans) == [(0,)]
    assert mirror.rows("SELECT count(*) FROM version") >= versions


async def test_a_site_that_sorts_parameters_asks_once_for_all_orders(serve, mirror):
    web = await serve(make_site(pages=1))
    seeds = [web.url(f"/page?{query}") for query in ("b=1&a=2", "a=2&b=1", "c=1", "b=2&b=1&a=2")]
    await mirror.run(*seeds, site={"sort_query": True, "max_depth": 0})
    targets = [target for target in web.targets() if target.startswith("/page")]
    assert sorted(targets) == ["/page?a=2&b=1", "/page?a=2&b=2&b=1", "/page?c=1"]
