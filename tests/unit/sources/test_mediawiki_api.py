import json
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.politeness import MAX_BACKOFF_DELAY_S
from crawld.sources.mediawiki_api import (
    LAG_PAUSE_S,
    MAX_PAUSE_S,
    MAX_QUERY_LENGTH,
    MAX_WARNINGS,
    TOLD_PAUSE_S,
    ApiResponse,
    ApiTrouble,
    TroubleKind,
    batch,
    query_url,
    read_response,
)
from crawld.sources.mediawiki_changes import ChangesCursor, read_changes
from crawld.sources.mediawiki_history import read_history, read_log, read_titles

NOW = 1_780_000_000.0
HTML = b"<!DOCTYPE html><title>Maintenance</title>"


def read(body, status=200, retry_after=None, location=None):
    given_body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_response(status, retry_after, given_body, now=NOW, location=location)


def error(code, **more):
    return {"error": {"code": code, "info": f"about {code}", **more}}


def test_a_request_has_the_parameters_of_the_etiquette():
    url = query_url("https://w.test/w/api.php", {"titles": "A|B&c"}, maxlag_s=5)
    assert url.startswith("https://w.test/w/api.php?")
    assert dict(parse_qsl(urlsplit(url).query, keep_blank_values=True)) == {
        "format": "json",
        "formatversion": "2",
        "maxlag": "5",
        "continue": "",
        "action": "query",
        "titles": "A|B&c",
    }


def test_a_cursor_is_sent_back_unchanged():
    cursor = {"rvcontinue": "20231228002041|4", "continue": "||info", "odd": 7}
    answer = read({"continue": cursor, "query": {"pages": []}})
    assert answer.cursor == cursor
    query = dict(parse_qsl(urlsplit(query_url("http://w/api.php", cursor, maxlag_s=5)).query))
    assert query["continue"] == "||info"
    assert query["rvcontinue"] == "20231228002041|4"


@pytest.mark.parametrize(
    ("warnings", "texts"),
    [
        ({"query": {"warnings": "old"}}, ("query: old",)),
        ({"query": {"*": "old"}, "main": {"*": "x"}}, ("query: old", "main: x")),
        ([{"code": "a", "text": "new", "module": "main"}], (": new",)),
        ("nonsense", ()),
        ({"query": "plain"}, ("query: plain",)),
    ],
)
def test_warnings_of_every_form(warnings, texts):
    assert read({"batchcomplete": True, "warnings": warnings}) == ApiResponse({}, None, texts)


@pytest.mark.parametrize(
    ("body", "status", "trouble"),
    [
        (error("maxlag", lag=7), 200, TroubleKind.LAGGED),
        (error("readonly"), 200, TroubleKind.READ_ONLY),
        (error("ratelimited"), 200, TroubleKind.RATE_LIMITED),
        (error("ratelimited"), 429, TroubleKind.RATE_LIMITED),
        (error("readapidenied"), 200, TroubleKind.CLOSED),
        (error("permissiondenied"), 403, TroubleKind.CLOSED),
        (error("toomanyvalues", limit=10), 200, TroubleKind.TOO_MANY),
        (error("badcontinue"), 200, TroubleKind.BAD_CURSOR),
        (error("apiservererror"), 200, TroubleKind.BROKEN),
        (error("internal_api_error_DBQueryError"), 500, TroubleKind.BROKEN),
        ({"error": "text"}, 200, TroubleKind.BROKEN),
        ({"errors": [{"code": "maxlag", "text": "x"}]}, 200, TroubleKind.LAGGED),
        (HTML, 200, TroubleKind.NOT_JSON),
        (b"", 200, TroubleKind.NOT_JSON),
        (b"[]", 200, TroubleKind.NOT_JSON),
        (b"{", 200, TroubleKind.NOT_JSON),
        (b'{"a": ' + b"[" * 100_000, 200, TroubleKind.NOT_JSON),
        (b'{"query": ' + b"9" * 10_000 + b"}", 200, TroubleKind.NOT_JSON),
        (b"{\xff\xfe}", 200, TroubleKind.NOT_JSON),
        ({"some": "json"}, 200, TroubleKind.NOT_JSON),
        (HTML, 429, TroubleKind.RATE_LIMITED),
        (HTML, 500, TroubleKind.UNAVAILABLE),
        (HTML, 503, TroubleKind.UNAVAILABLE),
        (HTML, 401, TroubleKind.CLOSED),
        (HTML, 404, TroubleKind.CLOSED),
        (HTML, 410, TroubleKind.CLOSED),
        (HTML, 414, TroubleKind.TOO_MANY),
        (b"", 301, TroubleKind.MOVED),
    ],
)
def test_each_failure_gives_its_kind_of_trouble(body, status, trouble):
    answer = read(body, status, location="https://w.test/w/api.php")
    assert isinstance(answer, ApiTrouble)
    assert answer.trouble is trouble


