"""Lines over a number or a time, with an interval around them if there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from markupsafe import Markup

from crawld.core.units import DAY_S
from crawld.dashboard.chart import (
    BOTTOM,
    LEFT,
    MAX_POINTS,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    Scale,
    Table,
    box,
    coordinate,
    drawing,
    line,
    nice_ticks,
    text,
    time_ticks,
)
from crawld.dashboard.words import moment

HEIGHT: Final = 220


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a place of the horizontal axis; `low` and `high` are its interval."""

    x: float
    y: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A line: its name, its class (`s1`, `s2`, `s3`), and its points in the order of x."""

    name: str
    kind: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis.

    Attributes:
        name: what it counts, with its unit.
        words: a value in words.
        ticks: places and labels; empty: round numbers, or times.
        is_time: whether its values are Unix seconds.
        low, high: its ends; None: those of the values.
    """

    name: str
    words: Callable[[float], str]
    ticks: Sequence[tuple[float, str]] = field(default_factory=tuple)
    is_time: bool = False
    low: float | None = None
    high: float | None = None

    def ends(self, values: Sequence[float]) -> tuple[float, float]:
        """Return where the axis begins and ends."""
        low = min(values, default=0.0) if self.low is None else self.low
        high = max(values, default=1.0) if self.high is None else self.high
        half = DAY_S if self.is_time else 0.5
        return (low, high) if high > low else (low - half, low + half)

    def marks(self, low: float, high: float, count: int) -> Sequence[tuple[float, str]]:
        """Return the ticks from low to high."""
        if self.ticks:
            return self.ticks
        if self.is_time:
            return time_ticks(low, high)
        return [(each, self.words(each)) for each in nice_ticks(low, high, count)]


def line_chart(label: str, series: Sequence[Series], x: Axis, y: Axis) -> Chart:
    """Draw lines; a point without a value leaves a gap."""
    series = [Series(each.name, each.kind, _thinned(each.points)) for each in series]
    shown = [point for each in series for point in each.points if point.y is not None]
    values = [v for p in shown for v in (p.y, p.low, p.high) if v is not None]
    across = Scale(*x.ends([point.x for point in shown]), LEFT, WIDTH - RIGHT)
    up = Scale(*y.ends(values), HEIGHT - BOTTOM, TOP)
    parts = [*_grid(x, y, across, up)]
    for each in series:
        parts += _band(each, across, up)
    for each in series:
        parts += _path(each, across, up)
    parts += _hovers(series, x, y, across)
    return Chart(
        drawing(HEIGHT, label, parts),
        _table(series, x, y),
        [(each.kind, each.name) for each in series],
    )


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    step = -(-len(points) // MAX_POINTS)
    return points if step <= 1 else points[::step]


def _grid(x: Axis, y: Axis, across: Scale, up: Scale) -> list[Markup]:
    parts = []
    for value, words in y.marks(up.low, up.high, 4):
        at = up(value)
        parts += [line(LEFT, at, WIDTH - RIGHT, at, "grid")]
        parts += [text(LEFT - 8, at + 4, words, anchor="end")]
    for value, words in x.marks(across.low, across.high, 6):
        at = across(value)
        parts += [line(at, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 4, "tick")]
        anchor = "end" if at > WIDTH - 40 else "middle"
        parts += [text(at, HEIGHT - 10, words, anchor=anchor)]
    return [*parts, line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis")]


def _band(series: Series, across: Scale, up: Scale) -> list[Markup]:
    known = [p for p in series.points if p.low is not None and p.high is not None]
    if len(known) < 2:
        return [
            box(
                across(p.x) - 2,
                up(p.high or 0.0),
                4,
                up(p.low or 0.0) - up(p.high or 0.0),
                f"band {series.kind}",
            )
            for p in known
        ]
    top = [f"{coordinate(across(p.x))},{coordinate(up(p.high or 0.0))}" for p in known]
    low = [f"{coordinate(across(p.x))},{coordinate(up(p.low or 0.0))}" for p in reversed(known)]
    shape = Markup('<polygon points="{}" class="band {}"/>')
    return [shape.format(" ".join([*top, *low]), series.kind)]


def _path(series: Series, across: Scale, up: Scale) -> list[Markup]:
    runs: list[list[str]] = [[]]
    for point in series.points:
        if point.y is None:
            runs.append([])
        else:
            runs[-1].append(f"{coordinate(across(point.x))},{coordinate(up(point.y))}")
    parts = []
    for run in runs:
        if len(run) > 1:
            path = Markup('<polyline points="{}" class="line {}"/>')
            parts.append(path.format(" ".join(run), series.kind))
    few = len(series.points) <= 40
    for point in series.points:
        if point.y is not None and (few or len(series.points) == 1):
            dot = Markup('<circle cx="{}" cy="{}" r="3" class="dot {}"/>')
            place = coordinate(across(point.x)), coordinate(up(point.y))
            parts.append(dot.format(*place, series.kind))
    return parts


def _hovers(series: Sequence[Series], x: Axis, y: Axis, across: Scale) -> list[Markup]:
    """Return one strip for each place of the horizontal axis, with the values of all lines."""
    at_place: dict[float, list[str]] = {}
    for each in series:
        for point in each.points:
            if point.y is not None:
                words = y.words(point.y)
                if point.low is not None and point.high is not None:
                    words += f" ({y.words(point.low)} to {y.words(point.high)})"
                at_place.setdefault(point.x, []).append(f"{each.name}: {words}")
    places = sorted(at_place)
    parts = []
    for number, place in enumerate(places):
        before = across(places[number - 1]) if number else LEFT
        after = across(places[number + 1]) if number + 1 < len(places) else WIDTH - RIGHT
        middle = across(place)
        start, end = (before + middle) / 2, (after + middle) / 2
        words = "\n".join([x.words(place), *at_place[place]])
        parts.append(box(start, TOP, end - start, HEIGHT - TOP - BOTTOM, "hover", words))
    return parts


def _table(series: Sequence[Series], x: Axis, y: Axis) -> Table:
    by_place: dict[float, dict[str, str]] = {}
    for each in series:
        for point in each.points:
            words = "" if point.y is None else y.words(point.y)
            if words and point.low is not None and point.high is not None:
                words += f" ({y.words(point.low)} to {y.words(point.high)})"
            by_place.setdefault(point.x, {})[each.name] = words
    names = [each.name for each in series]
    rows = [
        [x.words(place), *(cells.get(name, "") for name in names)]
        for place, cells in sorted(by_place.items())
    ]
    return Table([x.name, *names], rows)


def time_axis(
    name: str = "Time (UTC)", low: float | None = None, high: float | None = None
) -> Axis:
    """Return an axis of times."""
    return Axis(name, moment, is_time=True, low=low, high=high)
