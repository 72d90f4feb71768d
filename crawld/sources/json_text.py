"""Reads JSON of a server, within limits, to values that can be stored and sent.

What JSON allows and the rest of crawld does not is replaced: numbers beyond 64 bits, NaN and
infinity by None, as if they were missing, and lone surrogates by question marks.
"""

from __future__ import annotations

import json
import re
from math import isfinite

MAX_VALUES = 500_000
"""Values of a document: a response of 500 revisions has some 5,000. Each takes some 100 bytes."""

_MAX_DIGITS = 20
_ABSURD_DIGITS = 4_000
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").search


def read_json(body: bytes) -> object:
    """Return the value of a JSON document in UTF-8.

    Raises:
        ValueError: not JSON, nested too deeply, or more than `MAX_VALUES` values.
    """
    # Each value but the first follows one of these; those in texts count too.
    if sum(map(body.count, (b",", b"[", b"{", b":"))) > MAX_VALUES:
        raise ValueError(f"more than {MAX_VALUES} values")
    text = body.decode("utf-8", "replace")
    try:
        value: object = _parse(text)
        if _ESCAPED_SURROGATE(text):
            # It can be escaped, but neither stored nor sent.
            value = _parse(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def _parse(text: str | bytes) -> object:
    value: object = json.loads(
        text, parse_int=_integer, parse_float=_number, parse_constant=_no_number
    )
    return value


def _integer(written: str) -> int | None:
    if len(written) > _MAX_DIGITS:
        if len(written) > _ABSURD_DIGITS:
            raise ValueError(f"a number of {len(written)} digits")
        return None
    value = int(written)
    return value if -(2**63) <= value < 2**63 else None


def _number(written: str) -> float | None:
    value = float(written) if len(written) <= 400 else float("inf")
    return value if isfinite(value) else None


def _no_number(written: str) -> None:
    return None
