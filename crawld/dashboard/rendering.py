"""Templates of the dashboard and its files; every value is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crawld.core.display import every_text, size_text
from crawld.dashboard import words
from crawld.web.address import mirror_path, readable_url
from crawld.web.pages import brief
from crawld.web.reply import Header, headers

ROOT: Final = "/-/dashboard"
"""Path of the overview; the other pages are below it."""

_HERE: Final = Path(__file__).parent

FILES: Final = {
    name: ((_HERE / "static" / name).read_bytes(), content_type)
    for name, content_type in (
        ("dashboard.css", "text/css; charset=utf-8"),
        ("dashboard.js", "text/javascript; charset=utf-8"),
    )
}
"""Style and script by name, with their types."""

PAGES: Final = (
    *(("", "Overview"), ("sites", "Sites"), ("hosts", "Hosts"), ("pages", "Pages")),
    *(("hints", "Hints"), ("replicas", "Replicas"), ("jobs", "Jobs")),
    *(("forecast", "Forecast"), ("storage", "Storage")),
)
"""Pages of the navigation: path below `ROOT`, and name."""

SECURITY: Final[list[Header]] = headers(
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-dns-prefetch-control", "off"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
"""Headers of every answer: nothing from elsewhere, no frames, no inline script, no stored copy."""


def link(page: str, **parameters: object) -> str:
    """Return the target of a page of the dashboard; parameters that are None are left out.

    >>> link("host", name="a&b.test", after=None)
    '/-/dashboard/host?name=a%26b.test'
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    path = f"{ROOT}/{page}" if page else ROOT
    return f"{path}?{urlencode(given)}" if given else path


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "brief": brief,
        "duration": words.duration,
        "every": every_text,
        "number": words.number,
        "rate": words.rate,
        "readable": readable_url,
        "share": words.share,
        "size": lambda size: words.UNKNOWN if size is None else size_text(size),
        "stamp": words.stamp,
        "moment": words.moment,
    }
    made.globals |= {
        "ago": words.ago,
        "interval": words.interval,
        "link": link,
        "mirror_path": mirror_path,
        "navigation": PAGES,
        "state_names": words.STATE_NAMES,
    }
    return made


_TEMPLATES: Final = _environment()


def render(template: str, **values: object) -> bytes:
    """Return a page as HTML."""
    return _TEMPLATES.get_template(template).render(values).encode("utf-8", "replace")
