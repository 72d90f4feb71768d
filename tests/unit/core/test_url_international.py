"""International hosts in URLs: every way to write one names the same, and no other host."""

import pytest

from crawld.core.url import canonicalize, resolve
from crawld.core.url_parse import may_name_host
from crawld.errors import InvalidUrlError

SHARP = "http://xn--fa-hia.de"


@pytest.mark.parametrize(
    ("raw", "base", "expected"),
    [
        ("http://FAẞ.de", None, f"{SHARP}/"),
        ("http://faß.de:80/ö", None, f"{SHARP}/%C3%B6"),
        ("http://FA%E1%BA%9E.de./x", None, f"{SHARP}/x"),
        ("http://u:p@faß.de:8080/", None, f"{SHARP}:8080/"),
        ("http:\\\\faß.de\\x", None, f"{SHARP}/x"),
        ("ht\ttp://fa\nß.de/", None, f"{SHARP}/"),
        ("http://\t\t/faß.de/", None, f"{SHARP}/"),
        ("http:faß.de", None, f"{SHARP}/"),
        ("//XN--FA-HIA.de/a", "http://a.org/", f"{SHARP}/a"),
        ("/\t/faß.de/a", "http://a.org/", f"{SHARP}/a"),
        ("https:faß.de", "http://a.org/", "https://xn--fa-hia.de/"),
        ("http:faß.de", "http://a.org/b/c", "http://a.org/b/fa%C3%9F.de"),
        ("b/ö", "http://faß.de/x/y", f"{SHARP}/x/b/%C3%B6"),
        ("?q", "http://faß.de/x?y", f"{SHARP}/x?q"),
        ("/xn--q", "http://a.org/", "http://a.org/xn--q"),
        ("//fass.de/", "http://faß.de/", "http://fass.de/"),
        ("//xn-fa-hia.de/", "http://faß.de/", "http://xn-fa-hia.de/"),
        ("http://０ｘ７ｆ.1/", None, "http://127.0.0.1/"),
        ("http://[::1]/ß", None, "http://[::1]/%C3%9F"),
        ("http://a.org/?u=//faß.de", None, "http://a.org/?u=//fa%C3%9F.de"),
        ("http://\u2c5f.org/", None, "http://xn--5fj.org/"),
        ("http://faß.1/", None, None),
        ("http://faß..de/", None, None),
        ("http://faß.de:99999/", None, None),
        ("http://ß%2Fa.org/", None, None),
        ("http://ß%00.org/", None, None),
        ("http://ß%40a.org/", None, None),
        ("http://%FF.org/", None, None),
        ("http://xn--a.org/", None, None),
        ("http://" + "ß" * 20_000 + "/", None, None),
    ],
    ids=range(30),
)
def test_urls(raw, base, expected):
    if expected is None:
        with pytest.raises(InvalidUrlError):
            canonicalize(raw, base)
        return
    assert canonicalize(raw, base) == expected
    assert canonicalize(expected) == expected
    assert canonicalize(expected, SHARP) == expected
    assert resolve(base or "http://a.org/", [raw] if base else [expected]) == [expected]


def test_a_base_that_old_tables_refuse_resolves_its_links():
    base = canonicalize("http://\u2c5f.org/a/b")
    assert resolve(base, ["c", "/d", "?e", "//a.org/", base, "%41"]) == [
        "http://xn--5fj.org/a/c",
        "http://xn--5fj.org/d",
        "http://xn--5fj.org/a/b?e",
        "http://a.org/",
        "http://xn--5fj.org/a/b",
        "http://xn--5fj.org/a/A",
    ]


@pytest.mark.parametrize(
    ("raw", "may"),
    [
        ("/wiki/é%C3%A9", False),
        ("http://a.org/é%C3%A9xn--", False),
        ("#a", False),
        ("//é.org/", True),
        ("/\t/é.org/", True),
        ("http:///é.org/", True),
        ("http://\t\t/é.org/a", True),
        ("http://a%41.org/", True),
        ("xn--a", True),
    ],
)
def test_only_texts_that_may_name_an_international_host_are_looked_at(raw, may):
    assert may_name_host(raw) is may
