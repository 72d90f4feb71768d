"""Events along a line of time: the requests of a host, the visits of a page; and stacked shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from crawld.dashboard.chart import (
    LEFT,
    MAX_POINTS,
    RIGHT,
    WIDTH,
    Chart,
    Scale,
    Table,
    box,
    drawing,
    line,
    text,
    time_ticks,
)
from crawld.dashboard.words import moment, number, share

STRIP_HEIGHT: Final = 54
_ROW_TOP, _ROW_HEIGHT = 4, 24
_SIDE: Final = 1
LEAST_WIDTH: Final = 2.0
BAR_HEIGHT: Final = 26


@dataclass(frozen=True, slots=True)
class TimeMark:
    """An event from `at` to `until` (Unix seconds), its class, name and hover text."""

    at: float
    until: float
    kind: str
    name: str
    words: str


def strip(
    label: str, marks: Sequence[TimeMark], low: float, high: float, names: Mapping[str, str]
) -> Chart:
    """Draw events over the time from low to high; `names` are those of the classes."""
    kept = marks[-MAX_POINTS:]
    across = Scale(low, high, _SIDE, WIDTH - _SIDE)
    bottom = _ROW_TOP + _ROW_HEIGHT
    parts = [box(_SIDE, _ROW_TOP, WIDTH - 2 * _SIDE, _ROW_HEIGHT, "lane")]
    for mark in kept:
        start = across(mark.at)
        width = max(across(mark.until) - start, LEAST_WIDTH)
        parts.append(box(start, _ROW_TOP, width, _ROW_HEIGHT, mark.kind, mark.words))
    for at, words in time_ticks(low, high):
        place = across(at)
        parts += [line(place, bottom, place, bottom + 4, "tick")]
        anchor = "end" if place > WIDTH - 40 else "start" if place < 40 else "middle"
        parts += [text(place, bottom + 17, words, anchor=anchor)]
    rows = [[moment(mark.at), mark.name, mark.words.replace("\n", "; ")] for mark in reversed(kept)]
    legend = {mark.kind: names.get(mark.kind, mark.name) for mark in kept}
    return Chart(
        drawing(STRIP_HEIGHT, label, parts),
        Table(["Time (UTC)", "What", "Details"], rows),
        list(legend.items()),
    )


@dataclass(frozen=True, slots=True)
class Slice:
    """One part of a whole: its class, name and count."""

    kind: str
    name: str
    count: float


def stacked_bar(label: str, slices: Sequence[Slice]) -> Chart:
    """Draw the parts of a whole as one bar."""
    total = sum(each.count for each in slices)
    parts: list[Markup] = [box(0, 0, WIDTH, BAR_HEIGHT, "lane")]
    start = 0.0
    rows = []
    for each in slices:
        part = each.count / total if total else 0.0
        words = f"{each.name}: {number(each.count)} ({share(part)})"
        if each.count:
            parts.append(box(start, 0, part * WIDTH, BAR_HEIGHT, each.kind, words))
        start += part * WIDTH
        rows.append([each.name, number(each.count), share(part)])
    return Chart(
        drawing(BAR_HEIGHT, label, parts),
        Table(["Part", "Number", "Share"], rows),
        [(each.kind, f"{each.name} {number(each.count)}") for each in slices],
    )


def columns(label: str, counts: Sequence[tuple[str, float]], unit: str, height: int = 110) -> Chart:
    """Draw counts side by side, the newest last; each has a name for its hover text."""
    most = max((count for _, count in counts), default=0.0)
    up = Scale(0.0, most or 1.0, height - 24, 14)
    width = (WIDTH - LEFT - RIGHT) / max(len(counts), 1)
    parts = [
        line(LEFT, up(0.0), WIDTH - RIGHT, up(0.0), "axis"),
        text(LEFT - 8, up(0.0) + 3, "0", anchor="end"),
    ]
    if most:
        parts += [
            line(LEFT, up(most), WIDTH - RIGHT, up(most), "grid"),
            text(LEFT - 8, up(most) + 5, number(most), anchor="end"),
        ]
    for place, (name, count) in enumerate(counts):
        start = LEFT + place * width
        words = f"{name}: {number(count)} {unit}"
        parts.append(box(start, up(count), width - 1, up(0.0) - up(count), "s1 column"))
        parts.append(box(start, 14, width, up(0.0) - 14, "hover", words))
    if counts:
        parts += [
            text(LEFT, height - 6, counts[0][0], anchor="start"),
            text(WIDTH - RIGHT, height - 6, counts[-1][0], anchor="end"),
        ]
    rows = [[name, number(count)] for name, count in reversed(counts)]
    return Chart(drawing(height, label, parts), Table(["When", unit], rows))


def sparkline(
    label: str, spans: Sequence[tuple[float, float]], low: float, high: float, width: int = 160
) -> Markup:
    """Draw events from low to high as a line of a table; each goes from a time to a time."""
    across = Scale(low, high, 0.0, float(width))
    parts = [box(0, 2, width, 12, "lane")]
    for began_at, ended_at in spans:
        if ended_at >= low:
            start = across(began_at)
            parts.append(box(start, 2, max(across(ended_at) - start, 1.5), 12, "s1 column"))
    words = f"{label}: {len(spans)}"
    return Markup(
        '<svg class="spark" viewBox="0 0 {} 16" role="img" aria-label="{}">{}</svg>'
    ).format(width, words, Markup().join(parts))
