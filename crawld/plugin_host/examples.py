"""Examples of what hooks get: for `crawld plugins check` and for the tests of plug-ins.

from crawld.plugin_host.examples import reading

verdict = my_plugin.read_response(reading("<p>New text</p>", previous="<p>Old text</p>"))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from crawld.core.content.analysis import analyse, read_blocks
from crawld.core.url import resolve
from crawld.plugins import (
    ExportedPage,
    KnownPage,
    Message,
    MessageEvent,
    PreviousCopy,
    Reading,
)

URL: Final = "https://www.example.org/news/2026/autumn.html"
TYPE: Final = "text/html; charset=utf-8"

HTML: Final = """<!DOCTYPE html><html lang="en"><head><title>Autumn</title></head><body>
<nav><a href="/">Start</a> <a href="/news/">News</a></nav>
<main><h1>Autumn</h1><p>The leaves of the beech turn brown before those of the oak, which keeps some
of them until spring. A mild October moves both by ten days.</p>
<p>Counts of the last year are in <a href="counts.html">a table</a>.</p></main>
<footer>Visitors today: 4711</footer></body></html>"""

PREVIOUS_HTML: Final = HTML.replace("4711", "4096").replace("ten days", "a week")


def page_facts(url: str = URL, *, site: str = "docs", visits: int = 3) -> KnownPage:
    """Return a page that was visited some times."""
    return KnownPage(
        url=url,
        site=site,
        host="www.example.org",
        depth=2,
        visits=visits,
        last_visit_at=1_790_000_000.0,
        last_change_at=1_789_000_000.0,
        title="Autumn",
    )


def reading(
    html: str = HTML,
    previous: str | None = None,
    *,
    url: str = URL,
    site: str = "docs",
    tags: Mapping[str, str] | None = None,
) -> Reading:
    """Return a reading of an HTML page.

    Args:
        previous: the copy held; None: it is the first visit.
        tags: what the plug-in kept with the copy held.
    """
    body = html.encode()
    held = None
    if previous is not None:
        held = PreviousCopy(previous.encode(), TYPE, tags or {})
    blocks = read_blocks(held.body, TYPE) if held is not None else None
    found = analyse(body, TYPE, previous=blocks)
    page = found.page
    return Reading(
        page=page_facts(url, site=site, visits=0 if held is None else 3),
        body=body,
        content_type=found.content_type,
        charset=found.charset,
        headers=(("Content-Type", TYPE),),
        title=(page.title or None) if page is not None else None,
        links=tuple(resolve(url, page.links)) if page is not None else (),
        previous=held,
        changed=held is None or bool(found.difference),
        difference=found.difference,
        read_text=found.blocks.visible_text,
    )


def exported_page(html: str = HTML, *, url: str = URL) -> ExportedPage:
    """Return a page as exporters get it."""
    body = html.encode()
    return ExportedPage(
        url=url,
        title="Autumn",
        visited_at=1_790_000_000.0,
        content_type="text/html",
        charset="utf-8",
        body=body,
        read_text=partial(_visible_text, body),
    )


def message(target: str = "") -> Message:
    """Return a notification of one change."""
    event = MessageEvent("urn:crawld:example:1", "changed", 1_790_000_000.0, "docs", URL, "Autumn")
    text = f"Changed: Autumn\n{URL}"
    return Message("urn:crawld:example:1", "team", "[docs] Changed: Autumn", text, (event,), target)


def _visible_text(body: bytes) -> str:
    return read_blocks(body, TYPE).visible_text()
