"""Where a page stands in the mirror, and which page an address of the mirror means.

    /https/en.example.org/wiki/Page?query      the page https://en.example.org/wiki/Page?query
    /@2026-11-01T00:00/https/en.example.org/…  the same as it was then
    /@v123/https/en.example.org/…              its copy of that number

The path keeps its shape, so that links relative to a page work even where nobody rewrote them.
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
    """When a page is looked at.

    Attributes:
        text: as written in addresses; empty: now.
        at: instant, Unix seconds; None: now, or a copy by its number.
        version_id: number of a copy.
    """

    text: str = ""
    at: float | None = None
    version_id: int | None = None


CURRENT = VersionSelector()


@dataclass(frozen=True, slots=True)
class MirrorAddress:
    """A page of the mirror.

    Attributes:
        url: its canonical URL.
        moment: when.
        canonical: whether the address was written as `mirror_path` writes it.
    """

    url: str
    moment: VersionSelector
    canonical: bool


def mirror_path(url: str, moment: str = "") -> str:
    """Return the path of a canonical URL in the mirror.

    >>> mirror_path("https://a.org/b?c", "2026-11-01")
    '/@2026-11-01/https/a.org/b?c'
    """
    path = url.replace("://", "/", 1)
    return f"/@{moment}/{path}" if moment else f"/{path}"


def readable_url(url: str) -> str:
    """Return a URL for a reader: what is percent-encoded of other scripts as it is meant.

    >>> readable("https://a.org/%C3%9Cber%20%E2%80%AE%2F%FF")
    'https://a.org/Über%20%E2%80%AE%2F%FF'
    """
    return _ENCODED.sub(_decode, url) if "%" in url else url


def _decode(run: re.Match[str]) -> str:
    try:
        text = unquote(run[0], errors="strict")
    except UnicodeDecodeError:
        return run[0]
    # What is not seen, or turns the direction of what follows, stays as it is.
    return "".join(each if each.isprintable() else quote(each) for each in text)


def parse_address(target: str) -> MirrorAddress | None:
    """Return the page that path and query of a request mean, None if they mean none.

    Args:
        target: the request target as sent, percent-encoding kept.
    """
    match = _ADDRESS.fullmatch(target)
    if match is None:
        return None
    moment = parse_selector(match[1]) if match[1] is not None else CURRENT
    if moment is None:
        return None
    try:
        url = canonicalize(f"{match[2]}://{match[3]}{match[4]}")
    except InvalidUrlError:
        return None
    return MirrorAddress(url, moment, mirror_path(url, moment.text) == target)


def parse_selector(text: str) -> VersionSelector | None:
    """Return the moment that a text names: a number of a copy, ISO 8601 or Unix seconds."""
    if version := _VERSION.fullmatch(text):
        return VersionSelector(text, version_id=int(version[1]))
    if _TIME.fullmatch(text) is None:
        return None
    try:
        return VersionSelector(text, at=parse_timestamp(text, 0.0))
    except OperatorError:
        return None
