"""All hostile cases, by family."""

from __future__ import annotations

from dataclasses import replace

from crawld.simweb.hostile import (
    amplified,
    charsets,
    compression,
    connections,
    everywhere,
    fence,
    fields,
    framing,
    http2,
    links,
    listings,
    markup,
    messages,
    names,
    pace,
    redirects,
    robots,
    sizes,
    styles,
    volatile,
    wiki_api,
)
from crawld.simweb.hostile.case import HostileCase

_MODULES = {
    "markup": markup,
    "styles": styles,
    "volatile": volatile,
    "robots": robots,
    "compression": compression,
    "messages": messages,
    "redirects": redirects,
    "connections": connections,
    "http2": http2,
    "names": names,
    "sizes": sizes,
    "amplified": amplified,
    "charsets": charsets,
    "listings": listings,
    "wiki_api": wiki_api,
    "fields": fields,
    "links": links,
    "fence": fence,
    "framing": framing,
    "pace": pace,
    "everywhere": everywhere,
}

FAMILIES: dict[str, tuple[HostileCase, ...]] = {
    family: tuple(replace(case, family=family) for case in module.CASES)
    for family, module in _MODULES.items()
}

ABOUT: dict[str, str] = {
    family: " ".join((module.__doc__ or "").partition("\n\n")[0].split())
    for family, module in _MODULES.items()
}
"""What the servers of each family do."""

SOCKET_FAMILIES: dict[str, tuple[HostileCase, ...]] = {
    family: found
    for family, cases in FAMILIES.items()
    if (found := tuple(case for case in cases if not case.needs_simulation))
}
"""The cases that have a place on the real sockets of one machine."""

CASES: dict[str, HostileCase] = {case.name: case for cases in FAMILIES.values() for case in cases}


def address_of(name: str) -> str:
    """Return the loopback address of a case's host."""
    number = list(CASES).index(name)
    return f"127.66.{number // 200}.{number % 200 + 1}"
