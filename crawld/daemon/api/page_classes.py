"""List pages whose change rate is of one class."""

from __future__ import annotations

import math
from typing import NamedTuple

import apsw

from crawld.core.change.classes import RateClasses
from crawld.core.change.record import is_current, records_of
from crawld.core.page import PageState
from crawld.core.units import DAY_S
from crawld.daemon.api.page_views import rate_classes
from crawld.daemon.daemon import Daemon
from crawld.daemon.pacing import Pace
from crawld.errors import OperatorError
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.page import PageRecord

_SLICE = 2_000
"""Pages read at once, some milliseconds of work."""

_REST_FACTOR = 1.0


class PageFilter(NamedTuple):
    """Which pages are listed: of a site, a host, a state; None: all."""

    site_id: int | None
    host_id: int | None
    state: PageState | None

    def list(self, connection: apsw.Connection, after: int, limit: int) -> list[PageRecord]:
        """Return pages after the page_id `after`."""
        return page_rows.list_pages(
            connection,
            site_id=self.site_id,
            host_id=self.host_id,
            state=self.state,
            after=after,
            limit=limit,
        )


async def pages_of_class(
    daemon: Daemon,
    class_days: float,
    wanted: PageFilter,
    *,
    after: int,
    limit: int,
) -> list[PageRecord]:
    """Return pages that the class with a mean interval dominates, after the page_id `after`.

    Raises:
        OperatorError: there is no such class.
    """
    classes = rate_classes(daemon.config)
    known = [seconds / DAY_S for seconds in classes.mean_intervals_s]
    nearest = min(known, key=lambda days: abs(days - class_days))
    if not math.isclose(nearest, class_days, rel_tol=0.05):
        shown = ", ".join(f"{days:.4g}" for days in known)
        raise OperatorError(f"no class of {class_days:g} days", hint=f"Classes in days: {shown}.")
    found: list[PageRecord] = []
    pace = Pace(_REST_FACTOR)
    while len(found) < limit:
        rows = await daemon.database.read(wanted.list, after, _SLICE)
        found += await daemon.database.read(_of_class, rows, classes, nearest)
        if len(rows) < _SLICE:
            break
        after = rows[-1].page_id
        await pace.rest()
    return found[:limit]


def _of_class(
    connection: apsw.Connection, rows: list[PageRecord], classes: RateClasses, days: float
) -> list[PageRecord]:
    """Return the pages of a class, on a reader's thread."""
    models = [(row, row.model) for row in rows if row.model and is_current(row.model)]
    if not models:
        return []
    dominant = classes.dominant_days(records_of(model for _, model in models))
    return [row for (row, _), found in zip(models, dominant, strict=True) if found == days]
