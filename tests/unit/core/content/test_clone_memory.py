"""The clones of formatting elements take no more memory than their limit, whatever the page is."""

import random

import pytest
from selectolax.lexbor import LexborHTMLParser

from crawld.core.content import html
from crawld.core.content.clone_memory import CloneMemory, has_few_clones
from crawld.core.content.formatting_model import FormattingModel
from crawld.core.content.markup_scan import MarkupScan
from crawld.core.content.parse_limits import parsable_size, size_within_clones
from crawld.core.content.tag_syntax import WHOLE_TAG
from crawld.core.content.tree_memory import TagScan, clone_bytes, cloned_budget_bytes
from tests.unit.core.content.formatting_soup import cloned_bytes, soup
from tests.unit.core.content.ordinary_pages import ORDINARY_PAGES

ATTRIBUTES = " ".join(f"a{n}" for n in range(500))
PLAIN = f'title="{"x" * 15_000}"'
LONG = f'title="{"x" * 90_000}"'
HALF = " ".join(f"a{n}" for n in range(250))
BOLD = f"<b {ATTRIBUTES}>"
MANY = [f'<b title="{n}">' for n in range(60)]


def cloned(markup: str, paragraphs: int = 900) -> str:
    """Return a page whose first paragraph closes elements that all others clone."""
    return f"<p>{markup}</p>" + "<p>x</p>" * paragraphs


# Pages whose clones take 40 to 100 MB: some tag hides, or leaves active, what seems to be closed.
COSTLY = {
    "a link": cloned(f"<a {ATTRIBUTES}>"),
    "another element": cloned(BOLD),
    "capitals": cloned(f"<FONT {ATTRIBUTES.upper()}>"),
    "a link with a title": cloned(f"<a {LONG}>"),
    "a small page": f"<p><a {PLAIN}>" + "<p>x" * 4_000,
    "a small page of many": "<p>" + "".join(MANY) + "<p>x" * 3_000,
    "three equal ones": cloned(f"<b {HALF}>" * 3, 600),
    "adoption": f"<i {LONG}>" + "<div>" * 1_000 + "</i>" * 1_000,
    "adoption of attributes": f"<b {ATTRIBUTES}>" + "<div>" * 1_000 + "</b>" * 1_000,
    "eight special elements": BOLD + "<div>" * 8 + "</b>" + "</div>" * 8 + "<p>x</p>" * 900,
    "stray end tags before": "</b>" * 900 + cloned(BOLD),
    "stray end tags within": cloned(f"{BOLD}</i></a></u>"),
    "an end tag in a quote": cloned(f"{BOLD}<span title='></b>'>"),
    "an end tag in double quotes": cloned(f'{BOLD}<span title = "></b>">'),
    "an end tag in a tag": cloned(f"{BOLD}<q </b>"),
    "an end tag in a comment": cloned(f"{BOLD}<!-- </b> -->"),
    "an end tag in a declaration": cloned(f"{BOLD}<!x </b>"),
    "an end tag in a style": cloned(f"{BOLD}<style></b></style>"),
    "an end tag in a table": cloned(f"{BOLD}<table></b></table>"),
    "an end tag in an object": cloned(f"{BOLD}<object></b></object>"),
    "an end tag in math": cloned(f"{BOLD}<math><mi></b></mi></math>"),
    "an end tag in svg": cloned(f"{BOLD}<svg><desc></b></desc></svg>"),
    "a start tag in a quote": f"<p a=\"<b '\">{cloned(BOLD)}<p title='>'>",
    "a tag that svg hides": f'<svg><desc><style><p title="</style>{cloned(BOLD)}',
    "cells": f"<table><td>{cloned(BOLD)}",
    "spans": "<span>" * 900 + BOLD + "</span>x" * 900,
    "lists": f"<ul><li>{BOLD}" + "<li>x" * 900,
    "rows": f"<table><tr>{BOLD}" + "<tr>x" * 900,
}


def scan_of(body: bytes) -> TagScan:
    return TagScan(body, len(body))


def bound_bytes(body: bytes) -> int:
    return CloneMemory(MarkupScan(scan_of(body), len(body))).total_bytes


@pytest.mark.parametrize("kind", COSTLY)
def test_clones_keep_to_their_memory(kind):
    body = COSTLY[kind].encode()
    budget_bytes = cloned_budget_bytes(len(body))
    assert bound_bytes(body) >= cloned_bytes(COSTLY[kind]) > budget_bytes
    parsed = body[: html.tree_of(body)[1]]
    assert cloned_bytes(parsed.decode()) <= budget_bytes


