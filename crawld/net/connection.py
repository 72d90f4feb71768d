"""What a connection offers with either version of HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple, Protocol


class ResponseHead(NamedTuple):
    """Status and header of a response; `headers`: lines as received."""

    status: int
    reason: bytes
    version: bytes
    headers: list[tuple[bytes, bytes]]


class ByteStream(Protocol):
    """The body of a response."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the pieces as sent."""

    async def aclose(self) -> None:
        """End the exchange."""


class HttpConnection(Protocol):
    """One connection, for one request at a time."""

    async def send(
        self, target: bytes, headers: list[tuple[bytes, bytes]]
    ) -> tuple[ResponseHead, ByteStream]:
        """Send a GET request and return the response, without its body.

        Raises:
            httpcore errors and `FetchError`.
        """

    def is_whole(self) -> bool:
        """Whether the response has come to its end, so that its body needs no further read."""

    def end_nowait(self) -> bool:
        """End an exchange whose body was read to its end; False: `ByteStream.aclose` must."""

    def is_idle(self) -> bool:
        """Whether the last exchange ended properly and left the connection open."""

    def is_available(self) -> bool:
        """Whether an idle connection can have another request."""

    async def aclose(self) -> None:
        """Close the connection."""
