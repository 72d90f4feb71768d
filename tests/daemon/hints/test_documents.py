"""Sitemaps, feeds and listings polled by a whole daemon, on real sockets."""

import gzip
import time

import pytest

from tests.daemon.whole_daemon import until

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


def lay(desk, *paths):
    for path in paths:
        desk.put(path, f"<title>{path}</title><p>the page {path}")


def visited(mirror):
    return {path for path, (state, *_) in mirror.pages().items() if state == "visited"}


def sources(mirror):
    """Return (polls, requests, hints, trouble) of every source by kind."""
    rows = mirror.rows(
        "SELECT kind, poll_count, request_count, hint_count, trouble FROM hint_source"
    )
    return {kind: tuple(rest) for kind, *rest in rows}


def hinted(mirror):
    """Return the pages called stale, and since when, by path."""
    rows = mirror.rows("SELECT url, hint.first_at FROM hint JOIN page USING (page_id)")
    return {"/" + url.split("/", 3)[3]: at for url, at in rows}


def pause_s(mirror):
    """Return how long the sitemap is left alone now."""
    rows = mirror.rows(
        "SELECT next_poll_at - last_poll_at FROM hint_source WHERE kind = 'sitemap'"
        " AND request_count > 0"
    )
    return rows[0][0] if rows else 0.0


def told(mirror):
    """Return the pages called stale, those that were visited again for that included."""
    # In this order: a visit in between takes a hint away.
    waiting = set(hinted(mirror))
    rows = mirror.rows("SELECT url FROM page WHERE visit_count > 1")
    return waiting | {"/" + url.split("/", 3)[3] for (url,) in rows}


async def again(running, mirror, kind):
    """Let all sources be polled once more, and wait for one of them."""
    before = sources(mirror)[kind][1]
    running.jobs.run_soon("hints")
    await until(lambda: sources(mirror)[kind][1] > before, what="another poll")


async def test_a_sitemap_in_robots_txt_reports_new_and_changed_pages(desk, daemon, mirror):
    now = time.time()
    desk.put("/robots.txt", "User-agent: *\nDisallow: /hidden/\nSitemap: /map.xml\n")
    lay(desk, "/a", "/b", "/hidden/c")
    old = [("/a", "2020-01-01"), ("/b", stamp(now - 9_000)), ("/hidden/c", None)]
    desk.put("/map.xml", urlset(*old), **XML)
    running = await daemon(desk.origin + "/")
    await until(lambda: visited(mirror) == {"/", "/a", "/b"}, what="pages of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the end of the first reading")
    await again(running, mirror, "sitemap")
    assert hinted(mirror) == {}
    assert desk.count("/map.xml", 304) >= 1
    changed_at = int(time.time()) + 1
    await until(lambda: time.time() > changed_at + 1.5)
    desk.put("/map.xml", urlset(("/a", stamp(changed_at)), *old[1:]), **XML)
    running.jobs.run_soon("hints")
    await until(lambda: told(mirror), what="hint")
    assert told(mirror) == {"/a"}
    assert sources(mirror)["sitemap"][2:] == (1, None)
    await until(lambda: desk.count("/hidden/c") == 0)


NOON_S, DAY_S = 43_200.0, 86_400.0


async def test_a_file_dated_today_is_read_again_after_the_day_ends(desk, daemon, mirror, wall):
    wall.shift_s = NOON_S - time.time() % DAY_S
    lay(desk, "/a", "/b")
    today = time.strftime("%Y-%m-%d", time.gmtime(wall()))
    desk.put("/map.xml", urlset(("/a", today), ("/b", "2020-01-01")), **XML)
    running = await daemon(desk.origin + "/", site={"sitemap_urls": [desk.origin + "/map.xml"]})
    await until(lambda: {"/a", "/b"} <= visited(mirror), what="pages of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the end of the first reading")
    await again(running, mirror, "sitemap")
    assert (sources(mirror)["sitemap"][2], desk.count("/map.xml", 304)) == (0, 1)
    wall.shift_s += DAY_S
    await again(running, mirror, "sitemap")
    await until(lambda: sources(mirror)["sitemap"][2] == 1, what="hint")
    assert desk.count("/map.xml", 304) == 1


async def test_an_index_of_gzip_files_is_read(desk, daemon, mirror):
    lay(desk, "/a", "/b")
    for name, path in (("one", "/a"), ("two", "/b")):
        body = urlset((path, "2020-01-01")).replace("{origin}", desk.origin).encode()
        desk.put(f"/{name}.xml.gz", gzip.compress(body), Content_Type="application/gzip")
    rows = [("/one.xml.gz", "2020-01-01"), ("/two.xml.gz", "2020-01-01"), ("/none.xml", "2020")]
    desk.put("/map.xml", index(*rows), **XML)
    site = {"sitemap_urls": [desk.origin + "/map.xml"]}
    await daemon(desk.origin + "/", site=site, jobs={"poll_share": 1.0})
    await until(lambda: visited(mirror) == {"/", "/a", "/b"}, what="pages of both files")

    def trouble(path):
        return dict(mirror.rows("SELECT url, trouble FROM sitemap")).get(desk.origin + path)

    await until(lambda: trouble("/none.xml"), what="the file that is not there")
    assert trouble("/none.xml").startswith("status_404")
    assert trouble("/one.xml.gz") is None
    assert desk.count("/none.xml") == 1


