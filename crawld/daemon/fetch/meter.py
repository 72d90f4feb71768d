"""Metered lines: what the sites that have a monthly limit took since the first of the month (UTC).

Counted is what answers take on the line, whether to a visit or to what serves visits (`line`); a
site that is over its limit rests until the month is over. The answer under way when the limit is
reached is still counted and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from crawld.daemon.frontier.site import ActiveSite
from crawld.store.frontier.traffic import ReceivedBytes


def month_of(now: float) -> int:
    """Return the months since the year 0, UTC, of an instant in Unix seconds."""
    day = datetime.fromtimestamp(now, UTC)
    return 12 * day.year + day.month - 1


class TrafficMeter:
    """Bytes of this month by site.

    Attributes:
        month: which month, as `month_of`.
    """

    def __init__(self) -> None:
        self.month = 0
        self._received: dict[int, int] = {}

    def load(self, month: int, received: Mapping[int, int]) -> None:
        """Take over what the file knows of a month."""
        self.month = month
        self._received = dict(received)

    def turn(self, now: float) -> None:
        """Begin anew where another month has begun."""
        if month_of(now) != self.month:
            self.load(month_of(now), {})

    def received(self, site: ActiveSite, received_bytes: int, now: float) -> ReceivedBytes | None:
        """Count bytes; return what the file should know, None where the site has no limit."""
        if site.config.monthly_bytes is None:
            return None
        self.turn(now)
        self._received[site.site_id] = self.of(site.site_id) + received_bytes
        return ReceivedBytes(site.site_id, self.month, received_bytes)

    def of(self, site_id: int) -> int:
        """Return the bytes of a site this month."""
        return self._received.get(site_id, 0)

    def is_over(self, site: ActiveSite) -> bool:
        """Whether a site must rest until the month is over."""
        most = site.config.monthly_bytes
        return most is not None and self.of(site.site_id) >= most
