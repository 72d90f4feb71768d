"""Every body has an analysis; every kind of edit differs, and no kind of noise."""

import os

import pytest

from crawld.core.content import analysis, html
from crawld.core.content import blocks as block_list
from crawld.core.content.analysis import analyse, difference_of, read_blocks
from crawld.core.content.blocks import MAX_BLOCKS
from crawld.core.content.fingerprint import SKETCH_BYTES, resemblance
from crawld.core.content.parse_limits import MAX_PARSE_BYTES
from crawld.simweb.article import make_article

BASE = """<html><head><title>T</title><script nonce=1>x=1</script></head><body><!-- 1 -->
<h2>Head</h2><p>Some words about the river.</p><p>More of them, 17 in all.</p>
<table><tr><td>Ajax</td><td>3</td></tr></table><ul><li><a href="/a?sid=1">A</a></ul>
<img src="/i.png?t=1"><input type=hidden value=1></body></html>"""


def difference(old: str, new: str) -> float:
    found = analyse(new.encode(), "text/html", previous=read_blocks(old.encode(), "text/html"))
    assert found.difference is not None
    return found.difference


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("17 in all", "18 in all"),
        ("<td>3</td>", "<td>4</td>"),
        ("<p>More of them, 17 in all.</p>", ""),
        ("h2>", "h3>"),
        ("/a?sid", "/b?sid"),
        ("/i.png", "/j.png"),
        ("<title>T", "<title>U"),
        ("river", "River"),
    ],
)
def test_an_edit_differs(old, new):
    assert old in BASE
    assert 0 < difference(BASE, BASE.replace(old, new)) <= 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nonce=1>x=1", "nonce=2>x=2"),
        ("<!-- 1 -->", "<!-- 2 -->"),
        ("sid=1", "sid=2"),
        ("?t=1", "?t=2"),
        ("value=1", "value=2"),
        ("<p>Some", "<p \n class=x1>\n Some"),
    ],
)
def test_noise_does_not_differ(old, new):
    assert old in BASE
    assert difference(BASE, BASE.replace(old, new)) == 0


@pytest.mark.parametrize(
    ("body", "declared"),
    [
        (b"", "text/html"),
        (b"", None),
        (os.urandom(5000), "text/html"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "text/html"),
        (b"<p>" + bytes(5000), "text/html"),
        (b"[1, 2, 3]", "application/json"),
        (b"\xff" * 5000, "text/plain; charset=utf-8"),
        ("<p>\ud83d".encode("utf-8", "surrogatepass"), "text/html; charset=utf-16"),
        (b"<div>" * 50_000, "text/html"),
    ],
)
def test_any_body_has_an_analysis(body, declared):
    found = analyse(body, declared)
    again = analyse(body, declared, previous=found.blocks)
    assert len(found.sketch) == SKETCH_BYTES
    assert again.difference == 0
    assert again.cleaned_digest == found.cleaned_digest
    assert resemblance(found.sketch, again.sketch) == 1


@pytest.mark.parametrize("declared", ["text/html", "text/plain", "application/octet-stream"])
def test_a_body_beyond_every_limit_is_compared_up_to_its_end(declared, monkeypatch):
    # An eighth of the limits: a page beyond the real ones takes 190 MB.
    most_bytes, most_blocks = MAX_PARSE_BYTES // 8, MAX_BLOCKS // 8
    monkeypatch.setattr(analysis, "MAX_TEXT_BYTES", most_bytes)
    monkeypatch.setattr(html, "MAX_PARSE_BYTES", most_bytes)
    monkeypatch.setattr(block_list, "MAX_BLOCKS", most_blocks)
    line = b"<p>%s</p>\n" % (b"a line of text " * 11)
    body = line * (most_bytes * 6 // 5 // len(line))
    assert body.count(b"\n") > most_blocks
    blocks = analyse(body, declared).blocks
    assert len(blocks.texts) <= most_blocks + 1
    other = analyse(body[:-9] + b"z</p>\n...", declared, previous=blocks)
    assert other.difference is not None
    assert other.difference > 0


def test_binary_bodies_are_compared_by_digest():
    one, two = (read_blocks(b"%PDF-1.7" + os.urandom(99)) for _ in range(2))
    assert difference_of(one, two) > 0
    assert difference_of(one, one) == 0
    assert difference_of(one, read_blocks(b"")) == 1


def test_an_article_and_its_edit():
    old = make_article(1)
    new = old.replace(b"2019", b"2020", 1)
    first = analyse(old, "text/html; charset=utf-8")
    found = analyse(new, "text/html; charset=utf-8", previous=first.blocks)
    assert first.page is not None
    assert len(first.page.links) > 300
    assert first.page.parsed_bytes == len(old)
    assert found.difference is not None
    assert 0 < found.difference < 0.01
    assert resemblance(first.sketch, found.sketch) > 0.9
    assert resemblance(first.sketch, analyse(make_article(2), "text/html").sketch) < 0.1
