"""Versions: stored copies of pages, with time, body, status line and headers.

A version never changes. It refers to its body and holds its own headers, so that its visit may be
deleted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import apsw

from crawld.core.content.media import media_type
from crawld.core.content.quarantine import UNANALYSED
from crawld.errors import CorruptDatabaseError
from crawld.store import changed
from crawld.store.frontier.quarantine import COPY_TYPE
from crawld.store.versions import body, document_text, version_tag
from crawld.store.versions.response import StoredResponse


class VersionRow(NamedTuple):
    """A stored copy without its body."""

    version_id: int
    page_id: int
    visited_at: float
    body_id: int
    digest: bytes
    size_bytes: int
    stored_bytes: int
    response: StoredResponse


class StoredCopy(NamedTuple):
    """A stored body, and the Content-Type that decodes it as when it arrived."""

    body: bytes
    content_type: str | None

    @property
    def readable(self) -> bool:
        """Whether the body may be analysed: its page is not in quarantine."""
        return media_type(self.content_type) != UNANALYSED


_ROW = f"""
SELECT version_id, page_id, visited_at, body_id, digest, size_bytes, length(data),
       status, http_version, headers, reason, {COPY_TYPE}, charset, truncated, profile
FROM version JOIN body USING (body_id)
"""


def insert(
    connection: apsw.Connection,
    page_id: int,
    visited_at: float,
    body_id: int,
    response: StoredResponse,
) -> int:
    """Store a copy and return its version_id."""
    line = (response.status, response.http_version, response.reason)
    content = (response.content_type, response.charset, response.headers, response.truncated)
    connection.execute(
        "INSERT INTO version (page_id, visited_at, body_id, status, http_version, reason,"
        " content_type, charset, headers, truncated, profile)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (page_id, visited_at, body_id, *line, *content, response.profile),
    )
    version_id = connection.last_insert_rowid()
    changed.note(connection, "version")
    if response.tags:
        version_tag.put(connection, version_id, response.tags)
    return version_id


def get(connection: apsw.Connection, version_id: int) -> VersionRow | None:
    """Return a copy, None if the version_id does not exist."""
    row = connection.execute(f"{_ROW} WHERE version_id = ?", (version_id,)).fetchone()
    return _row(row) if row else None


def list_versions(
    connection: apsw.Connection, page_id: int, *, before: float = math.inf, limit: int = 100
) -> list[VersionRow]:
    """Return the copies of a page before a time, newest first."""
    rows = connection.execute(
        f"{_ROW} WHERE page_id = ? AND visited_at < ?"
        " ORDER BY visited_at DESC, version_id DESC LIMIT ?",
        (page_id, before, limit),
    )
    return [_row(row) for row in rows]


def current_at(connection: apsw.Connection, page_id: int, at: float) -> VersionRow | None:
    """Return the copy that was a page's last at a time, None before the first."""
    row = connection.execute(
        f"{_ROW} WHERE page_id = ? AND visited_at <= ?"
        " ORDER BY visited_at DESC, version_id DESC LIMIT 1",
        (page_id, at),
    ).fetchone()
    return _row(row) if row else None


def last_before(connection: apsw.Connection, copy: VersionRow) -> VersionRow | None:
    """Return the copy of the same page before this one, None if it is the first."""
    row = connection.execute(
        f"{_ROW} WHERE page_id = ? AND (visited_at, version_id) < (?, ?)"
        " ORDER BY visited_at DESC, version_id DESC LIMIT 1",
        (copy.page_id, copy.visited_at, copy.version_id),
    ).fetchone()
    return _row(row) if row else None


def next_after(connection: apsw.Connection, copy: VersionRow) -> VersionRow | None:
    """Return the copy of the same page after this one, None if it is the last."""
    row = connection.execute(
        f"{_ROW} WHERE page_id = ? AND (visited_at, version_id) > (?, ?)"
        " ORDER BY visited_at, version_id LIMIT 1",
        (copy.page_id, copy.visited_at, copy.version_id),
    ).fetchone()
    return _row(row) if row else None


