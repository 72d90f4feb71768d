"""Sitemaps, feeds and listings polled by a whole daemon, on real sockets."""

import gzip
import time

import pytest

from tests.daemon.harness import until

XML = {"Content_Type": "application/xml"}


def stamp(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def urlset(*rows):
    body = "".join(
        f"<url><loc>{{origin}}{path}</loc>{f'<lastmod>{date}</lastmod>' if date else ''}</url>"
        for path, date in rows
    )
    return f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{body}</urlset>"


def index(*rows):
    body = "".join(
        f"<sitemap><loc>{{origin}}{path}</loc><lastmod>{date}</lastmod></sitemap>"
        for path, date in rows
    )
    return f"<sitemapindex>{body}</sitemapindex>"


def put_pages(server, *paths):
    for path in paths:
        server.put(path, f"<title>{path}</title><p>the page {path}")


def visited(mirror):
    return {path for path, (state, *_) in mirror.pages().items() if state == "visited"}


def sources(mirror):
    """Return (polls, requests, hints, trouble) of every source by kind."""
    rows = mirror.rows(
        "SELECT kind, poll_count, request_count, hint_count, trouble FROM hint_source"
    )
    return {kind: tuple(rest) for kind, *rest in rows}


def outstanding_hints(mirror):
    """Return the outstanding hints: earliest change by path."""
    rows = mirror.rows("SELECT url, hint.first_at FROM hint JOIN page USING (page_id)")
    return {"/" + url.split("/", 3)[3]: at for url, at in rows}


def pause_s(mirror):
    """Return the pause until the next poll of the sitemap."""
    rows = mirror.rows(
        "SELECT next_poll_at - last_poll_at FROM hint_source WHERE kind = 'sitemap'"
        " AND request_count > 0"
    )
    return rows[0][0] if rows else 0.0


def reported(mirror):
    """Return the pages with hints, including those already visited again."""
    # In this order: a visit in between deletes its hint.
    waiting = set(outstanding_hints(mirror))
    rows = mirror.rows("SELECT url FROM page WHERE visit_count > 1")
    return waiting | {"/" + url.split("/", 3)[3] for (url,) in rows}


async def poll_again(running, mirror, kind):
    """Poll all sources and wait for the poll of one kind."""
    before = sources(mirror)[kind][1]
    running.background.jobs.run_soon("hints")
    await until(lambda: sources(mirror)[kind][1] > before, what="another poll")


async def test_a_sitemap_in_robots_txt_reports_new_and_changed_pages(server, daemon, mirror):
    now = time.time()
    server.put("/robots.txt", "User-agent: *\nDisallow: /hidden/\nSitemap: /map.xml\n")
    put_pages(server, "/a", "/b", "/hidden/c")
    old = [("/a", "2020-01-01"), ("/b", stamp(now - 9_000)), ("/hidden/c", None)]
    server.put("/map.xml", urlset(*old), **XML)
    running = await daemon(server.origin + "/")
    await until(lambda: visited(mirror) == {"/", "/a", "/b"}, what="pages of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the end of the first reading")
    await poll_again(running, mirror, "sitemap")
    assert outstanding_hints(mirror) == {}
    assert server.count("/map.xml", 304) >= 1
    changed_at = int(time.time()) + 1
    await until(lambda: time.time() > changed_at + 1.5)
    server.put("/map.xml", urlset(("/a", stamp(changed_at)), *old[1:]), **XML)
    running.background.jobs.run_soon("hints")
    await until(lambda: reported(mirror), what="hint")
    assert reported(mirror) == {"/a"}
    assert sources(mirror)["sitemap"][2:] == (1, None)
    await until(lambda: server.count("/hidden/c") == 0)


NOON_S, DAY_S = 43_200.0, 86_400.0


async def test_a_file_dated_today_is_read_again_after_the_day_ends(server, daemon, mirror, wall):
    wall.shift_s = NOON_S - time.time() % DAY_S
    put_pages(server, "/a", "/b")
    today = time.strftime("%Y-%m-%d", time.gmtime(wall()))
    server.put("/map.xml", urlset(("/a", today), ("/b", "2020-01-01")), **XML)
    running = await daemon(server.origin + "/", site={"sitemap_urls": [server.origin + "/map.xml"]})
    await until(lambda: {"/a", "/b"} <= visited(mirror), what="pages of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the end of the first reading")
    await poll_again(running, mirror, "sitemap")
    assert (sources(mirror)["sitemap"][2], server.count("/map.xml", 304)) == (0, 1)
    wall.shift_s += DAY_S
    await poll_again(running, mirror, "sitemap")
    await until(lambda: sources(mirror)["sitemap"][2] == 1, what="hint")
    assert server.count("/map.xml", 304) == 1


async def test_an_index_of_gzip_files_is_read(server, daemon, mirror):
    put_pages(server, "/a", "/b")
    for name, path in (("one", "/a"), ("two", "/b")):
        body = urlset((path, "2020-01-01")).replace("{origin}", server.origin).encode()
        server.put(f"/{name}.xml.gz", gzip.compress(body), Content_Type="application/gzip")
    rows = [("/one.xml.gz", "2020-01-01"), ("/two.xml.gz", "2020-01-01"), ("/none.xml", "2020")]
    server.put("/map.xml", index(*rows), **XML)
    site = {"sitemap_urls": [server.origin + "/map.xml"]}
    await daemon(server.origin + "/", site=site, jobs={"poll_share": 1.0})
    await until(lambda: visited(mirror) == {"/", "/a", "/b"}, what="pages of both files")

    def trouble(path):
        return dict(mirror.rows("SELECT url, trouble FROM sitemap")).get(server.origin + path)

    await until(lambda: trouble("/none.xml"), what="the file that is not there")
    assert trouble("/none.xml").startswith("status_404")
    assert trouble("/one.xml.gz") is None
    assert server.count("/none.xml") == 1


async def test_a_feed_entry_is_reported_once(server, daemon, mirror):
    put_pages(server, "/a", "/b")

    def entry(path, at):
        link = f"<id>{path}</id><link href='{{origin}}{path}'/>"
        return f"<entry>{link}<updated>{stamp(at)}</updated></entry>"

    def feed(*entries):
        return f"<feed xmlns='http://www.w3.org/2005/Atom'>{''.join(entries)}</feed>"

    old = entry("/a", time.time() - 9_000)
    server.put("/feed", feed(old), Content_Type="application/atom+xml")
    running = await daemon(server.origin + "/", site={"feeds": [server.origin + "/feed"]})
    await until(lambda: visited(mirror) == {"/", "/a"}, what="page of the feed")
    changed_at = int(time.time()) + 1
    await until(lambda: time.time() > changed_at + 1.5)
    new = entry("/a", changed_at)
    server.put(
        "/feed", feed(entry("/b", changed_at), new, old), Content_Type="application/atom+xml"
    )
    running.background.jobs.run_soon("hints")
    await until(lambda: "/b" in visited(mirror), what="new page of the feed")
    assert reported(mirror) == {"/a"}
    server.conditional = False
    await poll_again(running, mirror, "feed")
    assert sources(mirror)["feed"][2:] == (1, None)


async def test_a_listing_admits_new_pages_and_reports_dates(server, daemon, mirror):
    put_pages(server, "/d/a")

    def listing(*rows):
        return "".join(f'<a href="{path}">{path}</a>  {date}  12\n' for path, date in rows)

    server.put("/d/", listing(("a", "01-Jan-2020 10:00")))
    running = await daemon(
        server.origin + "/", site={"listings": [server.origin + "/d/"], "exclude": ["glob:*/d/"]}
    )
    await until(lambda: visited(mirror) == {"/", "/d/a"}, what="page of the listing")
    put_pages(server, "/d/b")
    server.put("/d/", listing(("b", "01-Jan-2020 10:00"), ("a", "01-Jan-2020 10:00")))
    running.background.jobs.run_soon("hints")
    await until(lambda: "/d/b" in visited(mirror), what="new page of the listing")
    assert outstanding_hints(mirror) == {}


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        ("<!DOCTYPE html><html><body>gone</body></html>", "HTML"),
        ('<!DOCTYPE x [<!ENTITY a "a">]><urlset>&a;</urlset>', "document type"),
        (gzip.compress(b"<urlset>" + b"<url></url>" * 900_000), "unpack"),
    ],
)
async def test_an_invalid_sitemap_is_recorded_as_trouble(server, daemon, mirror, body, trouble):
    server.put("/map.xml", body, **XML)
    site = {"sitemap_urls": [server.origin + "/map.xml"]}
    running = await daemon(server.origin + "/", site=site)
    await until(
        lambda: any(r for r in mirror.rows("SELECT trouble FROM sitemap WHERE trouble NOT NULL"))
    )
    assert trouble in mirror.rows("SELECT trouble FROM sitemap")[0][0]
    await until(lambda: "/" in visited(mirror))
    assert running.crawl.schedule.statistics().lateness_p99_ms < 30_000


