"""License and authors of a copy."""

import pytest

from crawld.web.attribution import license_name, read_attribution


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
