"""What the control socket says of copies that are held, taken down or given up."""

from __future__ import annotations

from pydantic import BaseModel

from crawld.daemon.models import Form


class PinForm(Form):
    """Which page to hold, and at which of its copies; without a time at the last."""

    url: str
    at: str | None = None
    release: bool = False


class PinStatus(BaseModel):
    """A page that is held at a copy."""

    url: str
    version_id: int
    visited_at: float
    pinned_at: float