async def test_an_html_page_as_a_feed_is_trouble(server, daemon, mirror):
    server.put("/feed", "<html><body>not a feed</body></html>")
    await daemon(server.origin + "/", site={"feeds": [server.origin + "/feed"]})
    await until(lambda: sources(mirror).get("feed", (0, 0, 0, None))[3] is not None, what="trouble")
    assert sources(mirror)["feed"][3] == "no_feed"


async def test_robots_txt_applies_to_documents(server, daemon, mirror):
    server.put("/hidden/feed", "<rss version='2.0'><channel/></rss>", **XML)
    await daemon(server.origin + "/", site={"feeds": [server.origin + "/hidden/feed"]})
    await until(lambda: sources(mirror).get("feed", (0, 0, 0, None))[3] is not None, what="trouble")
    assert sources(mirror)["feed"][3] == "robots"
    assert server.count("/hidden/feed") == 0


async def test_changefreq_has_a_source_of_its_own(server, daemon, mirror):
    put_pages(server, "/a")
    body = urlset(("/a", None)).replace("</loc>", "</loc><changefreq>never</changefreq>")
    server.put("/map.xml", body, **XML)
    site = {"sitemap_urls": [server.origin + "/map.xml"]}
    running = await daemon(server.origin + "/", site=site)
    await until(lambda: visited(mirror) == {"/", "/a"}, what="page of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the end of the first reading")
    assert set(sources(mirror)) == {"sitemap"}
    server.put("/map.xml", body.replace("never", "always"), **XML)
    running.background.jobs.run_soon("hints")
    await until(lambda: "changefreq" in sources(mirror), what="frequencies")
    # "always" means a change every ten minutes; the copy is younger.
    assert reported(mirror) == set()


