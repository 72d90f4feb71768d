"""The TLS context of the process, and the reasons of failed handshakes.

One context serves every host, since each costs 700 KB and 15 to 55 ms. Certificates are checked
against the host name of the URL, whatever the address.

A body without Content-Length or chunks ends with the connection. Under TLS only close_notify shows
that nobody cut it: httpx, curl and browsers accept an end without it, wget refuses it. Here it is
`TRUNCATED`, since a cut page must never replace a good copy, unless the content coding marks its
own end (gzip, deflate, zstd). The pages of a server that sends neither length nor close_notify nor
compressed bodies therefore fail at each visit, and keep the copy they have, if any.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import certifi

MAX_NAMES = 100
"""A certificate with more names is no evidence that they belong together."""


@functools.cache
def client_context() -> ssl.SSLContext:
    """Return the context that trusts the authorities of the system, or certifi's if it has none."""
    context = ssl.create_default_context()
    if not _system_has_authorities():
        context.load_verify_locations(certifi.where())
    return context


def offer_protocols(context: ssl.SSLContext, *, http2: bool) -> None:
    """Set the HTTP versions that the handshake offers."""
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])


def _system_has_authorities() -> bool:
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None:
        return True
    return paths.capath is not None and any(Path(paths.capath).iterdir())


def certificate_names(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the host names on a verified certificate, sorted, without wildcards."""
    alternatives = (certificate or {}).get("subjectAltName", ())
    names = {name.lower() for kind, name in alternatives if kind == "DNS"}
    exact = sorted(name for name in names if name.isascii() and not name.startswith("*"))
    return tuple(exact) if len(exact) <= MAX_NAMES else ()


def tls_cause(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error in an error's chain of causes, if there is one."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None


def explain_tls(error: ssl.SSLError) -> str:
    """Return a short reason for a TLS failure."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    if error.reason:
        return error.reason.lower().replace("_", " ")
    return "connection closed during the TLS handshake"
