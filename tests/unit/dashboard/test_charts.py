"""Charts are right for any values: none, one, thousands, from any century, and hostile names."""

import math
import re

import pytest

from crawld.dashboard.chart import MAX_POINTS, Scale, nice_ticks, time_ticks
from crawld.dashboard.line_chart import Axis, Point, Series, line_chart, time_axis
from crawld.dashboard.strip import Slice, TimeMark, columns, sparkline, stacked_bar, strip
from crawld.dashboard.words import ago, interval, moment, number, rate, share, stamp

HOSTILE = "<script>alert(1)</script>\"'&\u202e"
CENTURIES = (-6e10, 0.0, 1_800_000_000.0, 7e9, 2.5e11, 1e18)
"""1968 before Christ, 1970, 2027, 2191, 9892, and no year at all."""


def numbers(svg):
    return [float(each) for each in re.findall(r' (?:x|y|cx|cy|width|height)="([^"]+)"', svg)]


def points(*values):
    return [Point(float(place), value) for place, value in enumerate(values)]


@pytest.mark.parametrize("values", [(), (1.0,), (0.5, 0.5), (0.0, 1.0, None, 0.25), (None,)])
def test_a_line_has_a_mark_and_a_row_for_each_value(values):
    made = line_chart(
        "Freshness", [Series("fresh", "s1", points(*values))], Axis("x", number), Axis("y", share)
    )
    known = [value for value in values if value is not None]
    assert made.svg.count("<title>") == made.svg.count("<circle") == len(known)
    assert len(made.table.rows) == len(values)
    assert all(math.isfinite(each) for each in numbers(made.svg))


def test_an_interval_is_drawn_and_told():
    inside = [Point(0.0, 0.9, 0.8, 0.95), Point(1.0, 0.92, 0.85, 0.97)]
    made = line_chart("F", [Series("fresh", "s1", inside)], Axis("x", number), Axis("y", share))
    assert "<polygon" in made.svg
    assert "80.0\u00a0% to 95.0\u00a0%" in made.table.rows[0][1]


def test_thousands_of_points_stay_few():
    many = [Point(float(place), 0.5) for place in range(10_000)]
    made = line_chart("F", [Series("f", "s1", many)], Axis("x", number), Axis("y", share))
    assert len(made.table.rows) <= MAX_POINTS
    marks = [TimeMark(float(at), float(at), "same", "unchanged", "") for at in range(10_000)]
    assert strip("V", marks, 0.0, 1e4, {}).svg.count("<title>") == MAX_POINTS


@pytest.mark.parametrize("at", CENTURIES)
def test_a_clock_in_another_century_is_drawn(at):
    marks = [TimeMark(at, at + 2.0, "same", "unchanged", "fine")]
    made = strip("Visits", marks, at - 100.0, at + 100.0, {})
    assert all(math.isfinite(each) for each in numbers(made.svg))
    days = [Point(at + 86_400.0 * day, 0.5) for day in range(3)]
    line_chart("F", [Series("f", "s1", days)], time_axis(), Axis("y", share))
    assert len(time_ticks(at, at + 1e6)) <= 21
    assert moment(at)
    assert isinstance(stamp(at), str)
    assert ago(at, 1_800_000_000.0)


def test_hostile_names_are_escaped():
    mark = TimeMark(0.0, 1.0, "same", HOSTILE, HOSTILE)
    drawn = [
        strip(HOSTILE, [mark], 0.0, 2.0, {}).svg,
        stacked_bar(HOSTILE, [Slice("same", HOSTILE, 2.0)]).svg,
        columns(HOSTILE, [(HOSTILE, 1.0)], HOSTILE).svg,
        line_chart(
            HOSTILE, [Series(HOSTILE, "s1", points(1.0))], Axis(HOSTILE, number), Axis("y", share)
        ).svg,
        sparkline(HOSTILE, [(0.0, 1.0)], 0.0, 2.0),
    ]
    for svg in drawn:
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg
        assert not re.search(r"<[^>]*style=", svg)


def test_a_bar_divides_its_width_and_tells_nothing_of_nothing():
    made = stacked_bar("Pages", [Slice("a", "one", 30.0), Slice("b", "two", 10.0)])
    widths = re.findall(r'width="([^"]+)" height="26" class="[ab]"', made.svg)
    assert widths == ["540", "180"]
    assert [row[2].replace("\u00a0", " ") for row in made.table.rows] == ["75.0 %", "25.0 %"]
    assert stacked_bar("Pages", [Slice("a", "one", 0.0)]).table.rows == [["one", "0", "0\u00a0%"]]


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-5.0, 5.0), (0.0, 1e12), (3.0, 3.0)])
def test_ticks_are_round_and_inside(ends):
    low, high = ends
    ticks = nice_ticks(low, high)
    assert 1 <= len(ticks) <= 21
    assert all(low <= each <= high + 1e-6 * abs(high) for each in ticks)


def test_a_scale_keeps_to_its_ends():
    scale = Scale(0.0, 10.0, 100.0, 200.0)
    assert [scale(each) for each in (-5.0, 0.0, 5.0, 50.0)] == [100.0, 100.0, 150.0, 200.0]


def test_words_of_what_is_not_known():
    assert share(None) == number(None) == rate(None) == share(math.nan) == "–"
    assert rate(math.inf) == number(math.inf) == "–"
    assert interval(0.0, 1.0).replace("\u00a0", " ") == "0 – 100 %"
