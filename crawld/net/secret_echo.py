"""Removes from a response what would tell a reader of the mirror the operator's password.

Responses are stored, exported as WARC and shown. A server may repeat the request's secret headers
in its own, and it may open a session for them: a session cookie is as good as the password, and
crawld never sends it back. Bodies are stored as they are: a page that shows a password is content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pydantic import SecretStr

from crawld.net.exchange import FetchFailure, FetchRequest, FetchResponse, Headers

HIDDEN = "***"

_SESSION = frozenset({b"set-cookie", b"set-cookie2"})

_MIN_TOKEN = 8
"""Shorter words of a secret value are too common to be recognized in a response."""


def remove_secrets(
    result: FetchResponse | FetchFailure, request: FetchRequest
) -> FetchResponse | FetchFailure:
    """Return the result of a request without its secrets: cookies, and headers that repeat one.

    A request without secret headers gets its result unchanged.
    """
    secrets = [value for _, value in request.headers if isinstance(value, SecretStr)]
    if not secrets:
        return result
    echo = _pattern(secrets)
    headers = _clean(result.headers, echo)
    if isinstance(result, FetchFailure):
        return replace(result, headers=headers, detail=echo.sub(HIDDEN, result.detail))
    reason = echo.sub(HIDDEN, result.reason)
    return replace(result, headers=headers, reason=reason)


def hide_secrets(text: str, secrets: Sequence[SecretStr]) -> str:
    """Return a text of the server or about it with its secrets hidden."""
    return _pattern(secrets).sub(HIDDEN, text) if secrets else text


def _pattern(secrets: Sequence[SecretStr]) -> re.Pattern[str]:
    """Return a pattern of the values and of what follows a scheme: `Basic dXNlcjpwYXNz`."""
    texts = set()
    for secret in secrets:
        value = secret.get_secret_value()
        token = value.partition(" ")[2]
        texts |= {value, token} if len(token) >= _MIN_TOKEN else {value}
    # Longest first, so that no part of a value stays. Literals have no repetition: linear.
    ordered = sorted(texts, key=len, reverse=True)
    # Messages of libraries are lowered (`crawld/net/errors.py`).
    return re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE)


def _clean(headers: Headers, echo: re.Pattern[str]) -> Headers:
    return tuple(
        (name, value)
        for name, value in headers
        if name.lower() not in _SESSION
        and not echo.search(f"{name.decode('latin-1')}\n{value.decode('latin-1')}")
    )
