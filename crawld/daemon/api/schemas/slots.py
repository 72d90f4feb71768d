"""Responses of the control socket about the slots of hosts, and the rates that hosts share."""

from __future__ import annotations

from pydantic import BaseModel


class Slots(BaseModel):
    """Statistics of the host slots."""

    hosts: int
    on_turn: int
    waiting: int
    served: int
    lateness_p50_ms: float
    lateness_p99_ms: float


class RateLimitStatus(BaseModel):
    """A limit of requests and bytes per second that hosts share; null: no limit.

    `name`: `[schedule]`, `group ...` or `site ...`. `hosts` with pages share it; `waiting` hosts
    could be fetched now if it did not hold them up. The next request may begin in `opens_in_s`.
    """

    name: str
    max_requests_per_s: float | None
    max_bytes_per_s: float | None
    hosts: int
    waiting: int
    opens_in_s: float
