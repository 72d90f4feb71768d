import json
from pathlib import Path

import pytest

from crawld.core import url
from crawld.core.url import (
    Url,
    canonicalize,
    canonicalize_given,
    registrable_domain,
    resolve,
    split_url,
    url_hash,
)
from crawld.core.url_parameters import without_markers
from crawld.errors import InvalidUrlError
from tests.unit.steps import assert_linear

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "url_vectors.json").read_text())
LONG = "http://a.org/" + "x" * (url.MAX_URL_LENGTH - len("http://a.org/"))


def check(raw, base, expected):
    if expected is None:
        with pytest.raises(InvalidUrlError):
            canonicalize(raw, base)
    else:
        found = canonicalize(raw, base)
        assert found == expected
        assert canonicalize(found) == found
    home = "http://b.org/" if base is None else base
    # `resolve` must agree; without a base only absolute links can be compared.
    if base is not None or expected is not None:
        assert resolve(home, [raw]) == ([] if expected is None else [expected])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['rule']}-{ascii(v['raw'])[:40]}")
def test_vectors(vector):
    check(vector["raw"], vector.get("base"), vector["canonical"])


def test_every_rule_has_a_vector():
    assert {vector["rule"] for vector in VECTORS} == set(range(15)) - {12}  # see `test_length`


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (LONG, LONG),
        (LONG + "x", None),
        (LONG + "#" + "x" * 1_000, LONG),
        ("http://a.org/" + "é" * 1_400, None),  # each é becomes six characters
        ("http://a.org/#" + "x" * url.MAX_RAW_LENGTH, None),
        ("http://" + ".".join(["a" * 62] * 4) + "/", "http://" + ".".join(["a" * 62] * 4) + "/"),
        ("http://" + ".".join(["a" * 63] * 4) + "/", None),
    ],
    ids=range(7),
)
def test_length(raw, expected):
    check(raw, None, expected)


def test_an_error_quotes_the_text_and_gives_a_hint():
    with pytest.raises(InvalidUrlError, match=r"'ftp://a\.org/' has the scheme 'ftp:'") as caught:
        canonicalize("ftp://a.org/")
    assert "https://example.org/page" in caught.value.hint


@pytest.mark.parametrize("base", ["", "a.org", "mailto:a@b.org", "\ud800", "http://a..org/"])
def test_a_bad_base_is_refused(base):
    with pytest.raises(InvalidUrlError):
        resolve(base, ["x"])


def test_resolve_keeps_order_and_drops_repeats():
    links = ["b", "/a?", "#top", "mailto:a@b.org", "./b", "http://A.org/a", "c%7e", "http://[", "b"]
    assert resolve("http://a.org/x/y?z", links) == [
        "http://a.org/x/b",
        "http://a.org/a",
        "http://a.org/x/y?z",
        "http://a.org/x/c~",
    ]


def test_resolve_compares_origins_not_prefixes():
    links = ["http://a.org:80/", "http://a.org:8080/", "http://a.org.evil.org/", "//a.org@b.org/"]
    assert resolve("http://a.org/", links) == [
        "http://a.org/",
        "http://a.org:8080/",
        "http://a.org.evil.org/",
        "http://b.org/",
    ]


@pytest.mark.parametrize(
    ("origin", "target", "expected"),
    [
        ("https://a.org:8443", "/p/q?r=1", ("https", "a.org", 8443)),
        ("http://a.org", "/", ("http", "a.org", 80)),
        ("https://a.org", "/?x=http://b.org:1/", ("https", "a.org", 443)),
        ("http://[2001:db8::1]:81", "/x", ("http", "2001:db8::1", 81)),
        ("https://[::1]", "/", ("https", "::1", 443)),
    ],
)
def test_parse(origin, target, expected):
    assert split_url(origin + target) == Url(origin + target, *expected, origin, target)


def test_url_hash_is_the_published_function_and_fits_sqlite():
    # XXH3 64 of the empty input, seed 0, from the reference implementation's test vectors.
    assert url_hash("") == 0x2D06800538D394C2
    hashes = {url_hash(f"http://a.org/{n}") for n in range(2_000)}
    assert len(hashes) == 2_000
    assert min(hashes) < 0 < max(hashes)
    assert all(-(1 << 63) <= value < 1 << 63 for value in hashes)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("en.wikipedia.org", "wikipedia.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("alice.github.io", "alice.github.io"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("wiki.test", "wiki.test"),
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_registrable_domain(host, domain):
    assert registrable_domain(host) == domain


@pytest.mark.parametrize(
    "raw",
    [
        *("https://u:pw@a.org/", "https://u@a.org/", "https://:pw@a.org/", "https:u:pw@a.org"),
        *("https:\\\\u:pw@a.org/", "http://u:" + "pw" * 60 + "@a.org/", "https://u:p/pw@a.org/"),
        *("https://u:pw@a b.org/", "//u:pw@a.org/", "ftp://u:pw@a.org/"),
    ],
)
def test_a_given_url_with_a_password_is_refused_without_showing_it(raw):
    with pytest.raises(InvalidUrlError) as caught:
        canonicalize_given(raw)
    assert "pw" not in str(caught.value)


def test_the_url_of_a_service_keeps_its_parameters():
    hook = "https://a.org/hook?utm_id=1&sid=0b2c7d1e9f3a4c5d"
    assert canonicalize_given(hook, of_page=False) == hook
    assert canonicalize_given(hook) == "https://a.org/hook"


@pytest.mark.parametrize("raw", ["https://a.org/@user:pw", "http://a.org/?to=u:pw@b.org"])
def test_a_given_url_may_have_an_at_sign_after_its_host(raw):
    assert canonicalize_given(raw) == canonicalize(raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\x00http://a.org/\x00\x1f", "http://a.org/"),
        ("http://a.org/\x00b?\x00c", "http://a.org/%00b?%00c"),
        ("http://a\x00.org/", None),
        ("http://a.org/%zz%e9%ff%", "http://a.org/%zz%E9%FF%"),
        ("http://a.org/\udcff", None),
        ("http://a.org/\xff", "http://a.org/%C3%BF"),
        ("http://a%ff.org/", None),
        ("http://u:p@a.org:80@b.org/", "http://b.org/"),
        ("http://a.org:65535/", "http://a.org:65535/"),
        ("http://a.org:65536/", None),
        ("http://a.org:-1/", None),
        ("http://a.org:/", "http://a.org/"),
        ("http:\\\\a.org\\b\\..\\c?d\\e", "http://a.org/c?d%5Ce"),
        ("http://a.org/?" + "utm_id=4&b&" * 999 + "c", "http://a.org/?" + "b&" * 999 + "c"),
    ],
    ids=range(14),
)
def test_hostile_texts(raw, expected):
    check(raw, None, expected)


@pytest.mark.parametrize(("start", "repeated"), [("/", "x"), ("/?", "&")])
def test_a_long_text_is_refused(start, repeated):
    check("http://a.org" + start + repeated * 1_000_000, None, None)


def test_the_work_for_a_text_grows_with_its_length():
    def target(n):
        return "/" + f";jsessionid={'a' * 40}1" * n + "/x?" + "utm_id=4&sid=&" * n

    assert_linear(target, without_markers, size=100)
