"""Debian's Chromium without a window, driven by Playwright: what a reader of a mirror really gets.

A fresh profile each time, and nothing that asks hosts of its maker. Every request that a page makes
is noted, also those that the browser refuses by policy before they are sent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from playwright.sync_api import Browser, Page, sync_playwright

from tests.peer import require_peer

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextlib.contextmanager
def with_chromium() -> Iterator[Browser]:
    """Run a browser; its processes are ended afterwards."""
    program = require_peer("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def requests_of(page: Page) -> list[str]:
    """Return a list that fills with the URL of each request a page makes from now on."""
    made: list[str] = []
    page.on("request", lambda request: made.append(request.url))
    return made
