"""Replicas in the file: pairs with their evidence, which host is a copy of which, whose pages rest.

A page of a replica is suspended if the canonical host has a good copy under the same path, and is
shown by that; a page that only the replica has stays as it is. Nothing is deleted: a verdict
withdrawn is pages set back to what they were.

Rule: `replica.canonical_id` never is a replica itself (`put_replicas` sees whole groups), so a name
leads to its page in one step.
"""

from __future__ import annotations

import array
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.replica.verdict import Evidence, Level
from crawld.core.url import parse, target_of, url_hash
from crawld.store import tally

Status = Literal["pruned", "held", "withdrawn"]
Word = Literal["confirmed", "rejected"]

SLICE: Final = 500
"""Pages suspended or brought back in one transaction."""

STOOD_IN: Final = "replica "
"""Begins the detail of a visit that a replica answered; its name follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """Two hosts that may be one.

    Attributes:
        one_id: the host with the smaller number.
        other_id: the other.
        judged_at: when the evidence was weighed, Unix seconds.
        level: how sure the verdict is.
        evidence: what it stands on; its first host is `one_id`.
        features: what was measured, by name.
        word: the operator's, None where there is none.
    """

    one_id: int
    other_id: int
    judged_at: float
    level: Level
    evidence: Evidence
    features: dict[str, float]
    word: Word | None = None


class ReplicaRow(NamedTuple):
    """A host that is a copy of another.

    Attributes:
        host_id: the copy.
        host: its name.
        canonical_id: the host that is kept.
        canonical_host: its name.
        status: `pruned`, `held` for the operator, or `withdrawn`.
        reason: why this host is kept, why it is held, or why it was withdrawn.
        since: Unix seconds.
        sampled_at: when a sample of its pages was last let go.
        look_at: when the next is due.
        sampled: samples compared so far.
        agreed: those that showed what the canonical host shows.
        lag_s: how far behind the canonical host they were at most; None: not measured.
        suspended: pages that rest.
    """

    host_id: int
    host: str
    canonical_id: int
    canonical_host: str
    status: Status
    reason: str
    since: float
    sampled_at: float
    look_at: float
    sampled: int
    agreed: int
    lag_s: float | None
    suspended: int


class Returned(NamedTuple):
    """A page that may be visited again."""

    page_id: int
    site_id: int
    visited: bool


# --- pairs -----------------------------------------------------------------------------------

_PUT_PAIR: Final = """
INSERT INTO replica_pair (one_id, other_id, judged_at, level, probability, evidence, features)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET judged_at = excluded.judged_at, level = excluded.level,
    probability = excluded.probability, evidence = excluded.evidence, features = excluded.features
"""


def put_pairs(connection: apsw.Connection, pairs: Iterable[PairRow]) -> None:
    """Store judgements; the operator's words stay."""
    connection.executemany(
        _PUT_PAIR,
        [
            (
                pair.one_id,
                pair.other_id,
                pair.judged_at,
                pair.level,
                pair.evidence.probability,
                json.dumps(asdict(pair.evidence)),
                json.dumps(pair.features),
            )
            for pair in pairs
        ],
    )


def forget_pairs(connection: apsw.Connection, before: float) -> None:
    """Drop pairs not judged since an instant, of which the operator said nothing.

    Those of pruned hosts are not judged: they keep the evidence on which they were pruned.
    """
    connection.execute(
        "DELETE FROM replica_pair WHERE judged_at < ? AND word IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM replica WHERE status = 'pruned' AND host_id IN (one_id, other_id))",
        (before,),
    )


def list_pairs(connection: apsw.Connection, host_id: int | None = None) -> list[PairRow]:
    """Return the pairs of a host or all, the surest first."""
    where, bindings = ("WHERE ?1 IN (one_id, other_id)", (host_id,)) if host_id else ("", ())
    rows = connection.execute(
        "SELECT one_id, other_id, judged_at, level, evidence, features, word FROM replica_pair"
        f" {where} ORDER BY level, probability DESC, one_id, other_id",
        bindings,
    )
    return [
        PairRow(
            one_id=row[0],
            other_id=row[1],
            judged_at=row[2],
            level=Level(row[3]),
            evidence=_evidence(row[4]),
            features=json.loads(row[5]),
            word=row[6],
        )
        for row in rows
    ]


