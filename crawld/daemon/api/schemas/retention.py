"""What the control socket says of copies that are held, taken down or given up."""

from __future__ import annotations

from pydantic import BaseModel, Field

from crawld.daemon.api.schemas.status import Form


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


class PurgeForm(Form):
    """Pages to take down and keep out, or to let in again."""

    urls: list[str] = Field(min_length=1, max_length=10_000)
    reason: str | None = Field(default=None, max_length=1000)
    release: bool = False


class PurgeStatus(BaseModel):
    """What became of a page that was taken down."""

    url: str
    known: bool
    versions: int
    bodies: int
    same_at: list[str]


class PurgeReport(BaseModel):
    """What became of a take-down; `erased`: whether the bytes are out of the file and its log."""

    pages: list[PurgeStatus]
    erased: bool
    copies: list[str]


class HoldingStatus(BaseModel):
    """Copies that could go; `goes`: whether the next run gives up some of them."""

    kind: str
    copies: int
    stored_bytes: int
    goes: bool


class QuotaStatus(BaseModel):
    """How the file (no site) or a site stands against its quota; classes in order of eviction."""

    site: str | None
    used_bytes: int
    max_bytes: int | None
    holdings: list[HoldingStatus]
