"""Which request profile brings the wanted form of pages, as `crawlctl host` shows it."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SectionProfile(BaseModel):
    """The profile of a section of a host."""

    site: str
    section: str = Field(description="first part of the path; empty: pages without one")
    profile: str | None = Field(description="null: none is known to bring the wanted form")
    visits: int = Field(description="of pages of the host")
    trials: int = Field(description="requests to the host that only tried a profile")