def put_word(connection: apsw.Connection, one_id: int, other_id: int, word: Word) -> bool:
    """Store the operator's word on a pair; return whether the pair is known."""
    low, high = sorted((one_id, other_id))
    connection.execute(
        "UPDATE replica_pair SET word = ? WHERE one_id = ? AND other_id = ?", (word, low, high)
    )
    return connection.changes() > 0


def prefer(connection: apsw.Connection, host_id: int) -> None:
    """Prefer a host among its replicas, and no other of its group any more."""
    connection.execute(
        "UPDATE host SET preferred = 0 WHERE host_id IN (SELECT host_id FROM replica"
        " WHERE canonical_id = ?1 UNION SELECT canonical_id FROM replica WHERE host_id = ?1"
        " UNION SELECT other.host_id FROM replica JOIN replica AS other USING (canonical_id)"
        " WHERE replica.host_id = ?1)",
        (host_id,),
    )
    connection.execute("UPDATE host SET preferred = 1 WHERE host_id = ?", (host_id,))


def _evidence(text: str) -> Evidence:
    value = json.loads(text)
    for name in ("names", "pages", "redirects", "canonicals"):
        value[name] = tuple(value[name])
    return Evidence(**value)


# --- replicas --------------------------------------------------------------------------------

_LIST: Final = """
SELECT replica.host_id, host.host, canonical_id, canonical.host, status, reason, since, sampled_at,
       look_at, sampled, agreed, lag_s, host.pages_suspended
FROM replica JOIN host USING (host_id) JOIN host AS canonical ON canonical.host_id = canonical_id
ORDER BY canonical.host, host.host
"""


def list_replicas(connection: apsw.Connection) -> list[ReplicaRow]:
    """Return every replica, those of one host together."""
    return [ReplicaRow(*row) for row in connection.execute(_LIST)]


def put_replica(
    connection: apsw.Connection,
    host_id: int,
    canonical_id: int,
    status: Status,
    reason: str,
    *,
    now: float,
    look_at: float,
) -> None:
    """Store what a host is; a status or a canonical host that is another begins now."""
    connection.execute(
        "INSERT INTO replica (host_id, canonical_id, status, reason, since, look_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET"
        " since = iif(status = ?3 AND canonical_id = ?2, since, ?5),"
        " sampled = iif(status = ?3 AND canonical_id = ?2, sampled, 0),"
        " agreed = iif(status = ?3 AND canonical_id = ?2, agreed, 0),"
        " look_at = iif(status = ?3 AND canonical_id = ?2, look_at, ?6),"
        " canonical_id = ?2, status = ?3, reason = ?4",
        (host_id, canonical_id, status, reason, now, look_at),
    )


def drop_replica(connection: apsw.Connection, host_id: int) -> None:
    """Forget that a host was held for a copy; its pages must have been brought back."""
    connection.execute("DELETE FROM replica WHERE host_id = ?", (host_id,))


def put_sample(
    connection: apsw.Connection, host_id: int, *, sampled: int, agreed: int, lag_s: float | None
) -> None:
    """Add what samples of a replica showed."""
    connection.execute(
        "UPDATE replica SET sampled = sampled + ?, agreed = agreed + ?,"
        " lag_s = coalesce(max(lag_s, ?3), lag_s, ?3) WHERE host_id = ?",
        (sampled, agreed, lag_s, host_id),
    )


def doubt(connection: apsw.Connection, host_id: int) -> None:
    """Forget what samples of a pruned replica showed, and let the next be taken at once."""
    connection.execute(
        "UPDATE replica SET sampled = 0, agreed = 0, lag_s = NULL, sampled_at = 0, look_at = 0"
        " WHERE host_id = ? AND status = 'pruned'",
        (host_id,),
    )


# --- pages -----------------------------------------------------------------------------------

_OPEN: Final = """
SELECT page_id, page.site_id, url, state, seed FROM page
WHERE page.host_id = ? AND page_id > ? AND state IN ('discovered', 'visited') AND requisite = 0
  AND (last_visit_at IS NULL OR last_visit_at >= ?)
ORDER BY page_id LIMIT ?
"""
_ORIGINS: Final = "SELECT origin FROM origin WHERE host_id = ? ORDER BY origin DESC"
"""https before http; a host has one or two."""