@pytest.mark.parametrize("parts", [5, 40, 150, 600])
@pytest.mark.parametrize("kind", ORDINARY_PAGES)
def test_an_ordinary_page_is_parsed_whole(kind, parts):
    body = ORDINARY_PAGES[kind](parts).encode()
    assert parsable_size(scan_of(body), len(body)) == len(body)


@pytest.mark.parametrize("kind", ["wiki", "forum", "cards"])
def test_the_markup_of_today_needs_no_model(kind):
    body = ORDINARY_PAGES[kind](60).encode()
    assert bound_bytes(body) < cloned_budget_bytes(len(body)) / 2


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_never_below_what_is_cloned(seed):
    chance = random.Random(seed)
    for _ in range(150):
        page = soup(chance)
        body, cloned = page.encode(), cloned_bytes(page)
        assert bound_bytes(body) >= cloned, page
        if cloned:
            assert not has_few_clones(scan_of(body), len(body), cloned - 1), page


@pytest.mark.parametrize("seed", range(6))
def test_no_page_clones_more_than_a_budget(seed, monkeypatch):
    chance = random.Random(100 + seed)
    for _ in range(150):
        page, budget_bytes = soup(chance), chance.choice((5_000, 20_000, 100_000))
        monkeypatch.setattr(
            "crawld.core.content.parse_limits.cloned_budget_bytes", lambda size, b=budget_bytes: b
        )
        body = page.encode()
        end = size_within_clones(scan_of(body), len(body))
        assert cloned_bytes(body[:end].decode()) <= budget_bytes, page


@pytest.mark.parametrize(
    ("page", "clones", "open_names"),
    [
        ("<b>x</b>", 0, ""),
        ("<p><b>x<p>y", 1, "p b"),
        ("<b><p>x</b>y", 1, "p"),
        ("<b><i><p>x</b>y", 2, "i p"),
        ("<table><td><b>x<td>y", 0, "table tbody tr td"),
        ("<b><table><td>x<tr>y", 0, "b table tbody tr"),
        ("<p><a href=x>x<a href=y>y</p>z", 1, "a"),
        ("<b><b><b><b><p></b></b></b></b>x", 3, "b p"),
        ("<p><b><table><td>x</table>y", 0, "p b"),
        ("<!doctype html><p><b><table><td>x</table>y", 1, "b"),
        ("<ul><li><b>x<li>y</ul>", 1, ""),
        ("<h2><i>x</i></h2><h2><i>x</h2><h3>y", 1, "h3 i"),
        ("<form><form><b>x</form>y", 0, "b"),
        ("<title><b></title><script><i></script>x", 0, ""),
        ("<b><svg><title>x</title><path d='<p>'/></svg>x", 0, "b"),
        ("<b>" + "<div>" * 9 + "</b>", 8, "b"),
    ],
)
def test_the_model_clones_as_lexbor_does(page, clones, open_names):
    model = FormattingModel(page.encode(), len(page), 2**40)
    if not page.startswith("<b><div>"):
        assert " ".join(name.decode() for name in model.open_names) == open_names
    expected = clones * clone_bytes(0, 0)
    assert cloned_bytes(page) == pytest.approx(expected, abs=400)
    assert model.cloned_bytes == pytest.approx(expected, abs=400)


@pytest.mark.parametrize(
    "tag", ["select", "template", "math", "object", "nobr", "svg><p", "![CDATA["]
)
def test_the_model_ends_where_it_does_not_know_a_tag(tag):
    body = f"<p><b>x<p>y<{tag}>z".encode()
    model = FormattingModel(body, len(body), 2**40)
    assert not model.is_exact
    assert model.position == len("<p><b>x<p>y")


@pytest.mark.parametrize("kind", ["<b>", "<div>", "<a><div>", "<b><p></b>", "<font size=1><li>"])
def test_the_model_looks_at_few_elements(kind):
    body = kind.encode() * 100_000
    assert FormattingModel(body, len(body), 2**62).steps < 5_000_000


@pytest.mark.parametrize(
    ("part", "is_whole"),
    [
        (b"<b>", True),
        (b"</b x>", True),
        (b"<a title='a > b' href=x>", True),
        (b"<a b= >", True),
        (b"<a b'=c'd>", True),
        (b"<a 'b>", True),
        (b"<a b='>'>", True),
        (b"<a b='>", False),
        (b'<a b = ">', False),
        (b"<a b=\"c'>", False),
        (b'<a ==">', False),
        (b"<a b='c'd=\">", False),
        (b"<a ", False),
    ],
)
def test_a_tag_is_whole_if_it_ends_outside_of_quotes(part, is_whole):
    found = WHOLE_TAG.match(part)
    assert (found is not None and found.end() == len(part)) is is_whole
    # In Lexbor, a tag that does not end takes what follows.
    is_text = LexborHTMLParser(part + b"<q>").css_first("q") is not None
    assert is_text is is_whole
