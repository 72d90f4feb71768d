"""Patterns of URLs that are counted, and the text by which new content is recognised."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.url_growth import KnownText, UrlPattern

_FIELDS: Final = "host, pattern, pages, fresh, budget, refused, probed_at"


class PatternChange(NamedTuple):
    """What is stored of a pattern; `counted` None: it was dropped.

    Attributes:
        known: its text, compressed.
    """

    host: str
    pattern: str
    counted: tuple[int, int, int, int, float] | None
    known: bytes = b""


def change_of(host: str, pattern: str, counted: UrlPattern | None) -> PatternChange:
    """Return a pattern as it is now, to be stored later."""
    if counted is None or counted.known is None:
        return PatternChange(host, pattern, None)
    numbers = counted.pages, counted.fresh, counted.budget, counted.refused, counted.probed_at
    return PatternChange(host, pattern, numbers, zlib.compress(counted.known.stored(), 1))


def put(connection: apsw.Connection, changes: Sequence[PatternChange]) -> None:
    """Store patterns, or delete those that were dropped."""
    for host, pattern, counted, known in changes:
        if counted is None:
            connection.execute(
                "DELETE FROM url_pattern WHERE host = ? AND pattern = ?", (host, pattern)
            )
            continue
        connection.execute(
            "INSERT OR REPLACE INTO url_pattern VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (host, pattern, *counted, known),
        )


def load(connection: apsw.Connection) -> list[UrlPattern]:
    """Return all patterns."""
    rows: list[Any] = connection.execute(f"SELECT {_FIELDS}, known FROM url_pattern").fetchall()
    found = [UrlPattern(*row[:-1]) for row in rows]
    for each, row in zip(found, rows, strict=True):
        each.known = KnownText(zlib.decompress(row[-1]))
    return found


def of_hosts(connection: apsw.Connection, hosts: Sequence[str]) -> Iterator[UrlPattern]:
    """Yield the patterns of some hosts, without their text."""
    for host in hosts:
        rows: list[Any] = connection.execute(
            f"SELECT {_FIELDS} FROM url_pattern WHERE host = ?", (host,)
        ).fetchall()
        for row in rows:
            yield UrlPattern(*row)
