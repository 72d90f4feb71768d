"""Re-fetched pages that check whether a replica still matches."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import apsw

from crawld.core.url import target_of
from crawld.store.replica.pages import Counterpart, counterpart

STAND_IN_PREFIX: Final = "replica "
"""Prefix of the detail of a visit that a replica answered; its name follows."""


class ReplicaSample(NamedTuple):
    """A page of a replica that was fetched again, compared with its canonical page.

    Attributes:
        agrees: whether the canonical page has or had the same content; None: not known yet.
        lag_s: how long ago the canonical page lost that content; 0: it still has it.
    """

    agrees: bool | None
    lag_s: float | None


_SAMPLED: Final = """
SELECT url, cleaned_digest, last_visit_at, last_outcome, redirect_url FROM page
WHERE host_id = ? AND state IN ('visited', 'suspended') AND requisite = 0 AND last_visit_at >= ?
"""


def compare_samples(
    connection: apsw.Connection, host_id: int, canonical_id: int, since: float
) -> list[ReplicaSample]:
    """Return the comparisons of a replica's pages that were fetched since a time.

    Pages that are suspended again count; pages that only the replica has do not.
    """
    found = []
    rows: list[Any] = connection.execute(_SAMPLED, (host_id, since)).fetchall()
    for url, digest, visited_at, outcome, redirect_url in rows:
        there = counterpart(connection, canonical_id, url)
        if there is None:
            continue
        if outcome == "moved":
            same = redirect_url is not None and target_of(redirect_url) == target_of(url)
            found.append(ReplicaSample(same, 0.0 if same else None))
        elif digest is not None:
            found.append(_compared(connection, there[1], digest, visited_at))
    return found


def _compared(
    connection: apsw.Connection,
    there: Counterpart,
    digest: bytes,
    visited_at: float,
) -> ReplicaSample:
    page_id, now_shown, seen_at = there
    last: str | None = connection.execute(
        "SELECT detail FROM visit WHERE page_id = ?"
        " ORDER BY visited_at DESC, visit_id DESC LIMIT 1",
        (page_id,),
    ).get
    if last is not None and last.startswith(STAND_IN_PREFIX):
        return ReplicaSample(None, None)  # a replica answered, which proves nothing about replicas
    if now_shown == digest:
        return ReplicaSample(True, 0.0)
    shown_until = connection.execute(
        "SELECT min(later.visited_at) FROM visit JOIN visit AS later USING (page_id)"
        " WHERE visit.page_id = ? AND visit.cleaned_digest = ?2"
        " AND later.visited_at > visit.visited_at AND later.cleaned_digest IS NOT NULL"
        " AND later.cleaned_digest <> ?2 AND ifnull(visit.detail, '') NOT LIKE ?3",
        (page_id, digest, f"{STAND_IN_PREFIX}%"),
    ).get
    if shown_until is not None:
        return ReplicaSample(True, max(0.0, visited_at - shown_until))
    # The canonical page may have changed to the same content since its last visit.
    return ReplicaSample(False, None) if seen_at >= visited_at else ReplicaSample(None, None)


def has_shown(connection: apsw.Connection, page_id: int, digest: bytes) -> bool:
    """Return whether some visit of a page found this cleaned text."""
    sql = "SELECT 1 FROM visit WHERE page_id = ? AND cleaned_digest = ? LIMIT 1"
    return connection.execute(sql, (page_id, digest)).get is not None
