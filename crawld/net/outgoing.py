"""Builds a request: endpoint, request target and header lines."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import SecretStr

from crawld.core.page import Failure
from crawld.core.url_parse import parse
from crawld.core.value_type import value_type
from crawld.net.decompress import ACCEPT_ENCODING
from crawld.net.errors import FetchError
from crawld.net.exchange import FetchRequest, Headers, HeaderValue
from crawld.net.wire import Endpoint

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_DEFAULT_PORTS = {"http:": 80, "https:": 443}


@value_type
class Target:
    """The destination of a request.

    Attributes:
        endpoint: the endpoint to connect to.
        authority: value of Host: the name, and the port unless it is the scheme's default.
        path: path and query, as in the URL; the whole URL for a proxy.
    """

    endpoint: Endpoint
    authority: bytes
    path: bytes


def request_target(request: FetchRequest, *, http2: bool = False) -> Target:
    """Return the destination of a request.

    Args:
        http2: whether HTTP/2 is offered where the request does not say.

    Raises:
        FetchError: `ADDRESS_REFUSED`: not an http or https URL.
    """
    try:
        url, international = parse(request.url)
    except ValueError:
        raise FetchError(Failure.ADDRESS_REFUSED, "not a URL") from None
    if url.protocol not in _DEFAULT_PORTS:
        raise FetchError(Failure.ADDRESS_REFUSED, f"{url.protocol} is neither http nor https")
    port = int(url.port) if url.port else _DEFAULT_PORTS[url.protocol]
    scheme = url.protocol[:-1]
    name = international or url.hostname
    authority = f"{name}:{url.port}" if url.port else name
    allow_private = request.permits_private(name.strip("[]"))
    offers = scheme == "https" and (http2 if request.http2 is None else request.http2)
    endpoint = Endpoint(scheme, name, port, allow_private, request.proxy, http2=offers)
    path: str = url.pathname + url.search
    if request.proxy is not None and scheme == "http":
        # RFC 9112, section 3.2.2: a proxy gets the whole URL.
        path = f"http://{authority}{path}"
    return Target(endpoint, authority.encode("ascii"), path.encode("ascii"))


def default_headers(user_agent: str) -> Headers:
    """Return the default header lines of every request."""
    return encode_headers(
        (
            ("User-Agent", user_agent),
            ("Accept", ACCEPT),
            ("Accept-Encoding", ACCEPT_ENCODING),
        )
    )


def header_lines(target: Target, defaults: Headers, given: Headers) -> list[tuple[bytes, bytes]]:
    """Return the header lines of a request; a given header replaces a default of the same name."""
    names = {name.lower() for name, _ in given}
    lines = [] if b"host" in names else [(b"Host", target.authority)]
    lines += [line for line in defaults if line[0].lower() not in names]
    lines += given
    return lines


def encode_headers(headers: Iterable[tuple[str, HeaderValue]]) -> Headers:
    """Return header lines as bytes: Latin-1, or UTF-8 for values that Latin-1 cannot encode."""
    return tuple((name.encode("ascii", "replace"), _octets(value)) for name, value in headers)


def _octets(value: HeaderValue) -> bytes:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()  # the only place that unwraps a secret to send it
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace")
