"""URLs that were found and not admitted: a count per host and reason, and the last example.

URLs are counted, not listed: a trap produces endless URLs, which must not take more than one row
per host and reason. Nor must endless names of hosts take a row each: of one page the most frequent
have rows, and of all rows the latest are kept. The others are counted by reason alone, in rows with
an empty host, so the totals are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from typing import Any, Final, NamedTuple

import apsw

from crawld.store.engine.in_parts import PART_ROWS, InParts, finish

ANY_HOST: Final = ""
"""Host of the rows that count the URLs of hosts without a row."""

ROWS_PER_CALL: Final = 96
"""Rows of hosts that one page may add or change; the links of few pages name more hosts."""

MAX_ROWS: Final = 5_000
"""Rows of hosts in all, half a megabyte; `status` adds them up in a millisecond."""

_KEPT_ROWS: Final = 4_500
"""Rows left when there are too many, so that few calls remove any."""

_Key = tuple[str, str]
_Sum = tuple[int, str, float]


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
    is_new = False
    for done, ((host, reason), (count, example, at)) in enumerate(_sums(refusals).items(), 1):
        refused = connection.execute(
            "INSERT INTO refusal (host, reason, refused, example, last_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET refused = refused + excluded.refused,"
            " example = excluded.example, last_at = max(last_at, excluded.last_at)"
            " RETURNING refused",
            (host, reason, count, example, at),
        ).get
        is_new |= refused == count
        if done % PART_ROWS == 0:
            yield None
    if is_new:
        _remove_oldest(connection)


def _sums(refusals: Iterable[Refusal]) -> dict[_Key, _Sum]:
    """Return count, last example and time by host and reason, for at most `ROWS_PER_CALL` hosts."""
    sums: dict[_Key, _Sum] = {}
    for one in refusals:
        before = sums.get((one.host, one.reason), (0, "", 0.0))[0]
        sums[one.host, one.reason] = (before + one.count, one.example, one.at)
    if len(sums) <= ROWS_PER_CALL:
        return sums
    kept = {key: sums.pop(key) for key in nlargest(ROWS_PER_CALL, sums, lambda key: sums[key][0])}
    for (_, reason), (count, example, at) in sums.items():
        before = kept.get((ANY_HOST, reason), (0, "", 0.0))[0]
        kept[ANY_HOST, reason] = (before + count, example, at)
    return kept


def _remove_oldest(connection: apsw.Connection) -> None:
    """Count the oldest rows by reason alone if there are too many."""
    rows = connection.execute("SELECT count(*) FROM refusal").get
    if rows <= MAX_ROWS:
        return
    oldest: list[tuple[Any, ...]] = connection.execute(
        "DELETE FROM refusal WHERE (host, reason) IN (SELECT host, reason FROM refusal"
        " WHERE host != ? ORDER BY last_at, host LIMIT ?) RETURNING reason, refused, last_at",
        (ANY_HOST, rows - _KEPT_ROWS),
    ).fetchall()
    sums: dict[str, _Sum] = {}
    for reason, refused, at in oldest:
        before, _, last_at = sums.get(str(reason), (0, "", 0.0))
        sums[str(reason)] = (before + int(refused), "", max(last_at, float(at)))
    connection.executemany(
        "INSERT INTO refusal (host, reason, refused, example, last_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET refused = refused + excluded.refused,"
        " last_at = max(last_at, excluded.last_at)",
        [(ANY_HOST, reason, *each) for reason, each in sums.items()],
    )


def totals(connection: apsw.Connection) -> dict[str, int]:
    """Return how many URLs were refused for each reason."""
    rows = connection.execute("SELECT reason, sum(refused) FROM refusal GROUP BY reason")
    return {str(reason): int(refused) for reason, refused in rows}


def reasons_since(connection: apsw.Connection, at: float) -> set[str]:
    """Return why URLs were refused since a time, Unix seconds."""
    rows = connection.execute("SELECT DISTINCT reason FROM refusal WHERE last_at >= ?", (at,))
    return {reason for (reason,) in rows}


def of_host(connection: apsw.Connection, host: str) -> list[RefusalRow]:
    """Return the counts of one host, the most frequent reason first."""
    rows = connection.execute(
        "SELECT host, reason, refused, example, last_at FROM refusal WHERE host = ?"
        " ORDER BY refused DESC",
        (host,),
    )
    return [RefusalRow(*row) for row in rows]
