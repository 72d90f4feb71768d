"""Parse URLs by the WHATWG URL Standard, with host names by the current IDNA tables.

can_ada does both, but its tables are old: it turns `faẞ.de` into `fass.de` and refuses `xn--`
labels of newer scripts. So an international host is translated here, and can_ada parses the URL
with a stand-in for it: the same name with `xn-` for `xn--`, which it takes for plain ASCII. Whoever
reads the host then takes the real one.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import can_ada

from crawld.core.host_name import to_ascii

_SCHEMES = ("http://", "https://")
_CONTROLS = "".join(map(chr, range(0x21)))
_NOT_IN_URLS = str.maketrans("", "", "\t\n\r")
_BEFORE_HOST = re.compile(r"(?:(https?):)?([/\\]*)", re.IGNORECASE).match
_AFTER_HOST = re.compile(r"[/\\?#]").search


Parsed = tuple[can_ada.URL, str | None]
"""A URL, and its real host if can_ada parsed a stand-in for it."""


class BaseUrl:
    """An absolute URL that others are relative to.

    Attributes:
        join_plain: the URL that a plain text names: ASCII without "%" and "--"; None: the base has
            an international host, so `join` must be asked.
    """

    def __init__(self, text: str) -> None:
        """Parse the URL.

        Raises:
            ValueError: it is none.
            TypeError: it holds a lone surrogate.
        """
        url, self._host = parse(text)
        self._join = url.__add__
        self.join_plain = self._join if self._host is None else None
        self._scheme = url.protocol.removesuffix(":")

    def join(self, raw: str) -> Parsed:
        """Return the URL that a reference names.

        Raises:
            ValueError: it names none.
            TypeError: it holds a lone surrogate.
        """
        if self._host is None and not may_name_host(raw):
            return self._join(raw), None
        place = _host_place(raw, self._scheme)
        if place is None:
            return self._join(raw), self._host
        text, host = _with_stand_in(*place)
        return self._join(text), host


def parse(raw: str) -> Parsed:
    """Return an absolute URL.

    Raises:
        ValueError: it is none.
        TypeError: it holds a lone surrogate.
    """
    if not may_name_host(raw):
        return can_ada.parse(raw), None
    place = _host_place(raw, None)
    if place is None:
        return can_ada.parse(raw), None
    text, host = _with_stand_in(*place)
    return can_ada.parse(text), host


def may_name_host(raw: str) -> bool:
    """Return whether a text may name a host that needs current tables: quick, and never wrongly no.

    A host needs them if it has other characters than ASCII, plain or as %XX, or an `xn--` label.
    """
    if raw[:1] == "/" and raw[1:2].isalnum():
        return False
    if raw.startswith(_SCHEMES):
        end = raw.find("/", 8)
        # A tab is ignored, and a slash after it may be one of those before the host.
        if end > 8 and raw[:end].isprintable():
            raw = raw[:end]
    return not raw.isascii() or "%" in raw or "n--" in raw or "N--" in raw


def _host_place(raw: str, base_scheme: str | None) -> tuple[str, int, int] | None:
    """Return a text without what URLs ignore, and where its host with user name and port is."""
    text = raw.strip(_CONTROLS).translate(_NOT_IN_URLS)
    before = _BEFORE_HOST(text)
    assert before is not None  # it matches the empty text
    scheme, slashes = before.groups()
    if len(slashes) < 2 and (scheme is None or scheme.lower() == base_scheme):
        return None
    after = _AFTER_HOST(text, before.end())
    return text, before.end(), after.start() if after else len(text)


def _with_stand_in(text: str, start: int, end: int) -> tuple[str, str | None]:
    """Return a text with a stand-in for an international host, and the real host.

    Raises:
        ValueError: current tables do not allow it.
    """
    user, at, place = text[start:end].rpartition("@")
    name, colon, port = place.partition(":")
    if place.startswith("[") or not _is_international(name):
        return text, None
    host = to_ascii(unquote_to_bytes(name).decode("utf-8", "replace"))
    if not host.isprintable() or set(host) & _DELIMITERS:
        raise ValueError("a host has a delimiter")
    stand_in = host.replace("xn--", "xn-")
    text = f"{text[:start]}{user}{at}{stand_in}{colon}{port}{text[end:]}"
    return text, host if stand_in != host else None


_DELIMITERS = frozenset(" #/:<>?@[\\]^|%")


def _is_international(name: str) -> bool:
    return not name.isascii() or "%" in name or "xn--" in name.lower()
