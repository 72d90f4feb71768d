"""Response of the control socket about hint sources."""

from __future__ import annotations

from pydantic import BaseModel


class HintSourceStatus(BaseModel):
    """One hint source, and the sites whose pages it reports on.

    `trust`: share of its hints that are real; `missed_share`: share of the changes without a hint;
    `gain`: freshness it adds to the pages it covers, by the models; `lag_s`: median time from a
    change to its hint; `explained_count`: changes that it did not report because something that the
    page includes was edited, which it did report; `interval_s`: the poll interval that pays best.
    """

    hint_source_id: int
    sites: list[str]
    host: str
    kind: str
    url: str
    cursor: str | None
    told_until: float | None
    last_poll_at: float | None
    next_poll_at: float | None
    poll_count: int
    request_count: int
    hint_count: int
    outstanding: int
    real_count: int
    false_count: int
    missed_count: int
    explained_count: int = 0
    trust: float
    missed_share: float
    lag_s: float | None
    interval_s: float | None
    gain: float | None
    trouble: str | None
    trouble_detail: str | None
    trouble_count: int
    closed_until: float | None
