"""Converts between page URLs and paths in the web mirror.

    /https/en.example.org/wiki/Page?query      the page https://en.example.org/wiki/Page?query
    /@2026-11-01T00:00/https/en.example.org/…  the same page at that time
    /@v123/https/en.example.org/…              its version 123

The path of the URL is kept, so that relative links work even if they are not rewritten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from crawld.core.timestamps import parse_timestamp
from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError, OperatorError

_ADDRESS = re.compile(r"(?:/@([^/?#]*))?/(https?)/([^/?#]*)(.*)", re.DOTALL)
_VERSION = re.compile(r"v([0-9]{1,18})")
_TIME = re.compile(r"[0-9][0-9T:.Z+-]*")
_ENCODED = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")


@dataclass(frozen=True, slots=True)
class VersionSelector:
    """Selects a version of a page.

    Attributes:
        text: as in a path; empty: the current version.
        at: Unix seconds; None: the current version, or one by ID.
        version_id: ID of a version.
    """

    text: str = ""
    at: float | None = None
    version_id: int | None = None


CURRENT = VersionSelector()


@dataclass(frozen=True, slots=True)
class MirrorAddress:
    """A page of the mirror and its version.

    Attributes:
        url: canonical URL.
        selector: the version.
        canonical: whether the path is in the form of `mirror_path`.
    """

    url: str
    selector: VersionSelector
    canonical: bool


def mirror_path(url: str, selector: str = "") -> str:
    """Return the path of a canonical URL in the mirror.

    >>> mirror_path("https://a.org/b?c", "2026-11-01")
    '/@2026-11-01/https/a.org/b?c'
    """
    path = url.replace("://", "/", 1)
    return f"/@{selector}/{path}" if selector else f"/{path}"


def readable_url(url: str) -> str:
    """Return a URL for people: non-ASCII characters without percent-encoding.

    >>> readable_url("https://a.org/%C3%9Cber%20%E2%80%AE%2F%FF")
    'https://a.org/Über%20%E2%80%AE%2F%FF'
    """
    return _ENCODED.sub(_decode, url) if "%" in url else url


def _decode(run: re.Match[str]) -> str:
    try:
        text = unquote(run[0], errors="strict")
    except UnicodeDecodeError:
        return run[0]
    # Invisible characters and those that change the text direction stay encoded.
    return "".join(each if each.isprintable() else quote(each) for each in text)


def parse_address(target: str) -> MirrorAddress | None:
    """Return the page that a percent-encoded request target names, None if it names none."""
    match = _ADDRESS.fullmatch(target)
    if match is None:
        return None
    selector = parse_selector(match[1]) if match[1] is not None else CURRENT
    if selector is None:
        return None
    try:
        url = canonicalize(f"{match[2]}://{match[3]}{match[4]}")
    except InvalidUrlError:
        return None
    return MirrorAddress(url, selector, mirror_path(url, selector.text) == target)


def parse_selector(text: str) -> VersionSelector | None:
    """Return the selector for a text: a version ID, ISO 8601 or Unix seconds."""
    if version := _VERSION.fullmatch(text):
        return VersionSelector(text, version_id=int(version[1]))
    if _TIME.fullmatch(text) is None:
        return None
    try:
        return VersionSelector(text, at=parse_timestamp(text, 0.0))
    except OperatorError:
        return None
