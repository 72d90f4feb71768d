"""Responses of the control socket about notifications."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class NotifyStatus(BaseModel):
    """One rule of notification.

    `receiver` has no secrets. `waiting` events are reported later, `sealed` of them are in the
    message that is being delivered, of which `tries` failed; its next try is at `next_try_at`.
    `due_at` is when the others are sent. At most 500 events wait: later ones are looked at when
    these are delivered. `trouble` is what went wrong at the last try, null if nothing did.
    """

    name: str
    receiver: str
    when: Literal["at once", "hourly", "daily"]
    waiting: int
    sealed: int
    due_at: float | None
    tries: int
    first_try_at: float | None
    next_try_at: float | None
    trouble: str | None
    trouble_at: float | None
    messages_delivered: int
    events_delivered: int
    delivered_at: float | None
    events_given_up: int
    given_up_at: float | None


class NotifyTest(BaseModel):
    """What became of a test message; `trouble` is empty if all is well."""

    name: str
    delivered: bool
    trouble: str
