import re

from hypothesis import example, given
from hypothesis import strategies as st

from crawld.core.scope import Scope, ScopeRule
from crawld.core.traps import TrapLimits, detect_trap
from crawld.core.url import MAX_URL_LENGTH, canonicalize, resolve, split_url, url_hash
from crawld.core.url_parameters import with_sorted_query
from crawld.errors import InvalidUrlError

# Texts with many characters that the rules treat: percent signs, dots, delimiters, case, scripts.
PIECES = st.sampled_from(
    [
        *("%", "%4", "%41", "%7e", "%2F", "%2e", "%c3%A9", "%25", "..", ".", "/", "//", "\\", "?"),
        *("#", "&", "=", "+", ";", ":", "@", "|", "^", "`", "{", "}", "[", "]", "'", '"', " "),
        *("\t", "\x01", "a", "B", "7e", "é", "日", "ß", "😀", "xn--", "0x7f", "~", "-", "_"),
    ]
)
ID = "0AAB6C8DE415E2E5F307CF334BFCA0C1"
# Pieces of tracking parameters and session ids, which may meet in any order.
MARKERS = st.sampled_from(
    [
        *("utm_id=4", "UTM%5Fx", "fbclid=a", "gclid", "utm_", f"sid={ID}", f"s={ID}", "sid=12"),
        *(f";jsessionid={ID}", ";sid=", ID, "(S(lit3py55t21z5v55vlm25s55))", "CFTOKEN=87654321"),
        *("cfid=1", "&", "?", ";", "/", "..", ".", "a=1", "#", "%", "%2e", "%26", "//"),
    ]
)
TAILS = (st.lists(PIECES, max_size=12) | st.lists(MARKERS, max_size=8)).map("".join)
HOSTS = st.sampled_from(
    [
        *("a.org", "A.ORG.", "127.1", "[::1]", "a_b.c.org", "u@a.org"),
        *("bücher.de", "FAẞ.de", "fa%C3%9F.de", "xn--fa-hia.de", "\u2c5f.org", "xn--a.de", "ß.1"),
    ]
)
ABSOLUTE = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    HOSTS,
    st.sampled_from(["", ":80", ":443", ":8080", ":0", ":"]),
    TAILS.map(lambda tail: "/" + tail) | TAILS,
)
ANYTHING = ABSOLUTE | TAILS | st.text(max_size=40)
BASES = st.sampled_from(
    [
        "http://a.org/",
        "https://a.org:8443/b/c?d=%7e",
        "http://[::1]/x//y",
        "http://a.org:80/%2e/z",
        "http://faß.de/b",
    ]
)


def canonical(raw, base=None):
    try:
        return canonicalize(raw, base)
    except InvalidUrlError:
        return None


@given(ANYTHING, st.none() | BASES)
@example("http://a.org/%4%31%32", None)
@example("http://a.org/%%%34%31", None)
def test_canonicalize_is_idempotent(raw, base):
    found = canonical(raw, base)
    if found is not None:
        assert canonicalize(found) == found
        assert canonicalize(found, "https://other.org/x/") == found
        assert found.isascii()
        assert found.isprintable()
        assert len(found) <= MAX_URL_LENGTH
        assert not re.search(r"[\s#^`{|}\\]", found)


@given(st.lists(MARKERS, max_size=10).map("".join))
def test_no_marker_leads_up_or_out_of_its_origin(tail):
    found = split_url(canonicalize(f"http://a.org/b/c/{tail}"))
    assert found.origin == "http://a.org"
    assert not {".", ".."} & set(found.target.partition("?")[0].split("/"))


@given(st.lists(MARKERS, max_size=10).map("".join))
def test_parameters_in_the_order_of_names_stay_canonical(query):
    url = canonicalize(f"http://a.org/b?{query}")
    in_order = with_sorted_query(url)
    assert canonicalize(in_order) == in_order == with_sorted_query(in_order)
    assert sorted(in_order.partition("?")[2].split("&")) == sorted(url.partition("?")[2].split("&"))


@given(BASES, st.lists(ANYTHING, max_size=8))
def test_resolve_equals_canonicalize(base, hrefs):
    one_by_one = [canonical(href, base) for href in hrefs]
    assert resolve(base, hrefs) == list(dict.fromkeys(u for u in one_by_one if u is not None))


@given(ABSOLUTE)
def test_the_parts_make_up_the_url(raw):
    found = canonical(raw)
    if found is not None:
        parts = split_url(found)
        assert parts.origin + parts.target == found
        assert parts.target.startswith("/")
        bracketed = f"[{parts.host}]" if ":" in parts.host else parts.host
        assert parts.origin in (
            f"{parts.scheme}://{bracketed}",
            f"{parts.scheme}://{bracketed}:{parts.port}",
        )
        assert -(1 << 63) <= url_hash(found) < 1 << 63


def octets(target):
    """Return path segments and query as a server decodes them to select a page."""
    path, mark, query = target.partition("?")
    decode = re.compile(rb"%([0-9A-Fa-f]{2})")
    return [
        decode.sub(lambda hit: bytes.fromhex(hit[1].decode()), part.encode())
        for part in (*path.split("/"), mark, *re.split(r"([&;=+])", query))
    ]


SAFE = st.lists(
    st.sampled_from(["%", "%4", "1", "%41", "%2f", "%3F", "%2B", "%26", "%25", "+", "a", "A", "|"]),
    max_size=10,
).map("".join)


@given(SAFE, SAFE)
def test_no_rule_changes_what_a_server_decodes(path, query):
    raw = f"/x{path}?y{query}"
    assert octets(split_url(canonicalize("http://a.org" + raw)).target) == octets(raw)


@given(ABSOLUTE, st.lists(PIECES, min_size=1, max_size=4).map("".join), st.integers(0, 3))
def test_scope_and_traps_accept_any_url(raw, pattern, depth):
    found = canonical(raw)
    if found is not None:
        scope = Scope(
            include=(ScopeRule("prefix", "/" + pattern), ScopeRule("glob", pattern)),
            exclude=(ScopeRule("glob", "/*" + pattern),),
            max_depth=2,
            hosts=frozenset({"a.org"}),
        )
        reasons = {None, "depth", "host", "exclude", "include"}
        assert scope.refusal(found, split_url(found).host, depth) in reasons
        names = {None, "segments", "repetition", "parameters", "calendar"}
        assert detect_trap(found, TrapLimits(), 1.8e9) in names
