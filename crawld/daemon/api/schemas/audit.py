"""What the control socket says of freshness."""

from __future__ import annotations

from pydantic import BaseModel


class FreshnessStatus(BaseModel):
    """How fresh the copies of a site, or of one host of it, were found.

    `freshness` is the share of random visits that found the copy to be as the page is, `low` and
    `high` its interval at 95 %, `modelled` what the change model had expected of the same pages at
    the same instants. Without an audit they are null. `shown` is the freshness of what is served
    and exported, where pins and `settle_s` hold copies back; null where they do not.
    """

    site: str
    host: str | None = None
    since: float
    audits: int
    unknown: int
    freshness: float | None
    low: float
    high: float
    modelled: float | None
    shown: float | None = None
