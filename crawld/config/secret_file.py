"""Reads files that contain secrets: only their owner should be able to read them.

No value ever appears in a message: a message names the file and the line.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from crawld.errors import ConfigError

MAX_SECRET_FILE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class SecretLine:
    """A line of a file of secrets, without spaces around it; `number` counts from 1."""

    number: int
    text: SecretStr


@dataclass(frozen=True, slots=True)
class SecretLines:
    """The lines of a file of secrets, without empty lines and comments, and its warnings."""

    lines: tuple[SecretLine, ...]
    warnings: tuple[str, ...] = ()


def read_secret_lines(path: Path, key: str) -> SecretLines:
    """Return the lines of a file of secrets.

    Args:
        key: the config key that names the file, for messages.

    Raises:
        ConfigError: the file cannot be read; never shows values.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_SECRET_FILE_BYTES:
            raise ConfigError(
                f"{key}: {path} is not a text file of at most {MAX_SECRET_FILE_BYTES} bytes"
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"{key}: cannot read {path}: {error.strerror}",
            hint="the user of the daemon must own it",
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{key}: {path} is not UTF-8 text") from None
    lines = tuple(
        SecretLine(number, SecretStr(line.strip()))
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    return SecretLines(lines, _mode_warnings(path, key, status.st_mode))


def read_secret(path: Path, key: str) -> tuple[SecretStr, tuple[str, ...]]:
    """Return the only line of a file of secrets, and the warnings.

    Raises:
        ConfigError: the file cannot be read, or has another number of lines.
    """
    found = read_secret_lines(path, key)
    if len(found.lines) != 1:
        raise ConfigError(
            f"{key}: {path} has {len(found.lines)} lines", hint="it must have one: the secret"
        )
    return found.lines[0].text, found.warnings


def _mode_warnings(path: Path, key: str, mode: int) -> tuple[str, ...]:
    if not mode & 0o077:
        return ()
    return (
        f"{key} {path} has mode {stat.S_IMODE(mode):04o}, so others may read it: chmod 600 {path}",
    )
