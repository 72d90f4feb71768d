"""Blocks of JSON documents and feeds: what people read, whatever the order and the dates."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.content.analysis import analyse, read_blocks
from crawld.core.content.blocks import MAX_BLOCKS
from crawld.core.content.documents import PDF_TEXT, document_blocks, is_readable
from crawld.core.content.feed_blocks import feed_title
from crawld.core.content.json_blocks import MAX_PATH_CHARACTERS, json_blocks

RSS = """<?xml version="1.0"?><rss version="2.0"><channel>
<title>News &amp; views</title><link>http://a.test/</link><lastBuildDate>{stamp}</lastBuildDate>
<description>All of it</description>
<item><title>One</title><link>http://a.test/1?a=1&amp;sid=7</link><pubDate>{stamp}</pubDate>
<guid>{stamp}</guid>
<description><![CDATA[<p>Hello <b>you</b></p><p>there</p><script>x</script>]]></description></item>
<item><title>Two</title><description>&lt;p&gt;tea &amp;amp; milk&lt;/p&gt;</description></item>
</channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom</title><updated>{stamp}</updated>
<entry><title type="html">Entry</title><link rel="alternate" href="/e?a=1&amp;b=2"/>
<updated>{stamp}</updated><author><name>Bo</name></author><category term="rivers"/>
<content type="xhtml"><div><p>first</p>second</div></content></entry></feed>"""


def shown(text, content_type):
    return document_blocks(text, content_type).visible_text().split("\n")


def test_values_of_json_are_named_by_their_path():
    text = '{"b": [{"n": 1.0}, {"n": "x<y"}], "a": {}, "c": null, "d": true, "e": 1e400}'
    assert shown(text, "application/json") == [
        *("a: {}", "b[].n: 1.0", "b[].n: x<y", "c: null", "d: true", "e: 1e400")
    ]


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": 01}', "no JSON\nat all"])
def test_what_is_no_json_is_read_as_lines(text):
    lines = [line for line in text.splitlines() if line]
    assert list(document_blocks(text, "application/json").texts) == lines


def test_a_json_document_with_too_many_values_is_read_as_lines():
    assert json_blocks("[" + "1," * 300_000 + "1]") is None


def test_json_has_no_more_blocks_than_a_page_and_short_paths():
    assert len(json_blocks("[" + "1," * 100_000 + "1]").texts) == MAX_BLOCKS
    deep = json_blocks('{"abc": ' * 400 + "1" + "}" * 400)
    assert len(deep.texts[0]) == MAX_PATH_CHARACTERS + len(": 1")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def reordered(value):
    """Return a value with the members of all objects in the opposite order."""
    if isinstance(value, dict):
        return {name: reordered(each) for name, each in reversed(value.items())}
    return [reordered(each) for each in value] if isinstance(value, list) else value


@given(JSON_VALUES)
def test_layout_and_order_of_members_mean_nothing(value):
    one = json_blocks(json.dumps(value))
    other = json_blocks(json.dumps(reordered(value), indent=3, ensure_ascii=False))
    assert one == other


@given(st.dictionaries(st.text(max_size=5), st.integers(), min_size=1), st.data())
def test_another_value_is_another_text(value, data):
    name = data.draw(st.sampled_from(sorted(value)))
    changed = value | {name: value[name] + 1}
    body, other = json.dumps(value).encode(), json.dumps(changed).encode()
    before = read_blocks(body, "application/json")
    assert analyse(other, "application/json", previous=before).difference > 0.0


def test_an_rss_feed_shows_what_people_read():
    assert shown(RSS.format(stamp="Mon"), "application/rss+xml") == [
        *("title: News & views", "", "All of it", "h2: One", "", "Hello you", "there"),
        *("h2: Two", "tea & milk"),
    ]


def test_an_atom_feed_shows_what_people_read():
    blocks = document_blocks(ATOM.format(stamp="Mon"), "application/atom+xml")
    assert blocks.visible_text().split("\n") == [
        *("title: Atom", "h2: Entry", "", "Bo", "rivers", "first", "second")
    ]
    assert "/e?a=1&amp;b=2" in blocks.texts[2]


@pytest.mark.parametrize(("feed", "kind"), [(RSS, "rss"), (ATOM, "atom")])
def test_dates_of_a_feed_are_no_change_and_texts_are(feed, kind):
    kind = f"application/{kind}+xml"
    one, other = (read_blocks(feed.format(stamp=day).encode(), kind) for day in ("Mon", "Tue"))
    assert one == other
    edited = read_blocks(feed.replace("first", "1st").replace("Hello", "Bye").encode(), kind)
    assert edited != one


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (RSS, "News & views"),
        (ATOM, "Atom"),
        ("<rss><channel><item><title>One</title></item><title>Late</title>", None),
        ("", None),
    ],
)
def test_the_title_of_a_feed_is_that_before_its_entries(text, title):
    assert feed_title(text) == title


def test_a_broken_feed_is_read_as_far_as_it_goes():
    text = "<rss><channel><title>T</title><item><title>One & only<description>a <p>b"
    assert shown(text, "application/rss+xml") == ["title: T", "h2: One & onlya"]
    assert shown("<rss></rss>", "application/rss+xml") == ["<rss></rss>"]


def test_extracted_text_is_text_even_if_it_looks_like_something_else():
    for text in (b"%PDF-1.4 as a text", b"<html><p>x</html>", b"{}"):
        assert read_blocks(text, f"{PDF_TEXT}; charset=utf-8").texts == (text.decode(),)


def test_documents_for_people_are_searched_and_others_not():
    read = ["text/html", "text/plain", "application/json", "application/ld+json", "application/pdf"]
    assert all(map(is_readable, read))
    assert not any(map(is_readable, ["image/png", "application/zip", "text/css", None]))
