"""What a server sent, as visits and versions store it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """What the server sent, however the visit ended.

    Attributes:
        status: HTTP status code.
        http_version: as `HTTP/1.1`.
        reason: reason phrase as sent; empty or None where none was (HTTP/2).
        headers: packed header lines (`store.headers.pack`).
        content_type: declared or sniffed type of the body.
        charset: charset it was read with.
    """

    status: int
    http_version: str
    headers: bytes
    reason: str | None = None
    content_type: str | None = None
    charset: str | None = None
