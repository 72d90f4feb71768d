"""The response of a server, as stored with visits and versions."""

from __future__ import annotations

from crawld.core.value_type import value_type
from crawld.store.versions.version_tag import VersionTag


@value_type
class StoredResponse:
    """Status line and headers of a response, for every outcome of a visit.

    Attributes:
        status: HTTP status code.
        http_version: as `HTTP/1.1`.
        reason: reason phrase as sent; empty or None if there was none (HTTP/2).
        headers: packed header lines (`headers.pack`).
        content_type: declared or sniffed type of the body.
        charset: charset that decoded the body.
        truncated: whether the body was cut at the limits of its site.
        profile: name of the request profile that brought it in the wanted form; None: no profile,
            or another form.
        tags: what plug-ins keep with a new copy; empty when it is read.
    """

    status: int
    http_version: str
    headers: bytes
    reason: str | None = None
    content_type: str | None = None
    charset: str | None = None
    truncated: bool = False
    profile: str | None = None
    tags: tuple[VersionTag, ...] = ()
