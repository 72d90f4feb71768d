"""Sizes, durations and times as people read them."""

import math

import pytest

from crawld.core import display


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10_000, "9.8 KiB"),
        (102_400, "100 KiB"),
        (1_048_575, "1.0 MiB"),
        (5 * 2**30, "5.0 GiB"),
        (2**60, "1024.0 PiB"),
    ],
)
def test_size(size_bytes, text):
    assert display.size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.0, "0 ms"),
        (-1.0, "0 ms"),
        (0.25, "250 ms"),
        (0.9999, "1.0 s"),
        (1.0, "1.0 s"),
        (15.0, "15 s"),
        (59.96, "1 min 00 s"),
        (61.0, "1 min 01 s"),
        (3599.0, "59 min"),
        (3600.0, "1 h 00 min"),
        (86_399.0, "23 h 59 min"),
        (90_000.0, "1 d 1 h"),
        (86_400.0 * 400, "400 d"),
        (math.inf, "forever"),
    ],
)
def test_duration(seconds, text):
    assert display.duration_text(seconds) == text


def test_ago():
    assert display.ago_text(None, 100.0) == "never"
    assert display.ago_text(90.0, 100.0) == "10 s ago"
    assert display.ago_text(101.0, 100.0) == "0 ms ago"
