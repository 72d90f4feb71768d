"""What all charts share: scales, ticks, and the table of values behind a chart.

A chart is an SVG of fixed coordinates that is scaled to its place. It has no inline style, which
the policy of the page refuses: colours and sizes of letters are classes of `dashboard.css`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup, escape

from crawld.core.units import DAY_S

WIDTH: Final = 720
LEFT, RIGHT, TOP, BOTTOM = 74, 12, 16, 30
"""Margins of the drawing area for the labels of the axes."""

MAX_POINTS: Final = 400
"""Most marks of a chart: more cannot be told apart, and each has a hover value."""

_TIME_STEPS: Final = (
    *(1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 3 * 3_600.0, 6 * 3_600.0),
    *(DAY_S / 2, DAY_S, 2 * DAY_S, 7 * DAY_S, 30 * DAY_S, 91 * DAY_S, 365 * DAY_S),
)


@dataclass(frozen=True, slots=True)
class Table:
    """The values of a chart as text: head cells and rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart.

    Attributes:
        svg: the drawing.
        table: its values.
        legend: class and name of each series.
    """

    svg: Markup
    table: Table
    legend: Sequence[tuple[str, str]] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from `low` to `high` to coordinates from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value, within the range."""
        span = self.high - self.low
        position = (value - self.low) / span if span > 0.0 else 0.5
        return self.start + min(max(position, 0.0), 1.0) * (self.end - self.start)


def coordinate(value: float) -> str:
    """Return a coordinate as SVG writes it, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def nice_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return about `count` round numbers from low to high.

    >>> nice_ticks(0.0, 1.0), nice_ticks(0.0, 870.0)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 250.0, 500.0, 750.0])
    """
    span = high - low
    if not math.isfinite(span) or span <= 0.0:
        return [low]
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1.0, 2.0, 2.5, 5.0, 10.0) if each * power >= rough * 0.99)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, min(last, first + 20) + 1)]


def time_ticks(low: float, high: float, count: int = 5) -> list[tuple[float, str]]:
    """Return about `count` times (Unix seconds, UTC) from low to high, with their labels."""
    span = high - low
    if not math.isfinite(span) or span <= 0.0:
        return []
    step = next((each for each in _TIME_STEPS if span / each <= count), span / count)
    first, last = math.ceil(low / step), math.floor(high / step)
    times = [number * step for number in range(first, min(last, first + 20) + 1)]
    return [(at, _time_label(at, step)) for at in times]


def _time_label(at: float, step: float) -> str:
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    if step < 60.0:
        return moment.strftime("%H:%M:%S")
    if step < DAY_S:
        return moment.strftime("%H:%M") if moment.hour or moment.minute else _day(moment)
    return str(moment.year) if step >= 365 * DAY_S else _day(moment)


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment.strftime('%b')}"


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> Markup:
    """Return a label of a chart."""
    at = Markup('x="{}" y="{}"').format(coordinate(x), coordinate(y))
    return Markup('<text {} text-anchor="{}" class="{}">{}</text>').format(at, anchor, kind, words)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Return a straight line."""
    ends = Markup('x1="{}" y1="{}" x2="{}" y2="{}"').format(*map(coordinate, (x1, y1, x2, y2)))
    return Markup('<line {} class="{}"/>').format(ends, kind)


def box(
    x: float, y: float, width: float, height: float, kind: str, title: str | None = None
) -> Markup:
    """Return a rectangle, with a hover value if a title is given."""
    places = map(coordinate, (x, y, max(width, 0.0), max(height, 0.0)))
    place = Markup('x="{}" y="{}" width="{}" height="{}"').format(*places)
    inside = Markup("<title>{}</title>").format(title) if title is not None else Markup()
    return Markup('<rect {} class="{}">{}</rect>').format(place, kind, inside)


def drawing(height: int, label: str, parts: Sequence[Markup]) -> Markup:
    """Return a whole SVG; `label` is what a screen reader says of it."""
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, height, escape(label), Markup().join(parts)
    )
