"""A name server that is slow, silent or wrong for some names, and pages that link to such names.

The first label below `names.test` says what it does: `fast`, `slow`, `drop`, `absent`, `fail`,
`refuse`, `junk`, `other-id`, `loop`, `many`, `cut`, `vault`. Names before it are free, so that a
page can link to thousands of names that were never looked up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import trio

from crawld.simweb.fault import Fault
from crawld.simweb.hostile.case import STORED, HostileCase, Place, html
from crawld.simweb.message import build_response

ZONE = "names.test"
SLOW_S = 1.5
FAST_ADDRESS = "127.66.250.1"
VAULT_ADDRESS = "127.66.255.1"
_A, _CNAME, _IN = 1, 5, 1
_LINKS = 5_000


_SUCCESS, _CUT = 0x8180, 0x0200
_ERRORS = {"fail": 2, "refuse": 5, "absent": 3}
_ADDRESSES = {
    "fast": (FAST_ADDRESS,),
    "slow": (FAST_ADDRESS,),
    "vault": (VAULT_ADDRESS,),
    "other-id": (VAULT_ADDRESS,),
    "many": tuple(f"127.66.251.{k}" for k in range(1, 25)),
}


def answer(query: bytes) -> tuple[float, bytes | None]:
    """Return after how many seconds to answer a DNS query, and with what; None for no answer."""
    labels, end = _question(query)
    kind = labels[-3] if len(labels) > 2 and ".".join(labels[-2:]) == ZONE else "absent"
    if kind == "drop":
        return 0.0, None
    if kind == "junk":
        return 0.0, query[:2] + b"\xff" * 40
    number = b"\xab\xcd" if kind == "other-id" else query[:2]
    flags = _SUCCESS | _ERRORS.get(kind, 0) | (_CUT if kind == "cut" else 0)
    records = []
    if kind == "loop":
        records.append(_record(_CNAME, b"\xc0\x0c"))
    elif query[end - 4 : end - 2] == _A.to_bytes(2, "big"):
        records = [_record(_A, bytes(map(int, at.split(".")))) for at in _ADDRESSES.get(kind, ())]
    head = number + struct.pack(">HHHHH", flags, 1, len(records), 0, 0)
    return (SLOW_S if kind == "slow" else 0.0), head + query[12:end] + b"".join(records)


def _record(kind: int, data: bytes) -> bytes:
    """Return a record about the name of the question."""
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, _IN, 0, len(data)) + data


def _question(query: bytes) -> tuple[list[str], int]:
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1").lower())
        at += 1 + query[at]
    return labels, at + 5


async def serve_names(*, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
    """Serve names over UDP until cancelled; report the port."""
    udp = trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)
    await udp.bind(("127.0.0.1", 0))
    async with trio.open_nursery() as nursery:

        async def later(delay_s: float, data: bytes, peer: tuple[object, ...]) -> None:
            await trio.sleep(delay_s)
            await udp.sendto(data, peer)

        task_status.started(udp.getsockname()[1])
        while True:
            query, peer = await udp.recvfrom(4096)
            delay_s, data = answer(query)
            if data is None:
                continue
            if delay_s:
                nursery.start_soon(later, delay_s, data, peer)
            else:
                await udp.sendto(data, peer)


def _links(kind: str, count: int) -> Callable[[Place], Fault]:
    """Return a page of links to fresh names of one kind."""

    def respond(place: Place) -> Fault:
        page = html(
            "".join(
                f"<a href='http://n{k}.{kind}.{ZONE}:{place.port}/'>x</a>" for k in range(count)
            )
        )
        return lambda request, _: build_response(request, 200, page)

    return respond


def _linking(name: str, kind: str, count: int = _LINKS, *, quick: bool = False) -> HostileCase:
    site = f"subdomains = true\nhosts = ['{kind}.{ZONE}']\nmax_pages = {count + 10}"
    return HostileCase(
        name=name, family="", respond=_links(kind, count), site=site, quick=quick, outcomes=STORED
    )


def _images(name: str, kind: str) -> HostileCase:
    """Return a case whose page has images on fresh names; they are loaded by default."""

    def respond(place: Place) -> Fault:
        images = (f"<img src='http://i{k}.{kind}.{ZONE}:{place.port}/i.png'>" for k in range(2_000))
        page = html("".join(images))
        return lambda request, _: build_response(request, 200, page)

    site = f"requisite_hosts = ['*.{ZONE}']"
    return HostileCase(name=name, family="", respond=respond, site=site)


CASES: tuple[HostileCase, ...] = (
    _linking("names-fast", "fast"),
    _linking("names-slow", "slow", quick=True),
    _linking("names-dropped", "drop", quick=True),
    _linking("names-absent", "absent"),
    _linking("names-failing", "fail"),
    _linking("names-refused", "refuse", 2_000),
    _linking("names-junk", "junk", 1_000),
    _linking("names-other-id", "other-id", 500),
    _linking("names-loop", "loop", 500),
    _linking("names-many-addresses", "many", 500),
    _linking("names-cut", "cut", 500),
    _linking("names-9000", "fast", 9_000),
    _images("names-of-images", "slow"),
    _images("names-of-images-dropped", "drop"),
)
