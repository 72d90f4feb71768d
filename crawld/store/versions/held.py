"""The copy a new body is compared with."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from crawld.store.versions import version


class HeldCopy(NamedTuple):
    """A stored body and the Content-Type under which it reads as it did when it came."""

    body: bytes
    content_type: str | None


def held(connection: apsw.Connection, version_id: int) -> HeldCopy | None:
    """Return a stored copy to compare with, None if there is none of that number.

    Raises:
        CorruptDatabaseError: the stored bytes are damaged.
    """
    row = version.detail(connection, version_id)
    body = version.read_body(connection, version_id) if row else None
    if row is None or body is None:
        return None
    content_type, charset = row.answer.content_type, row.answer.charset
    if content_type and charset:
        content_type = f"{content_type}; charset={charset}"
    return HeldCopy(body, content_type)
