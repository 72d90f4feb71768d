"""Response of the control socket about changes."""

from __future__ import annotations

from pydantic import BaseModel


class ChangeStatus(BaseModel):
    """An event: a real change of a page.

    `id`: unique among all mirrors, the same as in feeds; `kind`: new, changed, moved, gone or back;
    `version_id`: the copy that shows it; `before_id`: the copy before; null if there is none, or it
    is no longer kept; `difference`: size of the change, a share of the text; `target_url`: where
    the page moved to.
    """

    event_id: int
    id: str
    kind: str
    at: float
    site: str
    url: str
    title: str | None
    version_id: int | None
    before_id: int | None
    difference: float | None
    target_url: str | None


class Changes(BaseModel):
    """Changes, newest first, or oldest first after an id or a time.

    `last_id`: the last event examined; the next list continues there (`before`, or `after`);
    `ended`: there are no more now.
    """

    events: list[ChangeStatus]
    last_id: int
    ended: bool
