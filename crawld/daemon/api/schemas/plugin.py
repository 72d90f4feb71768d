"""Responses of the control socket about plug-ins."""

from __future__ import annotations

from pydantic import BaseModel


class HookStatus(BaseModel):
    """Calls of one hook of a plug-in since the start, and their time."""

    hook: str
    calls: int
    failures: int
    total_s: float
    longest_s: float


class PluginStatus(BaseModel):
    """One plug-in in use.

    `disabled`: why it is not called any more, empty if it is. `overruled` counts decisions about
    pages that another plug-in made differently. `grown_bytes` is about how much its calls made
    the process grow.
    """

    name: str
    origin: str
    disabled: str
    failures: int
    last_failure: str
    overruled: int
    grown_bytes: int
    hooks: list[HookStatus]
