"""Copies stored without an analysis of their content, such as first copies of a fast crawl."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.content import fingerprint
from crawld.core.content.blocks import Blocks
from crawld.core.content.volatile import VolatileRules, cleaned
from crawld.store.engine import meta

CURSOR: Final = "analysed_version"
"""Key in meta: the last version_id examined."""

NEWEST: Final = 2**63 - 1
"""A version_id that no copy exceeds."""


class UnanalysedCopy(NamedTuple):
    """A copy without a sketch."""

    version_id: int
    page_id: int
    url: str


class ContentIdentity(NamedTuple):
    """Digest of the cleaned text, and sketch, of a copy."""

    version_id: int
    cleaned_digest: bytes
    sketch: bytes


def identity_of(version_id: int, blocks: Blocks, rules: VolatileRules) -> ContentIdentity:
    """Return the identity of a copy; pure, for any thread.

    Args:
        rules: noise rules of its page and host.
    """
    digest = fingerprint.cleaned_digest(cleaned(blocks, rules))
    return ContentIdentity(version_id, digest, fingerprint.sketch(blocks.visible_text()))


def next_copies(
    connection: apsw.Connection, *, before: float, limit: int, last: int = NEWEST
) -> tuple[list[UnanalysedCopy], int | None]:
    """Return the next copies to analyse of those stored before a time, in the order of storage.

    Args:
        last: the last version_id to examine.

    Returns:
        Of at most `limit` copies those of pages proper without a sketch, and the last version_id
        examined; None: there is nothing to analyse or to note. A few copies that were analysed are
        not noted, but examined again: that costs less than a commit.
    """
    after = int(meta.get(connection, CURSOR) or 0)
    rows: list[Any] = connection.execute(
        "SELECT version.version_id, page_id, url, (SELECT sketch FROM visit"
        " WHERE visit.page_id = version.page_id AND visit.visited_at = version.visited_at"
        " AND visit.version_id = version.version_id), requisite"
        " FROM version CROSS JOIN page USING (page_id)"
        " WHERE version.version_id > ? AND version.version_id <= ? AND version.visited_at < ?"
        " ORDER BY version.version_id LIMIT ?",
        (after, last, before, limit),
    ).fetchall()
    missing = [UnanalysedCopy(*row[:3]) for row in rows if row[3] is None and not row[4]]
    is_noted = missing or len(rows) == limit
    return missing, rows[-1][0] if is_noted else None


def put(connection: apsw.Connection, identities: Iterable[ContentIdentity], *, up_to: int) -> None:
    """Store results of the analysis with the visits and, if still current, with the pages."""
    for version_id, cleaned_digest, sketch in identities:
        values = (cleaned_digest, sketch, version_id)
        connection.execute(
            "UPDATE visit SET cleaned_digest = ?, sketch = ? WHERE version_id = ?3"
            " AND (page_id, visited_at) ="
            " (SELECT page_id, visited_at FROM version WHERE version_id = ?3)",
            values,
        )
        connection.execute(
            "UPDATE page SET cleaned_digest = ?, sketch = ? WHERE version_id = ?3 AND page_id ="
            " (SELECT page_id FROM version WHERE version_id = ?3)",
            values,
        )
    meta.put(connection, CURSOR, str(up_to))
