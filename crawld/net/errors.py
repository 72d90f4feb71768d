"""The exception used inside `net/`, and the conversion of library errors to it.

It never leaves this package: `Fetcher.fetch` turns it into a `FetchFailure`.
"""

from __future__ import annotations

import errno

import h2.exceptions
import httpcore

from crawld.core.page import Failure
from crawld.net.progress import Progress
from crawld.net.resolver import NO_FILES, OUT_OF_FILES
from crawld.net.tls import explain_tls, tls_cause

REMOTE_ERRORS = (
    httpcore.ProtocolError,
    httpcore.NetworkError,
    httpcore.ConnectionNotAvailable,
    # httpcore passes these on when a frame cannot be read.
    h2.exceptions.H2Error,
)
"""Exceptions of the HTTP libraries that a peer can cause."""

_LOCAL_ERRNOS = frozenset(
    {
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.ENOBUFS,
        errno.EADDRNOTAVAIL,
    }
)


class FetchError(Exception):
    """A fetch failed; `local` if the cause is on our side: resolver, network, memory."""

    def __init__(self, failure: Failure, detail: str, *, local: bool = False) -> None:
        super().__init__(detail)
        self.failure = failure
        self.detail = detail
        self.local = local


class NoFilesError(FetchError):
    """The process or the machine has no open file left for a connection.

    Neither the host nor the network failed: the fetch waits, then it counts as a timeout.
    """

    def __init__(self) -> None:
        super().__init__(Failure.TIMEOUT, NO_FILES)


def connect_error(error: OSError | None, address: str) -> FetchError:
    """Return the error of a failed connection attempt; `error` None means a timeout."""
    if error is None:
        return FetchError(Failure.TIMEOUT, f"{address} did not answer the connection attempt")
    if error.errno in OUT_OF_FILES:
        return NoFilesError()
    text = error.strerror or str(error) or type(error).__name__
    return FetchError(
        Failure.CONNECT, f"{address}: {text.lower()}", local=error.errno in _LOCAL_ERRNOS
    )


def http_error(error: Exception, progress: Progress) -> FetchError:
    """Return the error of an exchange that failed with one of `REMOTE_ERRORS`."""
    tls = tls_cause(error)
    if tls is not None:
        return FetchError(Failure.TLS, explain_tls(tls))
    text = str(error).rstrip(".").lower()[:200] or type(error).__name__
    if not progress.peer_closed:
        return FetchError(Failure.PROTOCOL, text)
    if progress.response_begun():
        return FetchError(Failure.TRUNCATED, f"the connection ended inside the response: {text}")
    return FetchError(Failure.CONNECT, f"the connection ended before the response: {text}")
