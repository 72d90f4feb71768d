"""axe-core in Chromium: accessibility rules that a page breaks (WCAG 2.2 A and AA, and more)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


def violations(page: Page) -> list[str]:
    """Return what axe-core finds on the page as it is now: rule, help and the first element."""
    # Not as an element of the page, whose policy permits only scripts of its own.
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
    ]
