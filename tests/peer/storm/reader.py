"""Reads a mirror as a reader does: through its web listener, following its redirects."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import re
import urllib.parse
from dataclasses import dataclass, replace

from tests.peer.storm.corpus import number_of

_MARK = re.compile(r"Mark of ([a-z]+ [a-z]+ [a-z]+): ([a-z]+ [a-z]+ [a-z]+ [a-z]+)\.")
_STYLE_MARK = re.compile(r"\.storm-mark-([a-z]+-[a-z]+-[a-z]+-[a-z]+)")
_MAX_REDIRECTS = 6
_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the mirror sent.

    Attributes:
        status: of the last response.
        is_redirected: whether the mirror led to another page.
        is_marked: whether the page says that its original is gone or moved.
        marks: numbers by key.
        style: number of the style sheet, -1 without a mark.
        digest: of the body.
        body: the page, without a copy if it did not change since the last read.
    """

    status: int
    is_redirected: bool
    is_marked: bool
    marks: dict[str, int]
    style: int
    digest: bytes
    body: bytes
    etag: str | None = None

    @property
    def is_current(self) -> bool:
        """Whether a reader takes this for the page as it is now."""
        return self.status == 200 and not self.is_marked


class MirrorReader:
    """One reader with a cache and a connection that is kept.

    Attributes:
        requests: how many it sent.
    """

    def __init__(self, listener: str) -> None:
        parts = urllib.parse.urlsplit(listener)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._connection: http.client.HTTPConnection | None = None
        self._cache: dict[str, Seen] = {}
        self.requests = 0

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def read(self, url: str) -> Seen:
        """Return what the mirror shows at the URL of an original page."""
        first = path = "/" + url.replace("://", "/", 1)
        for _ in range(_MAX_REDIRECTS):
            seen, location = self._get(path)
            if location is None:
                return replace(seen, is_redirected=path.partition("?")[0] != first)
            path = urllib.parse.urljoin(path, location)
        return replace(seen, status=508)

    def _get(self, path: str) -> tuple[Seen, str | None]:
        known = self._cache.get(path)
        conditions = {"If-None-Match": known.etag} if known is not None and known.etag else {}
        response, body = self._send(path, conditions)
        if response.status == 304 and known is not None:
            return known, None
        location = response.getheader("Location") if 300 <= response.status < 400 else None
        seen = see(response.status, body, response.getheader("ETag"))
        if location is None and response.status == 200:
            self._cache[path] = seen
        return seen, location

    def _send(
        self, path: str, conditions: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        self.requests += 1
        for _ in range(2):
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                if self._connection is None:
                    self._connection = http.client.HTTPConnection(
                        self._host, self._port, timeout=_TIMEOUT_S
                    )
                self._connection.request("GET", path, headers=conditions)
                response = self._connection.getresponse()
                return response, response.read()
            self.close()
        raise ConnectionError(f"the listener does not answer {path}")


def see(status: int, body: bytes, etag: str | None) -> Seen:
    """Return what a reader takes from a response of the mirror."""
    text = body.decode("utf-8", "replace") if status == 200 else ""
    banner = text.partition("<crawld-banner")[2].partition("</crawld-banner>")[0]
    style = _STYLE_MARK.search(text)
    return Seen(
        status,
        False,
        "<b " in banner,
        {key: number_of(words) for key, words in _MARK.findall(text)},
        number_of(style[1].replace("-", " ")) if style else -1,
        hashlib.blake2b(body, digest_size=16).digest(),
        body,
        etag,
    )
