"""All exceptions crawld raises, grouped by who must act.

A remote fault is never an exception: it is an outcome (`core/page.py`). What remains are operator
errors (a config, a file, an argument; the message names the fix) and bugs, which are ordinary
Python errors. A command exits with the `exit_code` of its error.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_BUG = 1
EXIT_OPERATOR = 2
EXIT_INCOMPLETE = 3
EXIT_UNREACHABLE = 4


class CrawldError(Exception):
    """Root of all errors that crawld raises on purpose.

    Args:
        message: what is wrong, in one sentence.
        hint: what to do about it; shown on its own line.
    """

    exit_code = EXIT_BUG

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class OperatorError(CrawldError):
    """The operator must correct a config, an argument or a file."""

    exit_code = EXIT_OPERATOR


class ConfigError(OperatorError):
    """The configuration cannot be read, or a value is missing or invalid."""


class InvalidUrlError(OperatorError, ValueError):
    """The text is not a URL that crawld can visit."""


class StoreError(OperatorError):
    """The database file cannot be used in its present state."""


class ForeignDatabaseError(StoreError):
    """The file is an SQLite database of another program."""


class NewerDatabaseError(StoreError):
    """The file was written by a newer crawld."""


class CorruptDatabaseError(StoreError):
    """The file is damaged and must be restored from a backup."""


class DatabaseInUseError(StoreError):
    """Another process has the database open."""


class ClosedDatabaseError(StoreError):
    """The daemon stops, and has closed its database.

    Args:
        path: the database file.
    """

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} is closed", hint="crawld stops; start it again, then repeat this")


class MigrationError(StoreError):
    """A migration failed; the file is unchanged."""


class UnreachableError(CrawldError):
    """No daemon answers on the control socket."""

    exit_code = EXIT_UNREACHABLE


def is_store_failure(error: Exception) -> bool:
    """Return whether an error, or one of its group, means that the database file is unusable."""
    if isinstance(error, ExceptionGroup):
        return error.subgroup(StoreError) is not None
    return isinstance(error, StoreError)
