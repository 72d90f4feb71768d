"""The page of the dashboard about the file: its size, and how it grew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import apsw

from crawld.core.units import DAY_S
from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.view import Parameters, View
from crawld.dashboard.chart import Chart
from crawld.dashboard.line_chart import Axis, Point, Series, line_chart, time_axis
from crawld.dashboard.words import number
from crawld.store import growth

POINTS: Final = 48

SPANS: Final = {"day": DAY_S, "week": 7 * DAY_S, "month": 30 * DAY_S, "year": 365 * DAY_S}
"""What the charts may show, besides everything."""


async def show_storage(daemon: Daemon, query: Parameters) -> View:
    """Show the size of the file and how its rows grew."""
    span = query.text("span")
    path = daemon.database.path
    now = daemon.clock.now()
    found = await daemon.database.read(_read, path, now, SPANS.get(span or ""))
    store = daemon.config.store
    points: list[growth.GrowthPoint] = found["points"]
    return View(
        "storage.html",
        "storage",
        "Storage",
        {
            **found,
            "path": str(path),
            "max_bytes": store.max_bytes,
            "min_free_bytes": store.min_free_bytes,
            "span": span if span in SPANS else "",
            "spans": list(SPANS),
            "charts": [
                _chart("Copies stored", "copies", [(p.at, p.copies) for p in points]),
                _chart("Pages known", "pages", [(p.at, p.pages) for p in points]),
                _chart("Visits made", "visits", [(p.at, p.visits) for p in points]),
            ]
            if len(points) > 1
            else [],
        },
    )


def _read(
    connection: apsw.Connection, path: Path, now: float, span_s: float | None
) -> dict[str, Any]:
    first = growth.first_time(connection)
    begin = now if first is None else min(first, now)
    if span_s is not None:
        begin = max(begin, now - span_s)
    width = (now - begin) / POINTS
    times = [begin + width * step for step in range(POINTS + 1)] if width > 0.0 else []
    size = growth.file_size(connection)
    log = Path(f"{path}-wal")
    return {
        "size_bytes": size.size_bytes,
        "free_bytes": size.free_bytes,
        "log_bytes": log.stat().st_size if log.exists() else 0,
        "disk_free_bytes": shutil.disk_usage(path.parent).free,
        "points": growth.growth(connection, times),
        "first_at": first,
    }


def _chart(caption: str, name: str, values: list[tuple[float, int]]) -> tuple[str, Chart]:
    series = Series(name, "s1", [Point(at, float(count)) for at, count in values])
    low, high = values[0][0], values[-1][0]
    axis = Axis(
        f"Number of {name}", number, low=0.0 if values[0][1] <= 0.2 * values[-1][1] else None
    )
    return caption, line_chart(caption, [series], time_axis(low=low, high=high), axis)
