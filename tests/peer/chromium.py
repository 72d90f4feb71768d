"""Headless Chromium, driven by Playwright: what a reader of a mirror really sees.

The profile is always new, and background requests to the vendor's hosts are disabled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.peer import require_peer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextlib.contextmanager
def with_chromium() -> Iterator[Browser]:
    """Run a browser; end its processes afterwards."""
    from playwright.sync_api import sync_playwright

    program = require_peer("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def requests_of(page: Page) -> list[str]:
    """Return a list of the URLs a page requests from now on, also those that its policy blocks."""
    made: list[str] = []
    page.on("request", lambda request: made.append(request.url))
    return made
