"""The one TLS context of the process, and what a failed handshake says.

One context serves every host: a context of its own costs 700 KB and 15 ms. Certificates are always
checked against the name of the URL, whatever address was dialled.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import certifi

MAX_NAMES = 100
"""A certificate of more names says of none of them that it belongs to the others."""


def client_context(*, http2: bool = False) -> ssl.SSLContext:
    """Return a context that trusts the system's authorities, or certifi's where there are none.

    Args:
        http2: whether to offer HTTP/2.
    """
    context = ssl.create_default_context()
    if not _system_has_authorities():
        context.load_verify_locations(certifi.where())
    offer_protocols(context, http2=http2)
    return context


def offer_protocols(context: ssl.SSLContext, *, http2: bool) -> None:
    """Set what the handshake offers; on the shared context, once."""
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])


def _system_has_authorities() -> bool:
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None:
        return True
    return paths.capath is not None and any(Path(paths.capath).iterdir())


def certificate_names(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the host names on a certificate that was checked, in alphabetical order.

    Wildcards are left out: they say whose the domain is, which the names say themselves.

    Args:
        certificate: as `SSLSocket.getpeercert` gives it.
    """
    alternatives = (certificate or {}).get("subjectAltName", ())
    names = {name.lower() for kind, name in alternatives if kind == "DNS"}
    exact = sorted(name for name in names if name.isascii() and not name.startswith("*"))
    return tuple(exact) if len(exact) <= MAX_NAMES else ()


def tls_cause(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error at the root of an error, if there is one."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None


def explain_tls(error: ssl.SSLError) -> str:
    """Return the reason of a TLS failure in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message.rstrip(".")
    if error.reason:
        return error.reason.lower().replace("_", " ")
    return "connection closed during the TLS handshake"
