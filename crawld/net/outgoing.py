"""What goes on the wire for one request: where to, which target, which header lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import can_ada

from crawld.core.page import Failure
from crawld.net.decompress import ACCEPT_ENCODING
from crawld.net.errors import FetchError
from crawld.net.exchange import FetchRequest, Headers
from crawld.net.wire import Endpoint

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_DEFAULT_PORTS = {"http:": 80, "https:": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart.

    Attributes:
        endpoint: where to connect to.
        authority: value of Host: the name, and the port unless it is the scheme's.
        path: path and query, as the URL spells them; to a proxy the whole URL.
    """

    endpoint: Endpoint
    authority: bytes
    path: bytes


def request_target(request: FetchRequest) -> Target:
    """Take the URL of a request apart.

    Raises:
        Fault: `ADDRESS_REFUSED`, not an http or https URL: nothing that could be connected to.
    """
    try:
        url = can_ada.parse(request.url)
    except ValueError:
        raise FetchError(Failure.ADDRESS_REFUSED, "not a URL") from None
    if url.protocol not in _DEFAULT_PORTS:
        raise FetchError(Failure.ADDRESS_REFUSED, f"{url.protocol} is neither http nor https")
    port = int(url.port) if url.port else _DEFAULT_PORTS[url.protocol]
    scheme = url.protocol[:-1]
    endpoint = Endpoint(scheme, url.hostname, port, request.allow_private, request.proxy)
    path: str = url.pathname + url.search
    if request.proxy is not None and scheme == "http":
        # RFC 9112, section 3.2.2: a proxy is told the whole URL.
        path = f"http://{url.host}{path}"
    return Target(endpoint, url.host.encode("ascii"), path.encode("ascii"))


def default_headers(user_agent: str) -> Headers:
    """Return the header lines that every request carries."""
    return encode_headers(
        (
            ("User-Agent", user_agent),
            ("Accept", ACCEPT),
            ("Accept-Encoding", ACCEPT_ENCODING),
        )
    )


def header_lines(target: Target, defaults: Headers, given: Headers) -> list[tuple[bytes, bytes]]:
    """Return the header lines of a request; a given line replaces a default of its name."""
    names = {name.lower() for name, _ in given}
    lines = [] if b"host" in names else [(b"Host", target.authority)]
    lines += [line for line in defaults if line[0].lower() not in names]
    lines += given
    return lines


def encode_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return header lines as bytes: Latin-1 as received, UTF-8 for what does not fit it."""
    return tuple((name.encode("ascii", "replace"), _octets(value)) for name, value in headers)


def _octets(value: str) -> bytes:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace")
