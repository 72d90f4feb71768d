"""A key of the config file: default, meaning, unit, and whether it needs a restart."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

_T = TypeVar("_T")

MIB = 1 << 20


def key(default: _T, meaning: str, *, unit: str = "", restart: bool = False) -> _T:
    """Return a pydantic field with crawld's own marks (unit, restart) in `json_schema_extra`."""
    return Field(
        default=default,
        description=meaning,
        json_schema_extra={"unit": unit, "restart": restart},
    )


class ConfigTable(BaseModel):
    """A table of the config file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