def are_equal(connection: apsw.Connection, one_id: int | None, other_id: int | None) -> bool:
    """Return whether two copies have the same body."""
    bodies = connection.execute(
        "SELECT body_id FROM version WHERE version_id IN (?, ?)", (one_id, other_id)
    ).fetchall()
    return len(bodies) == 2 and bodies[0] == bodies[1]


def read_body(connection: apsw.Connection, version_id: int) -> bytes | None:
    """Return the decoded body of a copy, None if the version_id does not exist.

    Raises:
        CorruptDatabaseError: the stored bytes are damaged.
    """
    body_id = connection.execute(
        "SELECT body_id FROM version WHERE version_id = ?", (version_id,)
    ).get
    return None if body_id is None else body.read(connection, body_id)


def read_copy(connection: apsw.Connection, version_id: int) -> StoredCopy | None:
    """Return a stored copy to analyse, None if the version_id does not exist.

    It is the text of the copy where that has another form, such as PDF.

    Raises:
        CorruptDatabaseError: the stored bytes are damaged.
    """
    row = get(connection, version_id)
    if row is None:
        return None
    found = document_text.readable_form(connection, row.body_id, row.response.content_type)
    if found is not None:
        return StoredCopy(*found)
    content = body.read(connection, row.body_id)
    if content is None:
        return None
    content_type, charset = row.response.content_type, row.response.charset
    if content_type and charset:
        content_type = f"{content_type}; charset={charset}"
    return StoredCopy(content, content_type)


def undamaged_copy(connection: apsw.Connection, version_id: int) -> StoredCopy | None:
    """Return a stored copy, None if it is damaged or the version_id does not exist."""
    try:
        return read_copy(connection, version_id)
    except CorruptDatabaseError:
        return None


def readable_copy(connection: apsw.Connection, version_id: int) -> StoredCopy | None:
    """Return a stored copy that may be analysed; None also if its page is in quarantine."""
    copy = undamaged_copy(connection, version_id)
    return copy if copy is not None and copy.readable else None


def with_body(connection: apsw.Connection, page_id: int, digest: bytes | None) -> int | None:
    """Return the version_id of the newest copy of a page with a body; None: there is none."""
    found: int | None = connection.execute(
        "SELECT version_id FROM version JOIN body USING (body_id)"
        " WHERE page_id = ? AND digest = ? ORDER BY version_id DESC LIMIT 1",
        (page_id, digest),
    ).get
    return found


def set_profile(connection: apsw.Connection, page_id: int, profile: str) -> None:
    """Note the request profile that brought the copy held of a page in the wanted form."""
    connection.execute(
        "UPDATE version SET profile = ?1 WHERE profile IS NOT ?1"
        " AND version_id = (SELECT version_id FROM page WHERE page_id = ?2)",
        (profile, page_id),
    )


def profile_of(connection: apsw.Connection, version_id: int) -> str | None:
    """Return the name of the request profile that brought a copy, as in `StoredResponse`."""
    found: str | None = connection.execute(
        "SELECT profile FROM version WHERE version_id = ?", (version_id,)
    ).get
    return found


def body_bytes(connection: apsw.Connection, version_id: int) -> int:
    """Return the decoded size of a stored body, 0 if the version_id does not exist."""
    found = connection.execute(
        "SELECT size_bytes FROM version JOIN body USING (body_id) WHERE version_id = ?",
        (version_id,),
    ).get
    return int(found or 0)


def body_identity(connection: apsw.Connection, version_id: int) -> tuple[int, bytes]:
    """Return the decoded size and the digest of a stored body; nothing if there is none."""
    row: Any = connection.execute(
        "SELECT size_bytes, body.digest FROM version JOIN body USING (body_id)"
        " WHERE version_id = ?",
        (version_id,),
    ).fetchone()
    return row or (0, b"")


def _row(row: tuple[Any, ...]) -> VersionRow:
    return VersionRow(*(*row[:7], StoredResponse(*(*row[7:-2], bool(row[-2]), row[-1]))))
