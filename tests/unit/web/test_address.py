"""Paths of the web mirror, charset labels and attribution."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.web.address import CURRENT, mirror_path, parse_address, parse_selector
from crawld.web.attribution import license_name, read_attribution
from crawld.web.mirror import charset_label
from crawld.web.reply import header


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


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://creativecommons.org/licenses/by-sa/4.0/", "CC BY-SA 4.0"),
        ("http://creativecommons.org/licenses/by-nc/2.5/deed.de", "CC BY-NC 2.5"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0"),
        ("https://www.gnu.org/copyleft/fdl.html", "www.gnu.org"),
    ],
)
def test_license_names(url, name):
    assert license_name(url) == name


def test_a_page_without_attribution():
    found = read_attribution("https://a.org/", "<p>copyright 2026", None)
    assert found == type(found)()


def test_a_relative_license_url_is_resolved():
    found = read_attribution("https://a.org/b", "<link rel='license' href=/l>", 5)
    assert (found.license, found.license_url, found.revision_id) == ("a.org", "https://a.org/l", 5)


def test_a_header_is_one_line():
    assert header("x", "a\r\nb: c") == (b"x", b"a  b: c")


def test_charset_labels_of_browsers():
    labels = [
        charset_label(codec) for codec in ("cp1252", "iso8859-15", "koi8-r", "euc_jp", "cp932")
    ]
    assert labels == ["windows-1252", "iso-8859-15", "koi8-r", "euc-jp", "shift_jis"]
