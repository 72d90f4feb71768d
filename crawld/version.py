"""The version of this program."""

from __future__ import annotations

from functools import cache


@cache
def crawld_version() -> str:
    """Return the version of crawld; its metadata takes 3 ms to read, their reader 30 to import."""
    from importlib.metadata import version

    return version("crawld")
