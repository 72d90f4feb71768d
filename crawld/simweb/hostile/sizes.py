"""Large answers on many hosts at once."""

from __future__ import annotations

import functools
import itertools
import random
import zlib
from collections.abc import Iterator

from crawld.simweb.hostile.case import (
    STORED,
    TIMEOUT,
    TOO_LARGE,
    TRUNCATED,
    HostileCase,
    failed,
    html,
    page,
    stream,
)
from crawld.simweb.message import Step

_HOSTS = 24
_MB = 1_000_000
_LIMIT = 64 * 2**20
_GZIP = "Content-Encoding: gzip\r\n"
_MEMORY = failed("memory")
"""The budget of the process was taken by others for the whole time of the request."""


@functools.cache
def _packed(size_bytes: int) -> bytes:
    """Return a page of text of some size, packed; the hosts of one size send the same bytes."""
    draw = random.Random(1)
    sentences = [
        b"<p>%s</p>\n" % b" ".join(b"word%d" % draw.randrange(5_000) for _ in range(12))
        for _ in range(100)
    ]
    block = b"".join(sentences) * 40
    packing = zlib.compressobj(1, zlib.DEFLATED, 31)
    first = html("")
    out = [packing.compress(first)]
    left = size_bytes - len(first)
    while left > 0:
        out.append(packing.compress(block[:left]))
        left -= len(block)
    return b"".join((*out, packing.flush()))


def _large(name: str, size_bytes: int, outcomes: frozenset[str] = STORED | _MEMORY) -> HostileCase:
    # The whole process has one budget of memory: these pages wait for each other.
    body = functools.partial(_packed, size_bytes)
    return page(name, body, extra=_GZIP, outcomes=outcomes, wait=10.0)


def _noise(name: str, size_bytes: int, outcomes: frozenset[str]) -> HostileCase:
    made = lambda: html(random.Random(2).randbytes(size_bytes - 400).hex()[: size_bytes - 400])  # noqa: E731
    return page(name, made, outcomes=outcomes, wait=10.0)


def _held_open(first_bytes: int) -> Iterator[Step]:
    """Send much, then hold what was received in memory for as long as the client waits."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 16000000\r\n\r\n"
    yield b"x" * first_bytes
    for _ in itertools.count():
        yield b"x"
        yield 0.9


CASES: tuple[HostileCase, ...] = (
    *(_large(f"gzip-66mb-{k:02}", 66 * _MB) for k in range(_HOSTS)),
    *(_large(f"gzip-20mb-{k:02}", 20 * _MB) for k in range(12)),
    _large("gzip-limit", _LIMIT),
    _large("gzip-above-limit", _LIMIT + 1, TOO_LARGE),
    _large("gzip-130mb", 130 * _MB, TOO_LARGE),
    *(_noise(f"plain-15mb-{k:02}", 15 * _MB, STORED | _MEMORY) for k in range(6)),
    _noise("plain-17mb", 17 * _MB, TOO_LARGE),
    *(
        stream(
            f"held-open-{k:02}",
            lambda: _held_open(14 * _MB),
            outcomes=TIMEOUT | TOO_LARGE | TRUNCATED | failed("protocol", "memory"),
            wait=4.0,
        )
        for k in range(24)
    ),
)
