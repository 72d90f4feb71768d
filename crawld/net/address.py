"""Checks which IP addresses and ports may be connected to (the address fence).

Only globally reachable unicast addresses are dialed, unless a site allows private ones. The fence
checks the address about to be dialed, never a name, so a name that resolves differently between
check and connection cannot bypass it.

IPv6 is an allow list (global unicast, 2000::/3). An IPv6 address that embeds an IPv4 address
(mapped, 6to4, NAT64) is checked as that IPv4 address.
"""

from __future__ import annotations

import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

IpAddress = IPv4Address | IPv6Address

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
# Global in the IANA registry, but never a web server: protocol assignments and the retired 6to4
# relays.
_UNUSABLE_V4 = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
# Documentation prefix, registered after the release of some supported Python versions.
_UNUSABLE_V6 = (IPv6Network("3fff::/20"),)

_NUMERIC = frozenset("0123456789abcdefxABCDEFX.")

BLOCKED_PORTS = frozenset(
    {
        0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95,
        101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179,
        389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601,
        636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566,
        6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    }
)  # fmt: skip
"""Ports of other services, on which browsers refuse to speak HTTP.

Source: WHATWG Fetch standard, section "Port blocking".
"""


@lru_cache(maxsize=4096)
def literal_address(host: str) -> IpAddress | None:
    """Return the IP address that a URL host is written as; None for a name.

    IPv6 may be in brackets; IPv4 in any form of `inet_aton` (decimal, hexadecimal, octal, fewer
    than four parts).
    """
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        pass
    if not host or not _NUMERIC.issuperset(host):
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


@lru_cache(maxsize=4096)
def refusal(address: str, *, allow_private: bool = False) -> str | None:
    """Return why an IP address must not be dialed, None if it may be; multicast never may."""
    parsed = ip_address(address)
    if parsed.is_multicast or address == "255.255.255.255":
        return f"{address} is not a unicast address"
    if allow_private or _is_public(parsed):
        return None
    return f"{address} is not a public address"


def _is_public(address: IpAddress) -> bool:
    if isinstance(address, IPv4Address):
        return (
            address.is_global
            and not address.is_multicast
            and not any(address in network for network in _UNUSABLE_V4)
        )
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        return _is_public(embedded)
    # Teredo, where anyone can choose both inner addresses, is not global in the registry.
    return (
        address in _GLOBAL_UNICAST
        and address.is_global
        and not any(address in network for network in _UNUSABLE_V6)
    )


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
