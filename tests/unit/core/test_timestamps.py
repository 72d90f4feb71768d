import pytest

from crawld.core.timestamps import parse_timestamp
from crawld.errors import OperatorError

NOW = 1_780_000_000.0
DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1780000000", NOW),
        ("1779999999.5", NOW - 0.5),
        ("now", NOW),
        ("yesterday", NOW - DAY_S),
        ("2 days ago", NOW - 2 * DAY_S),
        ("2d", NOW - 2 * DAY_S),
        ("1 hour ago", NOW - 3600),
        ("1.5h", NOW - 5400),
        ("90 s ago", NOW - 90),
        ("5 mins", NOW - 300),
        ("1 month ago", NOW - 30 * DAY_S),
        ("2 Years Ago", NOW - 730 * DAY_S),
        ("2026-05-28", 1_779_926_400.0),
        ("2026-05-28T20:26:40", NOW),
        ("2026-05-28T20:26:40Z", NOW),
        ("2026-05-28 22:26:40+02:00", NOW),
        ("20260528", 20_260_528.0),
    ],
)
def test_times_as_people_write_them(text, expected):
    assert parse_timestamp(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    ["", "soon", "nan", "inf", "2 moons ago", "2026-13-01", "-", "ago", "0001-01-01T00:00+14:00x"],
)
def test_an_invalid_time_is_refused_with_the_valid_forms(text):
    with pytest.raises(OperatorError, match="is not a time") as caught:
        parse_timestamp(text, NOW)
    assert "2 days ago" in caught.value.hint
