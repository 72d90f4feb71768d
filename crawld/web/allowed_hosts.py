"""By which names the listener may be asked.

Whoever owns a name can let it lead to this machine (DNS rebinding). A browser then takes the mirror
for a page of that name's, and lets that page read all of it. What gives such a request away is the
name it asks for: nobody here ever gave it to the listener.

Nobody need say the literal addresses (they are no names, so nothing leads them elsewhere),
`localhost` and all below it (RFC 6761 section 6.3), and the name of this machine: whole, as its own
network knows it (the part before the first dot), or that with `.local` (RFC 6762).
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
    """The names of one listener."""

    def __init__(self, hosts: Iterable[str] = (), *, machine: str = "") -> None:
        """Take what is allowed beside addresses and localhost.

        Args:
            hosts: patterns as in `core/hosts`: `mirror.example.org`, `*.example.org`, `*`.
            machine: the host name of this machine; empty: none.
        """
        own = machine.lower().rstrip(".")
        first = own.partition(".")[0]
        ours = (own, first, f"{first}.local") if own else ()
        self._patterns = host_patterns((*hosts, *_LOCALHOST, *ours))

    def allow(self, host: str | None) -> bool:
        """Return whether a request may be answered.

        Args:
            host: its Host header; None: it has none, as in HTTP/1.0, so that no browser sent it.
        """
        if host is None:
            return True
        name = host_name(host)
        return name is not None and (_is_address(name) or name in self._patterns)


def host_name(host: str) -> str | None:
    """Return the name or address of a Host header, None if it is none.

    >>> name_of("Mirror.Example.org.:8080"), name_of("[::1]"), name_of("a/b")
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
    """Return the names of a listener on this machine."""
    return AllowedHosts(hosts, machine=platform.node())
