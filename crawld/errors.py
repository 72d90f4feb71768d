"""Every exception crawld raises, in families by who must act.

A remote fault is never an exception: it is an outcome (`core/page.py`). What is left are faults of
the operator's side (a config, a file, an argument: the message names the fix) and bugs, which are
ordinary Python errors. A command line ends with `exit_code` of the error it met.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_BUG = 1
EXIT_OPERATOR = 2
EXIT_INCOMPLETE = 3
EXIT_UNREACHABLE = 4


class CrawldError(Exception):
    """Root of every error crawld raises on purpose.

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
    """The operator must act: a config, an argument or a file is not as it must be."""

    exit_code = EXIT_OPERATOR


class ConfigError(OperatorError):
    """The configuration cannot be read or does not say what it must."""


class InvalidUrlError(OperatorError, ValueError):
    """A text that is no URL crawld can visit."""


class StoreError(OperatorError):
    """The database file cannot be used as it is."""


class ForeignDatabaseError(StoreError):
    """The file is an SQLite database of another program."""


class NewerDatabaseError(StoreError):
    """The file was written by a newer crawld."""


class CorruptDatabaseError(StoreError):
    """The file is damaged; a backup must be restored."""


class DatabaseInUseError(StoreError):
    """Another process holds the database."""


class MigrationError(StoreError):
    """A migration failed; the file is as it was before."""


class UnreachableError(CrawldError):
    """No daemon answers on the control socket."""

    exit_code = EXIT_UNREACHABLE


def is_store_failure(error: Exception) -> bool:
    """Whether an error, or one of a group, says that the database file cannot be used any more."""
    if isinstance(error, ExceptionGroup):
        return error.subgroup(StoreError) is not None
    return isinstance(error, StoreError)
