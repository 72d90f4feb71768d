"""Reads the `headers_file` of a site: request headers and passwords.

    # lines `Name: value`; this one becomes `Authorization: Basic ...`
    Basic-Auth: reader:correct horse
    X-Api-Key: 3f9a

The file contains secrets: only its owner should be able to read it (otherwise a warning is given),
and no value ever appears in a message, a log line or a `repr`. A value is a `SecretStr` until the
request that sends it is written (`crawld/net/outgoing.py`).
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from crawld.config.secret_file import read_secret_lines
from crawld.errors import ConfigError

BASIC_AUTH = "basic-auth"

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

RESERVED = frozenset(
    {
        *("host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "expect"),
        *("user-agent", "accept-encoding", "range", "if-range", "if-match", "if-none-match"),
        *("if-modified-since", "if-unmodified-since"),
    }
)
"""Headers that only crawld sets, to keep framing, storage and identification correct."""


@dataclass(frozen=True, slots=True)
class SiteHeaders:
    """Headers to send with every request of one site, only to the origins they were given for."""

    pairs: tuple[tuple[str, SecretStr], ...] = ()
    warnings: tuple[str, ...] = ()


def read_headers(path: Path) -> SiteHeaders:
    """Return the headers of a `headers_file`.

    Raises:
        ConfigError: the file cannot be read, or a line is not a header; never shows values.
    """
    found = read_secret_lines(path, "headers_file")
    pairs = [
        _header(line.text.get_secret_value(), place=f"{path}, line {line.number}")
        for line in found.lines
    ]
    return SiteHeaders(tuple(pairs), found.warnings)


def _header(line: str, *, place: str) -> tuple[str, SecretStr]:
    name, colon, value = (part.strip() for part in line.partition(":"))
    if not colon or not _NAME.fullmatch(name):
        raise ConfigError(f"headers_file: {place} is not `Name: value`")
    if not value or not _VALUE.fullmatch(value):
        raise ConfigError(f"headers_file: {place}: the value of {name} cannot be sent in a header")
    if name.lower() in RESERVED:
        raise ConfigError(
            f"headers_file: {place}: {name} is set by crawld itself", hint="remove the line"
        )
    if name.lower() != BASIC_AUTH:
        return name, SecretStr(value)
    if ":" not in value:
        raise ConfigError(f"headers_file: {place} is not `Basic-Auth: user:password`")
    return "Authorization", SecretStr("Basic " + base64.b64encode(value.encode()).decode())
