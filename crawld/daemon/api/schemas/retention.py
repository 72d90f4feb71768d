"""Requests and responses of the control socket about pins, purges and quotas."""

from __future__ import annotations

from pydantic import BaseModel, Field

from crawld.daemon.api.schemas.form import Form


class PinForm(Form):
    """The page to pin, and the time of the copy to show; without a time, the last copy."""

    url: str
    at: str | None = None
    release: bool = False


class PinStatus(BaseModel):
    """A page pinned to a copy."""

    url: str
    version_id: int
    visited_at: float
    pinned_at: float


class PurgeForm(Form):
    """Pages to take down and keep out, or to readmit."""

    urls: list[str] = Field(min_length=1, max_length=10_000)
    reason: str | None = Field(default=None, max_length=1000)
    release: bool = False


class PurgeStatus(BaseModel):
    """The result of a purge for one page."""

    url: str
    known: bool
    versions: int
    bodies: int
    same_at: list[str]


class PurgeReport(BaseModel):
    """The result of a purge; `erased`: whether the bytes are gone from the file and its log."""

    pages: list[PurgeStatus]
    erased: bool
    copies: list[str]


class HoldingStatus(BaseModel):
    """A class of copies; `goes`: whether the next run deletes some of them."""

    kind: str
    copies: int
    stored_bytes: int
    goes: bool


class QuotaStatus(BaseModel):
    """Space used by the file (no site) or a site; classes in order of eviction."""

    site: str | None
    used_bytes: int
    max_bytes: int | None
    holdings: list[HoldingStatus]
