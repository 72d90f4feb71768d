"""One problem that a check of the config found."""

from __future__ import annotations

from dataclasses import dataclass

from crawld.config.positions import KeyPath


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem in a config.

    Attributes:
        path: its key.
        message: what is wrong and how to fix it.
        fatal: whether the config is rejected.
    """

    path: KeyPath
    message: str
    fatal: bool = True
