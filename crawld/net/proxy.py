"""HTTP proxies: the tunnel for https, and the address check before a proxied request.

The proxy belongs to the operator and may have any address. The proxy dials the target, so the
target is checked here as far as possible: it is refused if its name resolves to any address that
must not be dialed. A name that does not resolve here is passed to the proxy unchecked, but not one
whose lookup had no open file: it may resolve to any address.
"""

from __future__ import annotations

import re

import can_ada
import trio

from crawld.core.page import Failure
from crawld.net.address import BLOCKED_PORTS, refusal
from crawld.net.errors import FetchError, NoFilesError
from crawld.net.resolver import ResolutionError, Resolver

MAX_RESPONSE_BYTES = 16_384
"""Limit of the response to CONNECT."""

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})\b")


def proxy_address(url: str) -> tuple[str, int]:
    """Return host and port of a proxy URL, `http://host:port`.

    Raises:
        ValueError: not such a URL.
    """
    parsed = can_ada.parse(url)
    if parsed.protocol != "http:" or parsed.pathname not in ("", "/") or parsed.username:
        del parsed  # an error kept until the end of the process would keep it
        raise ValueError("must be http://host:port, without a name or password")
    return parsed.hostname.strip("[]"), int(parsed.port or 80)


async def check_target(host: str, port: int, *, allow_private: bool, resolver: Resolver) -> None:
    """Refuse a proxied target that resolves to an address that must not be dialed.

    Raises:
        FetchError: `ADDRESS_REFUSED`.
        NoFilesError: there was no open file for the lookup.
    """
    if port in BLOCKED_PORTS:
        raise FetchError(Failure.ADDRESS_REFUSED, f"port {port} belongs to another service")
    try:
        addresses = await resolver.resolve(host)
    except ResolutionError as error:
        if error.kind == "no_files":
            raise NoFilesError from error
        return
    for address in addresses:
        # The proxy may dial any of them.
        if reason := refusal(address, allow_private=allow_private):
            raise FetchError(Failure.ADDRESS_REFUSED, reason)


async def open_tunnel(stream: trio.abc.Stream, host: str, port: int) -> None:
    """Open a tunnel through a proxy to a target (CONNECT).

    Raises:
        FetchError: `CONNECT`: the proxy refuses, or its response is not HTTP.
    """
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n"
    response = b""
    try:
        await stream.send_all(request.encode("ascii"))
        while b"\r\n\r\n" not in response and len(response) < MAX_RESPONSE_BYTES:
            # One byte at a time: bytes after the header belong to TLS.
            piece = await stream.receive_some(1)
            if not piece:
                break
            response += bytes(piece)
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise FetchError(Failure.CONNECT, "the proxy closed the connection", local=True) from error
    status = _STATUS.match(response)
    if status is None or b"\r\n\r\n" not in response:
        raise FetchError(Failure.CONNECT, "the proxy does not speak HTTP", local=True)
    code = int(status[1])
    if 200 <= code < 300:
        return
    # 502 to 504 concern the target, other statuses the proxy itself.
    text = f"the proxy answered {code}"
    raise FetchError(Failure.CONNECT, text, local=code not in (502, 503, 504))
