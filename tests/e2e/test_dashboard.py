"""The dashboard in a real browser: no error, nothing from elsewhere, by keyboard, for all."""

import re
from contextlib import closing
from urllib.parse import quote

import pytest

from tests.e2e.daemon_config import site, start_daemon
from tests.peer.axe import violations
from tests.peer.chromium import requests_of, with_chromium

SIZES = {"desk": {"width": 1440, "height": 900}, "phone": {"width": 360, "height": 740}}


@pytest.fixture
def dashboard(simweb, crawld):
    """The address of the dashboard of a daemon that crawls, and the URL of a page it visited."""
    web = simweb("--host=a.test", "--pages=30")
    url = web.url("/", "a.test")
    start_daemon(
        crawld,
        site(url),
        web={"listen": "127.0.0.1:0"},
        schedule={"min_revisit_s": 20.0},
        jobs={"audit_share": 0.3},
    )
    crawld.wait_until(lambda status: status["pages"]["visited"] > 15)
    address = re.search(r"http://127\.0\.0\.1:[0-9]+/", crawld.output())[0]
    yield f"{address}-/dashboard", url
    assert crawld.terminate() == 0


def test_every_page_in_a_browser(dashboard):
    root, url = dashboard
    pages = [
        *("", "/hosts", "/host?name=a.test", f"/page?url={quote(url, safe='')}", "/forecast"),
        *("/sites", "/site?name=web", "/pages?host=a.test", "/page?url=https://x.example/"),
        *("/pages", "/hints", "/replicas", "/jobs", "/storage", "/nothing"),
    ]
    with with_chromium() as browser:
        for size, scheme, seen in (("desk", "light", pages), ("phone", "dark", pages[:5])):
            look = {"viewport": SIZES[size], "color_scheme": scheme}
            with closing(browser.new_context(**look)) as context:
                _look_at(context.new_page(), root, seen, size)
        with closing(browser.new_context(viewport=SIZES["desk"])) as context:
            _use_keyboard(context.new_page(), root)
            _watch_live(context.new_page(), root)


def _look_at(page, root, pages, size):
    errors, made = [], requests_of(page)
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for target in pages:
        response = page.goto(root + target)
        assert response.status == (404 if target == "/nothing" else 200)
        errors[:] = [each for each in errors if "status of 404" not in each]
        assert violations(page) == [], target
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= SIZES[size]["width"], target
        assert page.title().endswith("crawld")
    assert errors == []
    assert all(url.startswith((root, "data:")) for url in made)


def _use_keyboard(page, root):
    """Skip to the content, open a table of values, and follow a link, without a mouse."""
    page.goto(root)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName"))
        if reached[-1] == "SUMMARY":
            break
    assert reached[-1] == "SUMMARY"
    page.keyboard.press("Enter")
    assert page.locator("details[open] table").count() == 1
    assert page.locator("details[open] tbody tr").count() > 3
    page.locator("header input").focus()
    page.keyboard.type("https://x.example/never-seen")
    page.keyboard.press("Enter")
    page.wait_for_url("**/page?url=*")
    assert "No site covers the host x.example" in page.inner_text("main")


def _watch_live(page, root):
    """Figures change without a reload; a strict policy refuses what is injected."""
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(root)
    before = page.inner_text("[data-live=uptime]")
    page.wait_for_function(
        "text => document.querySelector('[data-live=uptime]').textContent !== text", arg=before
    )
    assert page.inner_text("#live") == "live"
    page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.injected = true';
        document.body.append(script);
    }""")
    assert page.evaluate("window.injected") is None
    assert any("Content Security Policy" in each for each in refused)
