"""URLs that were found and not admitted: a count per host and reason, and the last example.

URLs are counted, not listed: a trap produces endless URLs, which must not take more than one row
per host and reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from crawld.store.engine.in_parts import PART_ROWS, InParts, finish


@dataclass(frozen=True, slots=True)
class Refusal:
    """URLs of a host refused for one reason.

    Attributes:
        reason: a word of scope, traps, caps or `collision`.
        example: one of the URLs.
        count: how many.
    """

    host: str
    reason: str
    example: str
    at: float
    count: int = 1


class RefusalRow(NamedTuple):
    """A stored count."""

    host: str
    reason: str
    refused: int
    example: str
    last_at: float


def record(connection: apsw.Connection, refusals: Iterable[Refusal]) -> None:
    """Add to the counts, with one statement per (host, reason)."""
    finish(record_in_parts(connection, refusals))


def record_in_parts(connection: apsw.Connection, refusals: Iterable[Refusal]) -> InParts[None]:
    """Do the same as `record`, in parts."""
    merged: dict[tuple[str, str], tuple[int, str, float]] = {}
    for one in refusals:
        before = merged.get((one.host, one.reason), (0, "", 0.0))[0]
        merged[one.host, one.reason] = (before + one.count, one.example, one.at)
    for done, ((host, reason), (count, example, at)) in enumerate(merged.items(), 1):
        connection.execute(
            "INSERT INTO refusal (host, reason, refused, example, last_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET refused = refused + excluded.refused,"
            " example = excluded.example, last_at = max(last_at, excluded.last_at)",
            (host, reason, count, example, at),
        )
        if done % PART_ROWS == 0:
            yield


def totals(connection: apsw.Connection) -> dict[str, int]:
    """Return how many URLs were refused for each reason."""
    rows = connection.execute("SELECT reason, sum(refused) FROM refusal GROUP BY reason")
    return {str(reason): int(refused) for reason, refused in rows}


def of_host(connection: apsw.Connection, host: str) -> list[RefusalRow]:
    """Return the counts of one host, the most frequent reason first."""
    rows = connection.execute(
        "SELECT host, reason, refused, example, last_at FROM refusal WHERE host = ?"
        " ORDER BY refused DESC",
        (host,),
    )
    return [RefusalRow(*row) for row in rows]
