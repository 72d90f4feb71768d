"""Pages of the dashboard: each answers, escapes what is hostile, and lists in parts."""

import re
from urllib.parse import quote

import pytest

from crawld.core.page import Outcome, PageState
from crawld.simweb import fault
from crawld.store import growth, visit
from crawld.store.frontier import frontier, page_list
from crawld.store.frontier.frontier import Discovery
from crawld.store.visit import VisitRecord
from tests.daemon.harness import make_site, until, until_done
from tests.daemon.test_dashboard import LISTEN, ROOT, Browser

TITLE = "<script>alert('title')</script>\" onmouseover=x &amp; \u202e"
PATH = "/%3Cscript%3Ealert(1)%3C/script%3E?%22='&a=%3C"
PAGES = (
    *("", "/sites", "/site?name=s", "/hosts", "/host?name=a.test", "/pages", "/pages?host=a.test"),
    *("/hints", "/replicas", "/jobs", "/forecast", "/storage", "/storage?span=day"),
)


def html(text):
    return fault.body(text.encode(), content_type="text/html")


@pytest.fixture
async def browser(serve, daemon):
    home = f'<title>Home</title><a href="{PATH.replace("&", "&amp;")}">x</a><a href="/lost">y</a>'
    faults = {
        "/": html(home),
        "/lost": fault.status(500),
        PATH: html(f"<title>{TITLE.replace('<', '&lt;')}</title><p>text"),
    }
    web = await serve(make_site(pages=1, faults=faults))
    running = await daemon(web.url(), web=LISTEN)
    await until_done(running, 0.5)
    made = Browser(running)
    made.web = web
    return made


def check(page):
    """Check a page for what no value may become."""
    assert "<script>alert" not in page
    assert "<script" not in page.split("<body>")[1]
    assert "onmouseover=x" not in re.sub(r'"[^"]*"|>[^<]*<', "", page)
    assert not re.search(r"<[^>]* style=", page)
    assert not re.search(r'(?:src|href)="//', page)


async def test_every_page_answers_and_escapes(browser):
    for target in PAGES:
        check(await browser.page(target))
    for path in ("/", PATH, "/lost", "/unknown"):
        url = quote(browser.web.url(path), safe="")
        page = await browser.page(f"/page?url={url}")
        check(page)
        assert "Next visit:" in page
    failing = await browser.page("/pages")
    assert "/lost" in failing
    host = await browser.page("/host?name=a.test")
    assert "http status 500" in host


BAD = (
    ("/nothing", 404),
    ("/site?name=%3Cscript%3E", 404),
    ("/site", 404),
    ("/host?name=x", 404),
    ("/page?url=::", 422),
    ("/page", 404),
    ("/hosts?after=%00%ff", 200),
    ("/pages?host=a.test&state=%27&after=x", 200),
    ("/pages?host=a.test&after=-9223372036854775808", 200),
    ("/pages?after=nan", 200),
    ("/pages?after=1e999", 200),
    ("/sites?start=-5", 200),
    ("/sites?start=99999999999999999999", 200),
    ("/hints?start=9223372036854775807", 200),
    ("/storage?span=century", 200),
    ("/forecast?what=nobody", 200),
)


async def test_bad_parameters_get_a_page(daemon_alone):
    for target, status in BAD:
        response = await daemon_alone.get(f"{ROOT}{target}")
        assert response.status_code == status, (target, response.text)
        check(response.text)
        assert "bug" not in response.text


@pytest.fixture
async def daemon_alone(paused_daemon):
    running = await paused_daemon("http://a.test:9/", web=LISTEN)
    await until(lambda: running.site_registry.seeded)
    return Browser(running)


async def test_a_thousand_sites_are_listed_in_parts(serve, paused_daemon):
    web = await serve(make_site(pages=1))
    more = [{"name": f"site-{n:04}", "seeds": [web.url(f"/{n}")]} for n in range(999)]
    running = await paused_daemon(web.url(), web=LISTEN, beside=more)
    browser = Browser(running)
    page, found = await browser.page("/sites"), []
    while True:
        found += re.findall(r'href="/-/dashboard/site\?name=([^"]+)"', page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        if following is None:
            break
        target = following[1].replace("&amp;", "&").removeprefix(ROOT)
        page = await browser.page(target)
    assert len(found) == len(set(found)) == 1_000
    assert "site-0042" in await browser.page("/sites?q=0042")
    await browser.page()


async def test_another_century_renders(serve, daemon, mirror, wall):
    web = await serve(make_site(pages=5))
    running = await daemon(web.url(), web=LISTEN)
    await until_done(running, 60.0)
    browser = Browser(running)
    for century in (-1, 2, 60):
        wall.shift_s = century * 100 * 365.25 * 86_400.0
        for target in (*PAGES, f"/page?url={quote(web.url('/'), safe='')}"):
            if target != "/forecast":
                response = await browser.get(f"{ROOT}{target}")
                assert response.status_code == 200, (century, target, response.text)


# --- lists of pages ------------------------------------------------------------------------------


async def fill(database, count, *, state=PageState.VISITED, host="a.test", at=1e9):
    urls = [f"http://{host}/{state}/{number}" for number in range(count)]
    found = [Discovery.of(url, site_id=1, at=at + n) for n, url in enumerate(urls)]
    new = await database.write(frontier.discover, found)
    if state is not PageState.DISCOVERED:
        records = [
            VisitRecord(
                page_id=each.page_id,
                visited_at=at + 100.0 * n,
                outcome=Outcome.UNCHANGED,
                state=state,
            )
            for n, each in enumerate(new)
        ]
        await database.write(visit.record_all, records)
    return new


async def test_a_rare_state_is_found_in_parts_of_bounded_cost(daemon_alone, monkeypatch):
    monkeypatch.setattr(page_list, "LOOKED_AT", 50)
    database = daemon_alone.running.database
    new = await fill(database, 300, host="big.test")
    await fill(database, 3, state=PageState.GONE, host="big.test")
    host_id = await database.read(
        lambda c: c.execute("SELECT host_id FROM page WHERE page_id = ?", (new[0].page_id,)).get
    )
    after, found, parts = None, [], 0
    while True:
        part = await database.read(
            page_list.list_of_host, host_id, state=PageState.GONE, after=after, limit=2
        )
        found += [each.url for each in part.pages]
        parts += 1
        assert len(part.pages) <= 2
        if part.following is None:
            break
        after = part.following
    assert len(found) == len(set(found)) == 3
    assert parts >= 303 // 50
    everything, after = [], None
    while True:
        part = await database.read(page_list.list_of_host, host_id, after=after, limit=40)
        everything += [each.url for each in part.pages]
        if part.following is None:
            break
        after = part.following
    assert len(everything) == len(set(everything)) == 303


async def test_growth_is_read_without_counting(daemon_alone):
    database = daemon_alone.running.database
    before = await database.read(growth.growth, [5e9])
    await fill(database, 64, host="big.test", at=1e9)
    assert await database.read(growth.first_time) is not None
    steps = []

    def read(connection):
        connection.trace_v2(1, lambda event: steps.append(event))
        try:
            return growth.growth(connection, [5e9])
        finally:
            connection.trace_v2(0, None)

    [last] = await database.read(read)
    assert last.visits - before[0].visits == 64
    assert len(steps) < 3 * 30
