"""Text that Lexbor copies again and again: a page is cut before it takes much memory."""

import subprocess
import sys

import pytest

from crawld.core.content import html
from crawld.core.content.text_merging import MAX_COPIED_BYTES, may_merge_much
from crawld.core.content.tree_memory import TagScan

HOSTILE = {
    "end tags": (b"", b"</q a=b>x"),
    "cells without a table": (b"", b"<tr><td a=b>1<td>2"),
    "long text": (b"", b"<TD a=b>" + b"x" * 150),
    "rows": (b"<table>", b"x<tr><td>y</td></tr>"),
    "rows with elements": (b"long text " * 10_000 + b"<table>", b"x<tr><td><p>y</p></td></tr>"),
    "comments in a table": (b"<table>", b"xxxxxxxx<!--c-->"),
    "hidden fields in a table": (b"<table>", b"xxxxxxxx<input type=hidden a=b>"),
    "tags in a select": (b"<select>", b"<div a=b>xxxxxx"),
    "a select that seems closed": (
        b"<svg><desc></desc></svg><select><script></select></script>",
        b"<p a=b>xxxxxx",
    ),
    "a table that is text": (b"<textarea><table></textarea>", b"<td a=b>xxxxxx"),
    "a closed table": (b"<svg><desc></desc></svg><table></table>", b"<td a=b>xxxxxx"),
    "forms": (b"<form>", b"xxxxx<form a=b>"),
    "blanks": (b"<table>", b"      </q a=b>"),
}

ORDINARY = {
    "article": b"<p>Some <b>words</b> and <a href='/x'>a link</a>.</p>\n" * 4_000,
    "table": b"<table>" + b"<tr>\n<td class=a>1234</td>\n<td class=b>5</td></tr>\n" * 3_000,
    "options": b"<select>" + b"<option value=a>A country</option>" * 3_000 + b"</select>",
    "signs": b"a < b and b > c, " * 20_000,
    "comments": b"<p>" + b"some text<!-- a comment -->" * 10_000,
    "void": b"a line of text<br class=a>" * 6_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [200_000, 1_100_000])
def test_a_page_is_cut_before_much_text_is_copied(name, size):
    start, part = HOSTILE[name]
    body = start + part * (size // len(part))
    assert may_merge_much(TagScan(body, len(body)), len(body))
    assert html.tree_of(body)[1] < len(body)


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_pages_are_parsed_whole(name):
    body = ORDINARY[name]
    assert html.tree_of(body)[1] == len(body)


@pytest.mark.parametrize("name", ["article", "signs", "void"])
def test_the_tags_of_most_pages_are_not_followed(name):
    body = ORDINARY[name]
    assert not may_merge_much(TagScan(body, len(body)), len(body))


CHILD = """
import resource, sys
from crawld.core.content import html
start, part = eval(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
html.tree_of(start + part * (1_000_000 // len(part)))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.parametrize("name", ["end tags", "long text", "comments in a table"])
def test_a_page_takes_little_memory(name):
    command = [sys.executable, "-c", CHILD, repr(HOSTILE[name])]
    taken = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(taken.stdout) < 2 * MAX_COPIED_BYTES
