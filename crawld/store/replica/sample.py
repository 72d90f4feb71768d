"""Visits of a page that a replica of its host answered."""

from __future__ import annotations

from typing import Final

import apsw

STAND_IN_PREFIX: Final = "replica "
"""Prefix of the detail of a visit that a replica answered; its name follows."""


def has_shown(connection: apsw.Connection, page_id: int, digest: bytes) -> bool:
    """Return whether some visit of a page found this cleaned text."""
    sql = "SELECT 1 FROM visit WHERE page_id = ? AND cleaned_digest = ? LIMIT 1"
    return connection.execute(sql, (page_id, digest)).get is not None