async def open_sitemap(running, mirror, server, rows=6_000):
    """Return the sitemap source of a running daemon, in the middle of a large file."""
    server.put("/map.xml", urlset(*((f"/p{n}", "2026-01-01") for n in range(rows))), **XML)
    read = "SELECT 1 FROM sitemap WHERE read_at IS NOT NULL"
    await until(lambda: mirror.rows(read), what="the end of the first reading")
    await until(lambda: running.budget.used_bytes == 0, what="the end of the visits")
    await running.database.write(lambda file: file.execute("UPDATE sitemap SET next_at = 0"))
    (source,) = running.background.hint_poller._finders[1]._known.values()
    assert await source._fetch_next(source.row) is None
    return source


async def test_a_large_sitemap_is_packed_while_its_entries_are_reported(server, daemon, mirror):
    put_pages(server, "/a")
    server.put("/map.xml", urlset(("/a", None)), **XML)
    site = {"sitemap_urls": [server.origin + "/map.xml"], "max_pages": 10}
    running = await daemon(server.origin + "/", site=site)
    await until(lambda: "/a" in visited(mirror), what="page of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the poll that finds nothing due")
    source = await open_sitemap(running, mirror, server)
    held_bytes = running.budget.bodies.used_bytes
    assert held_bytes == len(source._open_file.document.body)
    assert 10_000 < held_bytes < 100_000  # of 400,000
    urls = []
    while (part := await source.poll(source.row)).more:
        urls += part.found_urls
    assert urls == [f"{server.origin}/p{n}" for n in range(6_000)]
    assert running.budget.bodies.used_bytes == 0


async def test_a_site_that_is_gone_keeps_no_sitemap_in_memory(server, daemon, mirror):
    put_pages(server, "/a")
    server.put("/map.xml", urlset(("/a", None)), **XML)
    site = {"sitemap_urls": [server.origin + "/map.xml"], "max_pages": 10}
    running = await daemon(server.origin + "/", site=site)
    await until(lambda: "/a" in visited(mirror), what="page of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the poll that finds nothing due")
    await open_sitemap(running, mirror, server)
    assert running.budget.bodies.used_bytes > 0
    running.state.sites.clear()
    running.background.hint_poller.find_soon()
    (host,) = running.background.hint_poller._hosts.values()
    await until(lambda: not host.polled, what="the end of the source")
    assert running.budget.bodies.used_bytes == 0


async def test_a_sitemap_of_a_host_whose_pages_rest_is_asked_once_a_day(server, daemon, mirror):
    """Otherwise a file that never changed is asked once a week."""
    put_pages(server, *(f"/{number}" for number in range(30)))
    rows = [(f"/{number}", "2020-01-01") for number in range(30)]
    server.put("/map.xml", urlset(*rows), **XML)
    site = {"sitemap_urls": [server.origin + "/map.xml"]}
    running = await daemon(server.origin + "/", site=site)
    await until(lambda: len(visited(mirror)) == 31, what="pages of the sitemap")

    async def interval_s(before_s):
        await until(lambda: pause_s(mirror) > 60.0, what="the end of the reading before")
        await running.database.write(set_interval, before_s)
        await poll_again(running, mirror, "sitemap")
        await until(lambda: mirror.rows("SELECT every_s FROM sitemap")[0][0] != before_s)
        return mirror.rows("SELECT every_s FROM sitemap")[0][0]

    assert await interval_s(3 * DAY_S) == 6 * DAY_S
    await running.database.write(let_all_rest)
    assert await interval_s(3 * DAY_S) == DAY_S


def set_interval(connection, every_s):
    connection.execute("UPDATE sitemap SET every_s = ?", (every_s,))


def let_all_rest(connection):
    """Let all pages rest, as if each were the twin of itself."""
    connection.execute(
        "INSERT INTO page_twin (page_id, server_id, twin_id, verdict, visited_at, compared_at)"
        " SELECT page_id, host_id, page_id, 'agrees', last_visit_at, last_visit_at FROM page"
    )
    connection.execute("UPDATE page SET state = 'suspended'")
