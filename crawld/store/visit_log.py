"""Read stored visits, for logs and the pages of operators."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import Outcome


class VisitRow(NamedTuple):
    """A stored attempt, for logs."""

    visit_id: int
    page_id: int
    host: str
    url: str
    visited_at: float
    outcome: Outcome
    failure: str | None
    detail: str | None
    status: int | None
    address: str | None
    duration_s: float | None
    wire_bytes: int
    body_bytes: int
    version_id: int | None
    difference: float | None
    first_copy: bool


_LOG: Final = """
SELECT visit_id, page_id, host, url, visited_at, outcome, failure, detail, status, visit.address,
       duration_s, visit.wire_bytes, body_bytes, visit.version_id, difference,
       outcome = 'changed' AND NOT EXISTS (
           SELECT 1 FROM visit AS before WHERE before.page_id = visit.page_id
           AND before.visited_at < visit.visited_at
           AND before.outcome IN ('changed', 'unchanged', 'not_modified'))
       AND NOT EXISTS (
           SELECT 1 FROM version WHERE version.page_id = visit.page_id
           AND version.visited_at < visit.visited_at)
FROM visit CROSS JOIN page USING (page_id) CROSS JOIN host USING (host_id)
"""


def log(
    connection: apsw.Connection,
    *,
    after: int | None = None,
    limit: int = 100,
    host_id: int | None = None,
    outcome: Outcome | None = None,
) -> list[VisitRow]:
    """Return attempts, of one host or outcome if given, in the order they were stored.

    Args:
        after: visit_id of the last one already read; None: the newest `limit` ones.
    """
    where, bindings = ["visit_id > ?"], [after or 0]
    for column, wanted in (("page.host_id = ?", host_id), ("outcome = ?", outcome)):
        if wanted is not None:
            where.append(column)
            bindings.append(wanted)  # type: ignore[arg-type]
    order = "DESC" if after is None else "ASC"
    sql = f"{_LOG} WHERE {' AND '.join(where)} ORDER BY visit_id {order} LIMIT ?"
    rows = [_row(row) for row in connection.execute(sql, (*bindings, limit))]
    return rows[::-1] if after is None else rows


def of_page(
    connection: apsw.Connection, page_id: int, *, before: float = math.inf, limit: int = 100
) -> list[VisitRow]:
    """Return the attempts at one page before a time, newest first."""
    rows = connection.execute(
        f"{_LOG} WHERE page_id = ? AND visited_at < ? ORDER BY visited_at DESC LIMIT ?",
        (page_id, before, limit),
    )
    return [_row(row) for row in rows]


def _row(row: tuple[Any, ...]) -> VisitRow:
    return VisitRow(*row)._replace(outcome=Outcome(row[5]), first_copy=bool(row[15]))
