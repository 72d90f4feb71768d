"""Text of bodies that have another form, such as PDF: stored with the body, read instead of it."""

from __future__ import annotations

from typing import Final

import apsw

from crawld.core.content.documents import PDF, PDF_TEXT
from crawld.store.versions import body
from crawld.store.versions.body import EncodedBody

_UTF8_TEXT: Final = f"{PDF_TEXT}; charset=utf-8"


def put(connection: apsw.Connection, body_id: int, encoded: EncodedBody) -> None:
    """Store the text of a stored body, if it has one; the first one stays."""
    text = encoded.text
    if text is None:
        return
    connection.execute(
        "INSERT OR IGNORE INTO document_text (body_id, encoding, size_bytes, data)"
        " VALUES (?, ?, ?, ?)",
        (body_id, text.encoding, text.size_bytes, text.data),
    )


def readable_form(
    connection: apsw.Connection, body_id: int, content_type: str | None
) -> tuple[bytes, str] | None:
    """Return the text of a body and its media type; None: the body itself is to be read.

    Args:
        content_type: of the body, without parameters.

    Raises:
        CorruptDatabaseError: the stored bytes are damaged.
    """
    if content_type != PDF:
        return None
    row = connection.execute(
        "SELECT encoding, size_bytes, data FROM document_text WHERE body_id = ?", (body_id,)
    ).fetchone()
    return None if row is None else (body.decode(*row), _UTF8_TEXT)
