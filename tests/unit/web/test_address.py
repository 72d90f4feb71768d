"""Paths of the web mirror."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.web.address import CURRENT, mirror_path, parse_address, parse_selector


@given(st.text(max_size=30), st.sampled_from(["", "v7", "2026-11-01T00:00", "1780000000"]))
def test_parse_address_reverses_mirror_path(path, selector):
    try:
        url = canonicalize(f"https://example.org:8080/{path}")
    except InvalidUrlError:
        return
    address = parse_address(mirror_path(url, selector))
    assert (address.url, address.selector.text, address.canonical) == (url, selector, True)


@given(st.text(max_size=60))
def test_no_target_is_an_error(target):
    for prefix in ("", "/http/", "/@", "/@v1/https/"):
        address = parse_address(prefix + target)
        assert address is None or address.url.startswith(("http://", "https://"))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1780000000", 1_780_000_000.0),
        ("2026-05-28", 1_779_926_400.0),
        ("2026-05-28T20:26:40Z", 1_780_000_000.0),
        ("2026-05-28T22:26:40+02:00", 1_780_000_000.0),
    ],
)
def test_selectors_of_a_time(text, at):
    assert parse_selector(text).at == at


@pytest.mark.parametrize("text", ["", "now", "yesterday", "2 days ago", "nan", "1e400", "v", "v-1"])
def test_invalid_selectors(text):
    assert parse_selector(text) is None


def test_a_path_without_selector_is_current():
    assert parse_address("/http/a.org/").selector is CURRENT
