"""The Host headers that the web listener accepts: a defense against DNS rebinding.

The owner of a domain can resolve it to this machine. A browser then treats the mirror as part of
that site and lets its pages read the whole mirror. The Host header of such a request is not a
configured one.

Always allowed are literal IP addresses (no DNS is involved), `localhost` and its subdomains (RFC
6761 section 6.3), and the name of this machine: in full, up to the first dot, or that part with
`.local` (RFC 6762).
"""

from __future__ import annotations

import ipaddress
import platform
import re
from collections.abc import Iterable
from typing import Final

from crawld.core.hosts import host_patterns

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,255}))(?::[0-9]{0,5})?")

_LOCALHOST: Final = ("localhost", "*.localhost")


class AllowedHosts:
    """The hosts that one listener accepts.

    Args:
        hosts: patterns as in `core/hosts`: `mirror.example.org`, `*.example.org`, `*`.
        machine: the host name of this machine; empty: none.
    """

    def __init__(self, hosts: Iterable[str] = (), *, machine: str = "") -> None:
        own = machine.lower().rstrip(".")
        first = own.partition(".")[0]
        ours = (own, first, f"{first}.local") if own else ()
        self._patterns = host_patterns((*hosts, *_LOCALHOST, *ours))

    def allows(self, host: str | None) -> bool:
        """Return whether to accept a request with this Host header."""
        if host is None:  # HTTP/1.0, which no browser sends
            return True
        name = host_name(host)
        return name is not None and (_is_address(name) or name in self._patterns)


def host_name(host: str) -> str | None:
    """Return the name or IP address in a Host header; None if it is invalid.

    >>> host_name("Mirror.Example.org.:8080"), host_name("[::1]"), host_name("a/b")
    ('mirror.example.org', '::1', None)
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return None
    return match[1] or match[2].lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def listener_hosts(hosts: Iterable[str]) -> AllowedHosts:
    """Return the allowed hosts of a listener on this machine."""
    return AllowedHosts(hosts, machine=platform.node())
