"""What all requests to the control socket share."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, field_validator

MAX_ROW_ID: Final = 2**63 - 1
"""The largest number that SQLite stores; Python's are unlimited."""


class Form(BaseModel):
    """A request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _can_be_stored(cls, value: object) -> object:
        """Refuse what JSON allows and SQLite does not: half a character, numbers beyond 64 bits."""
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, int) and not -MAX_ROW_ID <= each <= MAX_ROW_ID:
                raise ValueError("is too large")
            if isinstance(each, str) and not each.isascii():
                try:
                    each.encode()
                except UnicodeEncodeError:
                    raise ValueError("contains half a character") from None
        return value