async def test_a_feed_entry_is_reported_once(desk, daemon, mirror):
    lay(desk, "/a", "/b")

    def entry(path, at):
        link = f"<id>{path}</id><link href='{{origin}}{path}'/>"
        return f"<entry>{link}<updated>{stamp(at)}</updated></entry>"

    def feed(*entries):
        return f"<feed xmlns='http://www.w3.org/2005/Atom'>{''.join(entries)}</feed>"

    old = entry("/a", time.time() - 9_000)
    desk.put("/feed", feed(old), Content_Type="application/atom+xml")
    running = await daemon(desk.origin + "/", site={"feeds": [desk.origin + "/feed"]})
    await until(lambda: visited(mirror) == {"/", "/a"}, what="page of the feed")
    changed_at = int(time.time()) + 1
    await until(lambda: time.time() > changed_at + 1.5)
    new = entry("/a", changed_at)
    desk.put("/feed", feed(entry("/b", changed_at), new, old), Content_Type="application/atom+xml")
    running.jobs.run_soon("hints")
    await until(lambda: "/b" in visited(mirror), what="new page of the feed")
    assert told(mirror) == {"/a"}
    desk.conditional = False
    await again(running, mirror, "feed")
    assert sources(mirror)["feed"][2:] == (1, None)


async def test_a_listing_admits_new_pages_and_reports_dates(desk, daemon, mirror):
    lay(desk, "/d/a")

    def listing(*rows):
        return "".join(f'<a href="{path}">{path}</a>  {date}  12\n' for path, date in rows)

    desk.put("/d/", listing(("a", "01-Jan-2020 10:00")))
    running = await daemon(
        desk.origin + "/", site={"listings": [desk.origin + "/d/"], "exclude": ["glob:*/d/"]}
    )
    await until(lambda: visited(mirror) == {"/", "/d/a"}, what="page of the listing")
    lay(desk, "/d/b")
    desk.put("/d/", listing(("b", "01-Jan-2020 10:00"), ("a", "01-Jan-2020 10:00")))
    running.jobs.run_soon("hints")
    await until(lambda: "/d/b" in visited(mirror), what="new page of the listing")
    assert hinted(mirror) == {}


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        ("<!DOCTYPE html><html><body>gone</body></html>", "HTML"),
        ('<!DOCTYPE x [<!ENTITY a "a">]><urlset>&a;</urlset>', "document type"),
        (gzip.compress(b"<urlset>" + b"<url></url>" * 900_000), "unpack"),
    ],
)
async def test_an_invalid_sitemap_is_recorded_as_trouble(desk, daemon, mirror, body, trouble):
    desk.put("/map.xml", body, **XML)
    site = {"sitemap_urls": [desk.origin + "/map.xml"]}
    running = await daemon(desk.origin + "/", site=site)
    await until(
        lambda: any(r for r in mirror.rows("SELECT trouble FROM sitemap WHERE trouble NOT NULL"))
    )
    assert trouble in mirror.rows("SELECT trouble FROM sitemap")[0][0]
    assert "/" in visited(mirror)
    assert running.crawl.schedule.statistics().lateness_p99_ms < 30_000


async def test_an_html_page_as_a_feed_is_trouble(desk, daemon, mirror):
    desk.put("/feed", "<html><body>not a feed</body></html>")
    await daemon(desk.origin + "/", site={"feeds": [desk.origin + "/feed"]})
    await until(lambda: sources(mirror).get("feed", (0, 0, 0, None))[3] is not None, what="trouble")
    assert sources(mirror)["feed"][3] == "no_feed"


async def test_robots_txt_applies_to_documents(desk, daemon, mirror):
    desk.put("/hidden/feed", "<rss version='2.0'><channel/></rss>", **XML)
    await daemon(desk.origin + "/", site={"feeds": [desk.origin + "/hidden/feed"]})
    await until(lambda: sources(mirror).get("feed", (0, 0, 0, None))[3] is not None, what="trouble")
    assert sources(mirror)["feed"][3] == "robots"
    assert desk.count("/hidden/feed") == 0


async def test_changefreq_has_a_source_of_its_own(desk, daemon, mirror):
    lay(desk, "/a")
    body = urlset(("/a", None)).replace("</loc>", "</loc><changefreq>never</changefreq>")
    desk.put("/map.xml", body, **XML)
    site = {"sitemap_urls": [desk.origin + "/map.xml"]}
    running = await daemon(desk.origin + "/", site=site)
    await until(lambda: visited(mirror) == {"/", "/a"}, what="page of the sitemap")
    await until(lambda: pause_s(mirror) > 60.0, what="the end of the first reading")
    assert set(sources(mirror)) == {"sitemap"}
    desk.put("/map.xml", body.replace("never", "always"), **XML)
    running.jobs.run_soon("hints")
    await until(lambda: "changefreq" in sources(mirror), what="frequencies")
    # It says that pages change each ten minutes; the copy is younger.
    assert told(mirror) == set()
