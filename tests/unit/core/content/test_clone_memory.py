"""The clones of formatting elements take no more memory than their limit, whatever the page is."""

import random

import pytest

from crawld.core.content import html
from crawld.core.content.clone_memory import CloneMemory, has_few_clones
from crawld.core.content.formatting_model import FormattingModel
from crawld.core.content.markup_scan import MarkupScan
from crawld.core.content.parse_limits import parsable_size, size_within_clones
from crawld.core.content.tree_memory import TagScan, clone_bytes, cloned_budget_bytes
from tests.unit.core.content.formatting_soup import cloned_bytes, soup
from tests.unit.core.content.ordinary_pages import ORDINARY_PAGES

ATTRIBUTES = " ".join(f"a{n}" for n in range(1_999))
TITLE = f'title="{"x" * 200_000}"'
SPECIAL = "<div>" * 500

# Pages of 10 to 350 KB that took 60 to 900 MB before their clones had a limit.
COSTLY = {
    "a link with attributes": f"<p><a {ATTRIBUTES}></p>" + "<p>x</p>" * 1_000,
    "attributes": f"<p><i {ATTRIBUTES}></p>" + "<p>x</p>" * 1_000,
    "a link with a title": f"<p><a {TITLE}></p>" + "<p>x</p>" * 2_000,
    "capitals": f"<P><FONT {ATTRIBUTES.upper()}></P>" + "<P>x</P>" * 1_000,
    "adoption": f"<i {TITLE}>" + "<div>" * 2_000 + "</i>" * 2_000,
    "adoption of attributes": f"<b {ATTRIBUTES}>" + "<div>" * 2_000 + "</b>" * 2_000,
    "adoption by links": f"<a {ATTRIBUTES}>" + "<div>" * 2_000 + "<a>" * 2_000,
    "adoption with others": f"<b><i {ATTRIBUTES}><u {ATTRIBUTES}>" + (SPECIAL + "</b><b>") * 20,
    "stray end tags": "</b>" * 900 + "".join(f"<b a={n}>" for n in range(900)) + "<p>x" * 2_000,
    "a stray end tag for each": "".join(f"<i a{n}></b>" for n in range(900)) + "<p>x" * 900,
    "an end tag out of scope": f"<b {ATTRIBUTES}><table></b><tr><td><p>x</table>" * 40,
    "foster parents": f"<b {ATTRIBUTES}><table>" + "<tr>x" * 1_000,
    "cells": f"<table><td><b {ATTRIBUTES}></b><i {ATTRIBUTES}>" + "<p>x" * 1_000,
    "objects": f"<b {ATTRIBUTES}>" + "<p>x</p><object></object>" * 1_000,
    "templates": f"<template><b {ATTRIBUTES}>" + "<p>x" * 1_000,
    "selects": f"<b {ATTRIBUTES}><select></b></select>" + "<p>x" * 1_000,
    "svg": f"<b {ATTRIBUTES}><svg><desc>" + "<p>x" * 1_000,
    "a tag that svg hides": f'<svg><desc><style><p title="</style><b {ATTRIBUTES}>' + "<p>x" * 999,
    "nobr": f"<nobr {ATTRIBUTES}><div>" + "<nobr>x<div>" * 500,
    "equal ones": f"<p>{f'<b {ATTRIBUTES}>' * 9}" + "<p>x" * 500,
    "hidden in quotes": f'<p a="<b \'"><b {ATTRIBUTES}>' + "<p>x" * 1_000 + "<p title='>'>",
    "hidden in a comment": f"<!-- <b> --><b {ATTRIBUTES}><!-- </b> -->" + "<p>x" * 1_000,
    "an end tag in a quote": f"<b {ATTRIBUTES}><span title='</b>'>" + "<p>x" * 1_000,
    "an unfinished end tag": f"<b {ATTRIBUTES}></b <p>" + "<p>x" * 1_000,
    "spans that close it": "<span>" * 400 + f"<b {ATTRIBUTES}>" + "</span>x" * 400,
    "headings": f"<h2><b {ATTRIBUTES}>" + "<h2>x</h2>" * 1_000,
    "buttons": f"<button><b {ATTRIBUTES}>" + "<button>x" * 1_000,
    "html and body": f"<b {ATTRIBUTES}>" + "<body><p>x<html>" * 900,
}


def scan_of(body: bytes) -> TagScan:
    return TagScan(body, len(body))


def bound_bytes(body: bytes) -> int:
    return CloneMemory(MarkupScan(scan_of(body), len(body))).total_bytes


@pytest.mark.parametrize("kind", COSTLY)
def test_clones_keep_to_their_memory(kind):
    body = COSTLY[kind].encode()
    parsed = body[: html.tree_of(body)[1]]
    assert cloned_bytes(parsed.decode()) <= cloned_budget_bytes(len(body))
    assert bound_bytes(body) >= cloned_bytes(parsed.decode())


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
