"""Exports read by the programs they are made for, and an import of another program's archive."""

import json
import re
import sys
import urllib.request
from contextlib import closing
from datetime import UTC, datetime
from urllib.parse import quote, unquote, urlsplit

import pytest

from crawld.export.zim_icon import plain_icon
from tests.e2e.daemon_config import query_rows, site, start_daemon
from tests.peer import require_peer
from tests.peer.chromium import requests_of, with_chromium
from tests.peer.process import run
from tests.peer.replay import installed_command, with_kiwix, with_pywb

HOST = "127.0.0.1"


def write_site(folder):
    """Write a small site that contains all awkward cases."""
    folder.mkdir()
    (folder / "d").mkdir()
    (folder / "style.css").write_text("body { background: url(d/tile.png) }")
    for name in ("picture.png", "d/tile.png", "d/small 1.png"):
        (folder / name).write_bytes(plain_icon())
    pages = {
        "index.html": '<a href="/d/">down</a> <a href="Case.html">C</a> <a href="case.html">c</a>'
        ' <a href="a%20b.html#end">blank</a> <a href="page.html?q=1">query</a>'
        ' <a href="/none.html">none</a> <img src="picture.png">',
        "d/index.html": '<a href="../">up</a> <img srcset="small%201.png 1x, tile.png 2x">',
        "Case.html": "upper case",
        "case.html": 'lower case <a href="/">front</a>',
        "a b.html": '<p id="end">blank</p> <a href="d">moved</a>',
        "page.html": "a page",
    }
    for name, text in pages.items():
        head = f'<link rel="stylesheet" href="/style.css"><title>{name}</title>'
        (folder / name).write_text(f"<!DOCTYPE html><html lang=en>{head}<body>{text}</body></html>")
    return folder


@pytest.fixture
def origin(nginx, tmp_path):
    """The URL of a running site."""
    server = nginx({HOST: write_site(tmp_path / "site")})
    return server.url("/")


@pytest.fixture
def mirror(crawld, origin):
    """The site mirrored once; the daemon has ended."""
    crawld.start("mirror", origin, "--once", "--delay", "0", "--depth", "5", ready=False)
    crawld.wait()
    return crawld


@pytest.fixture
def browser_page():
    """A page in a new browser context."""
    with with_chromium() as browser, closing(browser.new_context()) as context:
        yield context.new_page()


def export(crawld, form, name, *options):
    done = crawld.crawld("export", form, "--out", crawld.folder / name, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), crawld.folder / name


def image_widths(page):
    """Return the width of every image of a page, after all have loaded."""
    return page.evaluate(
        "Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth)))"
    )


def test_a_static_export_works_from_file_urls(mirror, browser_page):
    summary, out = export(mirror, "static", "static")
    assert summary["written"]["pages"] >= 9
    made = requests_of(browser_page)
    waiting, seen, original = [(out / "index.html").as_uri()], set(), set()
    while waiting:
        url = waiting.pop()
        seen.add(url)
        browser_page.goto(url)
        if url.endswith("/d.html"):
            # A redirect page: the browser follows it.
            browser_page.wait_for_url("**/d/index.html")
            browser_page.wait_for_load_state()
        assert 0 not in image_widths(browser_page), url
        if browser_page.title() != "Mirror":
            assert browser_page.evaluate("document.styleSheets[0].href").startswith("file:"), url
            background = browser_page.evaluate("getComputedStyle(document.body).backgroundImage")
            assert background.startswith('url("file:'), url
        for link in browser_page.evaluate("[...document.links].map(a => a.href)"):
            target = link.partition("#")[0]
            if urlsplit(link).scheme != "file":
                original.add(urlsplit(link).path)
            elif target not in seen:
                waiting.append(target)
    assert [url for url in made if not url.startswith("file:")] == []
    assert original == {"/none.html"}
    texts = {unquote(url).rpartition("/")[2] for url in seen}
    assert {"Case.html", "a b.html"} <= texts
    assert len({text.casefold() for text in texts}) == len(texts)


