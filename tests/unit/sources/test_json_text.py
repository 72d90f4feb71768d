"""JSON of servers: what cannot be stored or sent is replaced, and the size is limited."""

import json

import pytest

from crawld.sources.json_text import MAX_VALUES, read_json


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("9" * 4_000, None),
        ("1e999", None),
        ("-1e999", None),
        ("1." + "1" * 5_000, None),
        ("NaN", None),
        ("-Infinity", None),
        ("1.5", 1.5),
        ('"\\ud800"', "?"),
        ('"\\ud834\\udd1e"', "\U0001d11e"),
        ('"\\\\ud800"', "\\ud800"),
        ("null", None),
        ("[[], {}, true]", [[], {}, True]),
    ],
)
def test_values_can_be_stored(written, value):
    assert read_json(written.encode()) == value
    assert read_json(b'{"a": %s}' % written.encode()) == {"a": value}


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"\xff\xfe{}", b"9" * 5_000, b"[" * 100_000, b'{"a":' * 100_000),
        *(b'"\\ud800"' + b"[" * 100_000, b"{}x", b"nan"),
    ],
)
def test_other_documents_are_refused(body):
    with pytest.raises(ValueError, match=r"values|deeply|digits|Expecting|Extra|char"):
        read_json(body)


def test_documents_of_many_values_are_refused():
    members = b",".join(b'"%d":{}' % number for number in range(MAX_VALUES // 2))
    for body in (b"[" + b"[]," * MAX_VALUES + b"[]]", b"{" + members + b"}"):
        with pytest.raises(ValueError, match="values"):
            read_json(body)


def test_a_long_text_is_read():
    text = "x" * 8_000_000
    assert read_json(json.dumps([text]).encode()) == [text]
