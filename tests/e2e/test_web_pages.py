"""The generated pages of the mirror in a browser: narrow, dark, by keyboard, without scripts."""

from contextlib import closing

import pytest

from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import site
from crawld.store.versions import search_index
from tests.peer.axe import violations
from tests.peer.chromium import requests_of, with_chromium
from tests.peer.crawld_process import Crawld, with_serve
from tests.unit.web.conftest import NOW, Mirror

HOSTILE = '"><script>alert(1)</script><img src=//evil.test/x>'
BASE = "https://wiki.example.org/wiki/"
PATH = "/https/wiki.example.org/wiki/"
TITLES = ("Apple", "Apple pie", "Apricot", "Banana", HOSTILE)
TARGETS = (
    *("/", "/site/docs", "/site/docs?begins=ap", "/search?q=fruit", "/search?q=nothing"),
    *("/changes", "/changes?kind=gone", "/changes?q=fruit&site=docs&size=5"),
    *(f"/versions{PATH}Apple", f"/diff/1..2{PATH}Apple"),
)


@pytest.fixture(scope="module")
def browser():
    with with_chromium() as running:
        yield running


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Store a small wiki and serve it; return its URL."""
    crawld = Crawld(tmp_path_factory.mktemp("served"))
    migrate.migrate(crawld.db)
    with closing(open_connection(crawld.db)) as connection:
        site.upsert(connection, "docs", "{}", source="config", at=NOW)
        mirror = Mirror(connection)
        text = "<h1>Fruit</h1><p>A fruit that people eat"
        apple = mirror.page(BASE + "Apple", f"{text} daily", title="Apple - Wiki")
        mirror.changed(apple, f"{text} raw", at=NOW + 60, kind="text/html", title="Apple - Wiki")
        for title in TITLES[1:]:
            mirror.page(BASE + title.replace(" ", "_"), text, title=f"{title} - Wiki")
        while (work := search_index.plan(connection)) is not None:
            search_index.apply(connection, work)
    with with_serve(crawld, "--title", "Fruit wiki") as url:
        yield url.rstrip("/")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (360, "dark")])
def test_pages_are_accessible_and_ask_nobody_else(browser, served, width, scheme):
    size = {"width": width, "height": 740}
    look = {"viewport": size, "color_scheme": scheme, "is_mobile": width < 600}
    with closing(browser.new_context(**look)) as context:
        page = context.new_page()
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        made = requests_of(page)
        found = {}
        for target in TARGETS:
            page.goto(served + target)
            found[target] = violations(page)
            inner = page.evaluate("document.documentElement.scrollWidth")
            assert inner <= width, f"{target} scrolls sideways"
        page.goto(served + PATH + "Apple")
        found["mirrored"] = [each for each in violations(page) if "crawld-" in each]
        line = page.evaluate("document.querySelector('crawld-banner').scrollHeight")
        assert line < 36, "the line takes more than one row"
        page.goto(f"{served}/https/wiki.example.org/wiki/None")
        found["missing"] = violations(page)
    assert {target: each for target, each in found.items() if each} == {}
    assert all(url.startswith((served, "data:")) for url in made)
    assert [text for text in said if "status of 404" not in text] == []


def test_suggestions_by_keyboard(browser, served):
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(served + "/site/docs")
        page.keyboard.press("Tab")  # the link to the content
        page.keyboard.press("Tab")  # the front page
        page.keyboard.press("Tab")
        page.keyboard.type("ap")
        options = page.get_by_role("option")
        options.first.wait_for()
        names = [text.split("wiki.")[0].strip() for text in options.all_inner_texts()]
        assert names == ["Apple", "Apple pie", "Apricot"]
        assert violations(page) == []
        page.keyboard.press("Escape")
        assert options.first.is_hidden()
        page.keyboard.type("p")
        options.first.wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        focused = page.locator("#search")
        assert focused.get_attribute("aria-activedescendant") == "search-suggestions-1"
        page.keyboard.press("Enter")
        page.wait_for_url(served + PATH + "Apple_pie")


def test_a_hostile_title_is_text_in_suggestions(browser, served):
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(served)
        page.get_by_role("combobox").type('">')
        option = page.get_by_role("option")
        option.wait_for()
        assert HOSTILE in option.inner_text()


def test_searching_works_without_scripts(browser, served):
    with closing(browser.new_context(java_script_enabled=False)) as context:
        page = context.new_page()
        page.goto(served)
        page.get_by_role("searchbox").fill("apricot")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="Apricot").click()
        assert page.url == served + PATH + "Apricot"
