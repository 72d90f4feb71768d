"""Requests through an HTTP proxy: the tunnel of an https request, and the fence in front of it.

The proxy is the operator's and may have any address. It dials the target itself, so that the
fence is judged beforehand as far as it can be known here: a target whose name has any address that
must not be dialled is refused; a name that nobody here knows is left to the proxy.
"""

from __future__ import annotations

import re

import can_ada
import trio

from crawld.core.page import Failure
from crawld.net.address import BLOCKED_PORTS, refusal
from crawld.net.errors import FetchError
from crawld.net.resolver import ResolutionError, Resolver

MAX_ANSWER_BYTES = 16_384
"""Of the answer to CONNECT."""

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})\b")


def proxy_address(url: str) -> tuple[str, int]:
    """Return host and port of a proxy's URL, `http://host:port`.

    Raises:
        ValueError: it is none.
    """
    parsed = can_ada.parse(url)
    if parsed.protocol != "http:" or parsed.pathname not in ("", "/") or parsed.username:
        raise ValueError("must be http://host:port, without a name or password")
    return parsed.hostname.strip("[]"), int(parsed.port or 80)


async def check_target(host: str, port: int, *, allow_private: bool, resolver: Resolver) -> None:
    """Refuse a target that must not be asked for, as far as that can be known here.

    Args:
        host: without brackets.
        port: of the target.
        allow_private: whether private addresses may be asked for.
        resolver: names to addresses.

    Raises:
        Fault: `ADDRESS_REFUSED`.
    """
    if port in BLOCKED_PORTS:
        raise FetchError(Failure.ADDRESS_REFUSED, f"port {port} belongs to another service")
    try:
        addresses = await resolver.resolve(host)
    except ResolutionError:
        return
    for address in addresses:
        # Which of them the proxy dials is its choice.
        if reason := refusal(address, allow_private=allow_private):
            raise FetchError(Failure.ADDRESS_REFUSED, reason)


async def open_tunnel(stream: trio.abc.Stream, host: str, port: int) -> None:
    """Ask a proxy for a tunnel to a target.

    Raises:
        Fault: `CONNECT`: it refuses, or says nothing that could be understood.
    """
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n"
    answer = b""
    try:
        await stream.send_all(request.encode("ascii"))
        while b"\r\n\r\n" not in answer and len(answer) < MAX_ANSWER_BYTES:
            # One byte at a time at the end: what follows the header belongs to TLS.
            piece = await stream.receive_some(1)
            if not piece:
                break
            answer += bytes(piece)
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise FetchError(Failure.CONNECT, "the proxy hung up", local=True) from error
    status = _STATUS.match(answer)
    if status is None or b"\r\n\r\n" not in answer:
        raise FetchError(Failure.CONNECT, "the proxy does not speak HTTP", local=True)
    code = int(status[1])
    if 200 <= code < 300:
        return
    # 502 to 504 speak of the target; the rest of the proxy itself.
    text = f"the proxy says {code}"
    raise FetchError(Failure.CONNECT, text, local=code not in (502, 503, 504))
