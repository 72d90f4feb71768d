"""What a page of the dashboard answers with: a template and its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.exceptions import HTTPException

PER_PAGE: Final = 100
"""Rows of a list."""

MAX_ROW_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class View:
    """A page: its template, the item of the navigation it belongs to, its title and its values."""

    template: str
    here: str
    title: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a request."""

    given: Mapping[str, str]

    def text(self, name: str) -> str | None:
        """Return a parameter; None if it is missing or empty."""
        return self.given.get(name, "").strip() or None

    def required(self, name: str) -> str:
        """Return a parameter; respond 404 without it."""
        found = self.text(name)
        if found is None:
            raise HTTPException(404, f"The address lacks {name}=.")
        return found

    def whole(self, name: str, default: int = 0) -> int:
        """Return a whole number within the range of SQLite; what is none is the default."""
        text = self.given.get(name, "")
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            return default
        return max(min(int(text), MAX_ROW_ID), -MAX_ROW_ID - 1)
