"""The indexed text of a page, parsed queries, and snippets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.content.analysis import read_blocks
from crawld.core.content.search import (
    MAX_TEXT,
    SNIPPET_CHARACTERS,
    parse_query,
    searchable_text,
    separate_characters,
    snippet,
)


def test_the_text_of_a_long_block_is_cut_in_characters():
    line = b"<p>" + b"one <a href='/x'>two</a> &amp; | three " * 40_000
    assert (
        searchable_text(read_blocks(line, "text/html"))
        == ("one two & | three " * 40_000)[:MAX_TEXT]
    )


def test_searchable_text_has_no_kinds_or_targets():
    page = b"""<title>Title</title><h1>Head &amp; tail</h1><p>One <a href=x>link</a> and
        <img src=y> &lt;b&gt;<ul><li>item</ul><pre>line</pre><table><tr><td>cell</table>"""
    assert searchable_text(read_blocks(page, "text/html")).split("\n") == [
        "Head & tail",
        "One link and  <b>",
        "item",
        "line",
        "cell",
    ]


@pytest.mark.parametrize(
    ("typed", "match"),
    [
        ("", ""),
        ("  ", ""),
        ("word", '"word"'),
        ("a b", '"a" AND "b"'),
        ('"a b"', '"a b"'),
        ('"a b', '"a b"'),
        ("a.b", '"a b"'),
        ("beg*", '"beg"*'),
        ("a -b -c", '("a") NOT ("b" OR "c")'),
        ("-a", ""),
        ("title:a text:b", 'title : "a" AND text : "b"'),
        ("Title:a", 'title : "a"'),
        ("other:a", '"other a"'),
        ("a AND b OR NOT", '"a" AND "AND" AND "b" AND "OR" AND "NOT"'),
        ('a"; DROP', '"a" AND "DROP"'),
        ("数据", '"数 据"'),
    ],
)
def test_queries(typed, match):
    assert parse_query(typed).match == match


def test_a_snippet_highlights_the_words():
    text = "before " * 200 + "the needle here" + " after" * 200
    pieces = snippet(text, ["needle"])
    assert ("needle", True) in pieces
    assert pieces[0] == ("… ", False)
    assert pieces[-1] == (" …", False)
    assert snippet("haystack", ["hay"]) == [("haystack", False)]
    assert snippet("haystack, hay", ["hay*"]) == [("haystack", True), (", ", False), ("hay", True)]
    assert snippet("unhay", ["hay"]) == [("unhay", False)]
    assert snippet("大数据", ["数", "据"]) == [("大", False), ("数", True), ("据", True)]


@given(st.text(), st.lists(st.text(min_size=1), max_size=4))
def test_any_text_is_a_query(text, words):
    shown = "".join(piece for piece, _ in snippet(text, words))
    assert len(shown) <= SNIPPET_CHARACTERS + 4
    assert parse_query(text).match.count('"') % 2 == 0
    assert "".join(separate_characters(text).split()) == "".join(text.split())