_HELD_THERE: Final = """
SELECT url FROM carray(?) AS wanted CROSS JOIN page
  ON page.host_id = ? AND page.url_hash = wanted.value
WHERE version_id IS NOT NULL AND state = 'visited'
"""


def suspend(
    connection: apsw.Connection,
    host_id: int,
    canonical_id: int,
    after: int,
    *,
    visited_since: float,
) -> int | None:
    """Suspend the next pages of a replica that the canonical host holds too.

    Args:
        connection: the writer.
        host_id: the replica.
        canonical_id: the host that is kept.
        after: the last page looked at.
        visited_since: pages last visited before this are a sample that is still awaited.

    Returns:
        The last page looked at; None: there are no more.
    """
    rows: list[Any] = connection.execute(_OPEN, (host_id, after, visited_since, SLICE)).fetchall()
    if not rows:
        return None
    there = {row[0]: _addresses(connection, canonical_id, row[2]) for row in rows}
    hashes = array.array("q", [url_hash(url) for urls in there.values() for url in urls])
    held = set()
    if hashes:
        found = connection.execute(_HELD_THERE, (apsw.carray(hashes), canonical_id))
        held = {url for (url,) in found}
    moves = []
    for page_id, site_id, _, state, _ in rows:
        if held.intersection(there[page_id]):
            connection.execute("UPDATE page SET state = 'suspended' WHERE page_id = ?", (page_id,))
            moves.append((site_id, host_id, PageState(state), PageState.SUSPENDED))
    tally.moved(connection, moves)
    last: int = rows[-1][0]
    return last


def bring_back(
    connection: apsw.Connection, host_id: int, page_ids: Sequence[int] | None = None
) -> list[Returned]:
    """Set suspended pages of a host back to what they were; a slice of them, or those named."""
    named = "" if page_ids is None else f" AND page_id IN ({','.join('?' * len(page_ids))})"
    rows: list[Any] = connection.execute(
        "UPDATE page SET state = iif(last_visit_at IS NULL, 'discovered', 'visited')"
        " WHERE page_id IN (SELECT page_id FROM page WHERE host_id = ? AND state = 'suspended'"
        f"{named} LIMIT ?) RETURNING page_id, site_id, last_visit_at IS NOT NULL",
        (host_id, *(page_ids or ()), SLICE),
    ).fetchall()
    back = [Returned(page_id, site_id, bool(visited)) for page_id, site_id, visited in rows]
    tally.moved(
        connection,
        [
            (
                page.site_id,
                host_id,
                PageState.SUSPENDED,
                PageState.VISITED if page.visited else PageState.DISCOVERED,
            )
            for page in back
        ],
    )
    return back


def let_go(
    connection: apsw.Connection, host_id: int, count: int, *, now: float, look_at: float
) -> list[Returned]:
    """Let a random few suspended pages of a replica be visited, to see whether it still is one."""
    chosen: list[Any] = connection.execute(
        "SELECT page_id FROM page WHERE host_id = ? AND state = 'suspended'"
        " AND last_visit_at IS NOT NULL ORDER BY random() LIMIT ?",
        (host_id, count),
    ).fetchall()
    connection.execute(
        "UPDATE replica SET sampled_at = ?, look_at = ? WHERE host_id = ?", (now, look_at, host_id)
    )
    return bring_back(connection, host_id, [page_id for (page_id,) in chosen])


class Sample(NamedTuple):
    """A page of a replica, visited since it was let go, beside the page it stands for.

    Attributes:
        agrees: whether it showed what the canonical page shows or showed; None: cannot be told yet.
        lag_s: how long ago the canonical page had stopped showing it; 0: it shows it now.
    """

    agrees: bool | None
    lag_s: float | None


_SAMPLED: Final = """
SELECT url, cleaned_digest, last_visit_at, last_outcome, redirect_url FROM page
WHERE host_id = ? AND state = 'visited' AND requisite = 0 AND last_visit_at >= ?
"""
_COUNTERPART: Final = """
SELECT page_id, cleaned_digest, last_visit_at FROM page
WHERE host_id = ? AND url_hash = ? AND url = ? AND version_id IS NOT NULL
"""