def test_a_long_continue_object_is_not_sent_back():
    answer = read({"query": {}, "continue": {"rvcontinue": "x" * 100_000}})
    assert isinstance(answer, ApiTrouble)
    assert answer.trouble is TroubleKind.BROKEN


def test_the_number_of_warnings_is_limited():
    many = {f"module{number}": "text" for number in range(10_000)}
    assert len(read({"query": {}, "warnings": many}).warnings) == MAX_WARNINGS


@pytest.mark.parametrize(
    "query",
    [
        b"5",
        b"[[1, 2]]",
        b'{"pages": 7, "normalized": {"a": 1}}',
        b'{"pages": [{"title": 5, "pageid": 1e999, "revisions": {"a": 7}}]}',
        b'{"pages": [{"title": "a", "pageid": %s}]}' % (b"9" * 4_000),
        b'{"logevents": [{"logid": 99999999999999999999, "params": [], "timestamp": {}}]}',
        b'{"recentchanges": [{"rcid": true, "timestamp": "9999-99-99"}, [], null, "a"]}',
    ],
)
def test_values_of_wrong_types_are_missing(query):
    answer = read(b'{"query": %s, "curtimestamp": [], "batchcomplete": 9}' % query)
    assert isinstance(answer, ApiResponse)
    assert answer.served_at is None
    read_titles(answer, ["a"])
    read_history(answer)
    read_log(answer)
    read_changes(answer, ChangesCursor(), 1.0)


@pytest.mark.parametrize("half", [rb"\ud800", b"\xed\xa0\x80", rb"\uDFFF", rb"\ud800\ud800"])
def test_lone_surrogates_are_replaced(half):
    body = b'{"query": {"title": "a%s"}, "continue": {"rvcontinue": "%s"}}' % (half, half)
    answer = read(body)
    # The result can be stored and sent.
    assert answer.query["title"].encode().startswith(b"a")
    assert query_url("https://w.test/w/api.php", answer.cursor, maxlag_s=5.0)


def test_surrogate_pairs_are_characters():
    assert read(rb'{"query": {"title": "\ud83d\ude00"}}').query["title"] == "\U0001f600"


@pytest.mark.parametrize("place", ["code", "info", "text"])
def test_a_deeply_nested_error_is_broken(place):
    nested = b"[" * 900 + b"]" * 900
    answer = read(b'{"error": {"code": "x", "%s": %s}}' % (place.encode(), nested))
    assert isinstance(answer, ApiTrouble)


def test_the_limit_in_an_error_is_read():
    assert read(error("toomanyvalues", limit=20)).limit == 20
    assert read(error("toomanyvalues", data={"limit": 10, "lowlimit": 10})).limit == 10
    assert read(error("toomanyvalues", limit=0)).limit is None


def test_pauses_double_and_are_at_least_retry_after():
    lagged = read(error("maxlag"), retry_after="30")
    assert [lagged.pause_s(count) for count in (1, 2, 3, 4, 5)] == [30, 30, 30, 40, 60]
    closed = read(error("readapidenied"))
    assert [closed.pause_s(count) for count in (1, 2, 3)] == [3_600, 7_200, 14_400]
    assert closed.pause_s(10_000) == MAX_PAUSE_S
    assert lagged.pause_s(20) == LAG_PAUSE_S
    overloaded = read(HTML, 503, retry_after="3")
    assert [overloaded.pause_s(count) for count in (1, 5, 50)] == [TOLD_PAUSE_S] * 3
    assert read(HTML, 503).pause_s(2) == 120.0
    assert read(HTML, 503).pause_s(50) == MAX_BACKOFF_DELAY_S
    assert read(HTML, 503, retry_after="172800").pause_s(1) == 172_800


def test_host_troubles():
    assert read(HTML, 503).is_host_trouble
    assert read(HTML, 429).is_host_trouble
    assert not read(error("maxlag")).is_host_trouble
    assert not read(HTML).is_host_trouble


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode), st.integers(100, 599))
def test_no_response_raises(body, status):
    assert isinstance(read(body, status), ApiResponse | ApiTrouble)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


_KEYS = st.sampled_from(["query", "error", "errors", "warnings", "continue", "batchcomplete"])


@given(st.dictionaries(_KEYS, _JSON))
def test_no_json_raises(said):
    assert isinstance(read(said), ApiResponse | ApiTrouble)


def test_a_batch_fits_the_request_line():
    long = ["é" * 127 for _ in range(50)]
    taken = batch(long, 50)
    assert 0 < len(taken) < 50
    assert len(query_url("", {"titles": "|".join(taken)}, maxlag_s=5)) < MAX_QUERY_LENGTH + 100
    assert batch(["a", "b", "c"], 2) == ["a", "b"]
    assert batch(["x" * 10_000, "b"], 50) == ["x" * 10_000]
    assert batch(["a"], 0) == ["a"]
