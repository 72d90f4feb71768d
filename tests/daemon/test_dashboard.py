"""The dashboard of a running daemon: who gets it, what it says, live figures for many clients."""

import json
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import httpx
import pytest
import trio

from crawld.store import visit
from crawld.store.frontier import page as page_rows
from tests.daemon.control_client import get
from tests.daemon.harness import TIMEOUT_S, make_site, until_done
from tests.daemon.page_history import visit_record

LISTEN = {"listen": "127.0.0.1:0"}
ROOT = "/-/dashboard"


@dataclass
class Browser:
    """Requests to the web listener of a daemon."""

    running: object

    async def get(self, target, **headers):
        async with httpx.AsyncClient(
            base_url=self.running.web_url, timeout=TIMEOUT_S, verify=False
        ) as client:
            return await client.get(target, headers=headers)

    async def page(self, target=""):
        response = await self.get(f"{ROOT}{target}")
        assert response.status_code == 200, response.text
        return response.text


@pytest.fixture
async def web(serve):
    return await serve(make_site(pages=20))


@pytest.fixture
async def browser(web, daemon):
    running = await daemon(web.url(), web=LISTEN)
    await until_done(running, 60.0)
    return Browser(running)


@asynccontextmanager
async def live(running):
    """Open a stream of live figures; yield a function that returns the data of the next event."""
    address = urlsplit(running.web_url)
    received = b""

    async def next_event():
        nonlocal received
        while b"\n\n" not in received or b"data: " not in received:
            data = await stream.receive_some()
            assert data, received
            received += data
        event, _, received = received[received.index(b"data: ") :].partition(b"\n\n")
        return json.loads(event.removeprefix(b"data: "))

    async with await trio.open_tcp_stream(address.hostname, address.port) as stream:
        head = f"GET {ROOT}/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
        await stream.send_all(head.encode())
        yield next_event


# --- who gets it ---------------------------------------------------------------------------------


async def test_the_dashboard_is_for_this_machine_by_default(browser):
    assert (await browser.get(ROOT)).status_code == 200
    for headers in (
        {"Host": "mirror.example.org"},
        {"X-Forwarded-For": "192.0.2.1"},
        {"Forwarded": "for=192.0.2.1"},
    ):
        for target in (ROOT, f"{ROOT}/live", f"{ROOT}/dashboard.js"):
            refused = await browser.get(target, **headers)
            assert refused.status_code == 403
            assert "crawld" not in refused.text
    async with httpx.AsyncClient(
        base_url=browser.running.web_url, timeout=TIMEOUT_S, verify=False
    ) as client:
        response = await client.post(ROOT, content=b"x")
        assert response.status_code == 405
        assert response.headers["allow"] == "GET, HEAD"
        head = await client.head(ROOT)
        assert head.status_code == 200
        assert not head.content


async def test_all_readers_get_it_if_the_operator_says_so(web, daemon):
    config = {**LISTEN, "dashboard": "all", "hosts": ["mirror.example.org"]}
    browser = Browser(await daemon(web.url(), web=config))
    known = {"Host": "mirror.example.org", "X-Forwarded-For": "192.0.2.1"}
    assert (await browser.get(ROOT, **known)).status_code == 200
    assert (await browser.get(ROOT, Host="rebound.example")).status_code == 421


async def test_nobody_gets_it_if_it_is_off(web, daemon):
    browser = Browser(await daemon(web.url(), web={**LISTEN, "dashboard": "off"}))
    assert (await browser.get(ROOT)).status_code == 404
    assert (await browser.get("/")).status_code == 200


async def test_the_mirror_is_beside_it_and_its_policy_is_strict(browser):
    assert (await browser.get("/")).status_code == 200
    for target in ("/-/dashboardx", "/-/", "/-//dashboard", "/%2D/dashboard"):
        response = await browser.get(target)
        assert response.status_code == 404, target
        assert "Overview" not in response.text
    for target in (ROOT, f"{ROOT}/dashboard.css", f"{ROOT}/nothing"):
        headers = (await browser.get(target)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"


# --- what it says --------------------------------------------------------------------------------


async def test_the_overview_tells_the_figures_of_the_control_socket(browser):
    status = (await get(browser.running, "/status")).json()
    page = await browser.page()
    assert f'data-live="pages">{status["pages_in_all"]}<' in page
    assert f'data-live="visits">{sum(status["visits"].values())}<' in page
    assert 'class="bad"' not in page
    assert 'class="warn"' not in page


async def test_what_needs_attention_comes_with_its_remedy(browser):
    browser.running.set_paused(paused=True)
    page = await browser.page()
    assert "Everything is paused." in page
    assert "<code>crawlctl resume</code>" in page


async def test_what_changed_today_leads_to_the_difference(browser):
    running, now = browser.running, browser.running.clock.now()
    rows = await running.database.read(page_rows.list_pages, limit=1)
    for number, at in enumerate((now - 200_000.0, now - 20.0, now - 10.0)):
        record = replace(visit_record(rows[0].page_id, number), visited_at=at, title="<Fruit>")
        await running.database.write(visit.record, record)
    page = await browser.page()
    section = page.partition('id="changes">')[2].partition("</ul>")[0]
    assert "&lt;Fruit&gt;" in section
    [*targets] = re.findall(r'href="([^"]+)"', section)
    assert len(targets) == 2, section
    assert all(target.startswith("/diff/") for target in targets)
    assert (await browser.get(targets[0])).status_code == 200


# --- live ----------------------------------------------------------------------------------------


async def test_live_figures_change_without_a_request(browser):
    with trio.fail_after(TIMEOUT_S):
        async with live(browser.running) as next_event:
            first, second = await next_event(), await next_event()
    assert first["values"]["pages"] == second["values"]["pages"] == "20"
    assert first["values"]["uptime"] != second["values"]["uptime"]
    # A busy machine may delay requests, which is a note.
    assert [each for each in first["concerns"] if each["severity"] != "note"] == []


async def test_a_hundred_clients_share_one_event_each_second(browser, nursery):
    got = []

    async def listen():
        async with live(browser.running) as next_event:
            got.append([await next_event(), await next_event()])

    reads = []
    database = browser.running.database
    original = database.read_briefly

    async def counted(*args, **more):
        reads.append(args)
        return await original(*args, **more)

    database.read_briefly = counted
    began_at = trio.current_time()
    with trio.fail_after(TIMEOUT_S):
        async with trio.open_nursery() as clients:
            for _ in range(100):
                clients.start_soon(listen)
    assert len(got) == 100
    # One for each event, and one status beside it; on a busy machine they take some seconds more.
    assert len(reads) < 20 + 2.0 * (trio.current_time() - began_at)
    # Readers of the mirror are served beside them.
    assert (await browser.get("/")).status_code == 200