def test_warc_files_replay_with_their_revisits(crawld, origin, browser_page):
    start_daemon(
        crawld,
        site(origin, max_depth=5, requisites=True),
        politeness={"host_delay_s": 0.0, "address_delay_s": 0.0},
        schedule={"min_revisit_s": 0.1},
    )
    crawld.wait_until(lambda status: status["visits"].get("not_modified", 0) >= 12)
    # While the daemon runs.
    summary, out = export(crawld, "warc", "m.warc.gz")
    assert summary["written"]["revisit"] > 0
    checked = run([installed_command("warcio"), "check", "-v", out], cwd=crawld.folder)
    assert checked.returncode == 0, checked.stdout
    crawld.terminate()
    [(first, last)] = query_rows(
        crawld,
        "SELECT min(visited_at), max(visited_at) FROM visit JOIN page USING (page_id)"
        " WHERE url = ? AND outcome IN ('changed', 'not_modified')",
        origin,
    )
    assert last > first
    with with_pywb(crawld.folder / "pywb", [out]) as collection:
        for at in (first, last):
            stamp = datetime.fromtimestamp(at, UTC).strftime("%Y%m%d%H%M%S")
            answer = browser_page.goto(f"{collection}/{stamp}/{origin}")
            assert answer.status == 200
            # pywb shows the page in a frame below its banner.
            frame = browser_page.wait_for_selector("iframe").content_frame()
            frame.wait_for_selector("text=down")
            assert "down" in frame.inner_text("body")
            assert image_widths(frame) == [48]


def test_a_zim_file_passes_zimcheck_and_is_served_by_kiwix(mirror, browser_page):
    _, out = export(mirror, "zim", "mirror.zim")
    checked = run([require_peer("zimcheck"), "-A", out], cwd=mirror.folder)
    assert checked.returncode == 0, checked.stdout
    host = query_rows(mirror, "SELECT origin FROM origin")[0][0].partition("://")[2]
    with with_kiwix(mirror.folder, out) as served:
        browser_page.goto(f"{served}/{quote(host, safe=':')}/")
        # Kiwix shows its own image above the page.
        assert image_widths(browser_page)[-1] == 48
        browser_page.click("text=down")
        browser_page.wait_for_selector("text=up")
        # 24 is the width of the double-density image.
        assert image_widths(browser_page)[-1] in (24, 48)
        root = served.rpartition("/")[0]
        with urllib.request.urlopen(f"{root}/search?content=mirror&pattern=lower") as answer:
            assert b"case.html" in answer.read()


# In a separate process: DuckDB reports leaks of its own at the end of a long-lived one.
DUCKDB = """
import duckdb, sys
query = "SELECT count(*), max(last_visit_at) FROM '%s' WHERE status = 200"
print(*duckdb.sql(query % sys.argv[1]).fetchall()[0])
"""


def test_tables_are_read_by_duckdb(mirror):
    for form in ("jsonl", "csv"):
        _, out = export(mirror, form, form)
        table = out / f"pages.{form}"
        done = run([sys.executable, "-c", DUCKDB, table], cwd=mirror.folder)
        assert done.returncode == 0, done.stderr
        pages, newest = map(float, done.stdout.split())
        assert pages >= 9
        assert newest > 1.7e9


def test_a_wget_archive_can_be_imported_and_crawled_further(crawld, origin):
    wget = require_peer("wget")
    command = [wget, "-q", "-r", "-p", "--warc-file=old", "--warc-cdx=off", origin]
    run(command, cwd=crawld.folder)
    done = crawld.crawld("import", "warc", crawld.folder / "old.warc.gz", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["versions"] >= 9
    shown, out = export(crawld, "static", "before")
    assert shown["written"]["pages"] >= 9
    assert list(out.rglob("picture.png"))
    crawld.start("mirror", origin, "--once", "--delay", "0", "--depth", "5", ready=False)
    crawld.wait()
    [(stale,)] = query_rows(crawld, "SELECT count(*) FROM page WHERE state = 'discovered'")
    [(copies, bodies)] = query_rows(
        crawld, "SELECT count(*), count(DISTINCT body_id) FROM version JOIN page USING (page_id)"
    )
    assert (stale, copies >= bodies) == (0, True)


def test_beside_a_daemon_exports_work_and_imports_are_refused(crawld, simweb):
    web = simweb("--pages", "60")
    crawld.start("mirror", web.url(), "--delay", "0", "--depth", "9")
    crawld.wait_until(lambda status: status["pages"].get("visited", 0) >= 20)
    summary, out = export(crawld, "static", "out")
    assert summary["written"]["pages"] >= 20
    refused = crawld.crawld("import", "urls", out / "index.html")
    assert refused.returncode == 2
    assert re.search(r"in use by process \d+", refused.stderr)