def samples(
    connection: apsw.Connection, host_id: int, canonical_id: int, since: float
) -> list[Sample]:
    """Return what the pages show that were let go at an instant and visited since."""
    found = []
    rows: list[Any] = connection.execute(_SAMPLED, (host_id, since)).fetchall()
    for url, digest, visited_at, outcome, redirect_url in rows:
        pages: list[Any] = [
            connection.execute(_COUNTERPART, (canonical_id, url_hash(there), there)).fetchone()
            for there in _addresses(connection, canonical_id, url)
        ]
        counterpart = next((page for page in pages if page), None)
        if counterpart is None:
            continue
        if outcome == "moved":
            same = redirect_url is not None and target_of(redirect_url) == target_of(url)
            found.append(Sample(same, 0.0 if same else None))
        elif digest is not None:
            found.append(_compared(connection, counterpart, digest, visited_at))
    return found


def _compared(
    connection: apsw.Connection,
    counterpart: tuple[int, bytes | None, float],
    digest: bytes,
    visited_at: float,
) -> Sample:
    page_id, now_shown, seen_at = counterpart
    last: str | None = connection.execute(
        "SELECT detail FROM visit WHERE page_id = ?"
        " ORDER BY visited_at DESC, visit_id DESC LIMIT 1",
        (page_id,),
    ).get
    if last is not None and last.startswith(STOOD_IN):
        return Sample(None, None)  # a replica showed it: that proves nothing of a replica
    if now_shown == digest:
        return Sample(True, 0.0)
    shown_until = connection.execute(
        "SELECT min(later.visited_at) FROM visit JOIN visit AS later USING (page_id)"
        " WHERE visit.page_id = ? AND visit.cleaned_digest = ?2"
        " AND later.visited_at > visit.visited_at AND later.cleaned_digest IS NOT NULL"
        " AND later.cleaned_digest <> ?2 AND ifnull(visit.detail, '') NOT LIKE ?3",
        (page_id, digest, f"{STOOD_IN}%"),
    ).get
    if shown_until is not None:
        return Sample(True, max(0.0, visited_at - shown_until))
    # What the replica shows now may be what the canonical page has come to show since.
    return Sample(False, None) if seen_at >= visited_at else Sample(None, None)


# --- names -----------------------------------------------------------------------------------


def canonical_url(connection: apsw.Connection, url: str) -> str | None:
    """Return the URL under which the mirror keeps what a URL of a replica names.

    Args:
        connection: any.
        url: canonical URL.

    Returns:
        The URL of the same path on the canonical host, where that host holds a copy of it; None:
        the URL's host is no pruned replica, or only it has the page.
    """
    canonical_id = connection.execute(
        "SELECT canonical_id FROM replica JOIN host USING (host_id)"
        " WHERE host = ? AND status = 'pruned'",
        (parse(url).host,),
    ).get
    if canonical_id is None:
        return None
    for there in _addresses(connection, canonical_id, url):
        if connection.execute(_COUNTERPART, (canonical_id, url_hash(there), there)).fetchone():
            return there
    return None


def resting_url(connection: apsw.Connection, host_id: int, url: str) -> str | None:
    """Return the URL under which a replica has a resting copy of a page, None: it has none."""
    for there in _addresses(connection, host_id, url):
        found = connection.execute(
            "SELECT 1 FROM page WHERE url_hash = ? AND url = ? AND state = 'suspended'",
            (url_hash(there), there),
        ).get
        if found:
            return there
    return None


def has_shown(connection: apsw.Connection, page_id: int, digest: bytes) -> bool:
    """Whether some visit of a page found this cleaned text."""
    sql = "SELECT 1 FROM visit WHERE page_id = ? AND cleaned_digest = ? LIMIT 1"
    return connection.execute(sql, (page_id, digest)).get is not None


def _addresses(connection: apsw.Connection, host_id: int, url: str) -> list[str]:
    """Return the URLs of the same path and query at the origins of a host."""
    target = target_of(url)
    return [f"{origin}{target}" for (origin,) in connection.execute(_ORIGINS, (host_id,))]
