"""Reads from a MediaWiki's page how long the wiki had worked on the request when the page ended.

Each page that a wiki makes ends with a script that names the milliseconds since the wiki's PHP got
the request. They prove an arrival that the network alone tells later: a wiki needs about .1 s for a
page. The proof holds for a page made for this request only, so a page that any cache may have kept
tells nothing: one with an age, one that caches may share, one that MediaWiki took from its files.

Source: MediaWiki, `wfReportTime`, `HTMLFileCache`; RFC 9111 (Age, private, no-store).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

TAIL_BYTES: Final = 32_768
"""The end of a page that is searched; wikis append a report of their parser of some kilobytes."""

_WORKED_MS = re.compile(rb'mw\.config\.set\(\{"wgBackendResponseTime":\s*(\d{1,6})\b')
_FROM_FILES = re.compile(rb"<!-- Cached[ /]")
_ROUNDING_S = 0.0005


def latest_arrival(
    body: bytes, header: Callable[[str], str | None], sent_at: float, ended_at: float
) -> float | None:
    """Return a time before which a wiki had the request for a page; None: the page tells none.

    Args:
        header: returns the value of a header of the response.
        sent_at: when the request was sent, by any clock.
        ended_at: when the last byte of the response came, by this clock.
    """
    if header("age") not in (None, "0") or not _is_of_one_request(header("cache-control") or ""):
        return None
    tail = body[-TAIL_BYTES:]
    told = _WORKED_MS.findall(tail)
    if not told or _FROM_FILES.search(tail):
        return None
    arrived_at = ended_at - int(told[-1]) / 1000 + _ROUNDING_S
    # Longer work than the response took was done for another request.
    return arrived_at if sent_at <= arrived_at else None


@lru_cache(maxsize=64)
def _is_of_one_request(cache_control: str) -> bool:
    """Whether a response forbids caches to answer others with it."""
    directives = {each.strip().lower() for each in cache_control.split(",")}
    return not directives.isdisjoint({"private", "no-store"})
