"""Who may see the dashboard: it names every site, host and URL, also those no reader is shown.

The mirror beside it may be public through a reverse proxy on this machine, whose connections come
from loopback too. So a request must come from loopback, ask for a name of loopback, and carry no
header of a proxy.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Final, Literal

Access = Literal["loopback", "all", "off"]
"""Values of `[web] dashboard`."""

PROXY_HEADERS: Final = frozenset(
    {
        *("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"),
        *("x-forwarded-server", "x-real-ip", "cf-connecting-ip", "true-client-ip"),
    }
)
"""Headers that proxies add, in lower case."""


def is_from_here(address: str | None, host: str | None, names: Collection[str]) -> bool:
    """Return whether a request was made on this machine, and not through a proxy.

    Args:
        address: IP address of the client; None: a Unix socket.
        host: name or IP address of the Host header, in lower case; None: there is none.
        names: names of its headers, in lower case.

    >>> is_from_here("127.0.0.1", "localhost", ("host",))
    True
    >>> is_from_here("127.0.0.1", "mirror.example.org", ("host",))
    False
    """
    if address is None or not _is_loopback(address) or host is None:
        return False
    named = host == "localhost" or host.endswith(".localhost") or _is_loopback(host)
    return named and PROXY_HEADERS.isdisjoint(names)


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback
