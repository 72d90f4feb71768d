"""Defines a key of the config file: default, meaning, unit, and whether it needs a restart."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

_T = TypeVar("_T")

MIB = 1 << 20

_UNITS = {"_s": "seconds", "_bytes": "bytes", "_share": "share from 0 to 1"}


def key(default: _T, meaning: str, *, unit: str = "", restart: bool = False) -> _T:
    """Return a pydantic field; `unit` is given where the end of the name does not show it."""
    return Field(
        default=default,
        description=meaning,
        json_schema_extra={"unit": unit, "restart": restart},
    )


def unit_of(name: str, field: FieldInfo) -> str:
    """Return the unit of a key, empty if it has none."""
    marks = field.json_schema_extra
    if not isinstance(marks, dict):
        return ""
    ending = name[name.rfind("_") :]
    return str(marks["unit"]) or _UNITS.get(ending, "")


def needs_restart(field: FieldInfo) -> bool:
    """Whether a key cannot change while the daemon runs."""
    marks = field.json_schema_extra
    return isinstance(marks, dict) and bool(marks["restart"])


class ConfigTable(BaseModel):
    """A table of the config file."""

    # A value given by mistake may be a password: the text of an error must not show it in a log.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
