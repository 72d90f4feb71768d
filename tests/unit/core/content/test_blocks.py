"""What is a block, what is left out, and what counts as an edit."""

import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.content import tags
from crawld.core.content.blocks import (
    MAX_BLOCKS,
    Blocks,
    blocks_of,
    lines_of,
)
from crawld.core.content.html import parse
from crawld.core.content.tags import block_runs
from crawld.core.content.targets import (
    TARGET,
    TARGET_END,
    TARGET_START,
    image_target,
    link_target,
    without_targets,
)


def blocks(html: str) -> Blocks:
    page = parse(html)
    return blocks_of(page.tree, page.title)


def texts(html: str) -> list[str]:
    found = blocks(html).texts
    return [text.replace(TARGET_START, "[").replace(TARGET_END, "]") for text in found]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one <b>two</b>\n three<p>four", ["one two three", "four"]),
        ("<title> T </title><h2>H</h2>", ["title: T", "h2: H"]),
        ("<div>a<p>b</p>c</div>", ["a", "b", "c"]),
        ("<ul><li>a<ul><li>b</ul></ul>", ["* a", "* b"]),
        ("<table><tr><th>Name<td>3<td><a href=/x>y</a></table>", ["| Name | 3 | [/x]y"]),
        ("<pre>a\n  b\n\nc</pre>", ["pre: a", "pre: b", "pre: c"]),
        ("a<br>b", ["a b"]),
        ("<p>a&nbsp;b &lt;i&gt; &amp;</p>", ["a b &lt;i&gt; &amp;"]),
        ("<p>x<script>'</p><b>'</script><style>p{}</style><!-- <p> > --></p>", ["x"]),
        ("v<noscript><p>n</noscript><template>t</template><svg><text>s</text></svg>", ["v"]),
        ("<p hidden>h</p><div style='Display : none'><div>x</div>y</div>z", ["z"]),
        ("<span style='visibility:hidden'>a <span>b</span></span>c", ["c"]),
        ("<a style='text-decoration:none' href=u>d</a>", ["[u]d"]),
        ("<p aria-hidden=true>seen</p>", ["seen"]),
        ("<form><input type=hidden value=t><textarea>note</textarea></form>", ["note"]),
        ("<img hidden src=a><img src='i.png?v=3'>", ["[i.png]"]),
        ("<a title='1>0' href='?a=1&sid=77f'>x</a>", ["[?a=1]x"]),
        ("<a data-href=no href=yes>x</a><a data-href=no>y</a>", ["[yes]xy"]),
        ("", []),
        ("<p> | </p><hr>", []),
        ("<script>'<!--'</script>kept<!-- c -->", ["kept"]),
    ],
)
def test_blocks(html, expected):
    assert texts(html) == expected


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("/a#top", "/a"),
        ("#top", ""),
        ("javascript:void(0)", ""),
        ("/a;jsessionid=AB12?x=1", "/a?x=1"),
        ("?PHPSESSID=1&amp;p=2", "?p=2"),
        ("?p=2&amp;utm_source=x&amp;_wpnonce=1", "?p=2"),
        ("?h=0123456789abcdef0123456789abcdef", ""),
        ("?side=left&amp;inside=1", "?side=left&amp;inside=1"),
    ],
)
def test_link_targets(href, target):
    assert link_target(href).strip(TARGET_START + TARGET_END) == target


@pytest.mark.parametrize(
    ("unit", "kept"),
    [
        ("csrf", "csrf"),
        ("a=;", "a=;"),
        ("a=1;", "a=1;"),
        ("sid=1&", ""),
        ("aa.", "aa."),
        (";sid", ";sid"),
    ],
)
def test_a_long_target_is_read_in_linear_time(unit, kept):
    repeats = 300_000
    expected = "?" + kept * repeats if kept else ""
    assert link_target("?" + unit * repeats).strip(TARGET_START + TARGET_END) == expected


def test_a_page_cannot_forge_a_target():
    forged = f"<p>a{TARGET_START}b<p>c&#2;d&#3;e<p><a href='/x&#3;y{TARGET_START}'>z</a>"
    texts = blocks_of(parse(forged).tree, f"t{TARGET_END}").texts
    assert texts == ("title: t", "ab", "cde", f"{TARGET_START}/xy{TARGET_END}z")
    lines = lines_of("a\n" + TARGET_START * 1_000_000)
    assert lines.texts == ("a",)
    assert lines.visible_text() == "a"


def test_image_targets():
    assert image_target("/a.png?cache=1").strip(TARGET_START + TARGET_END) == "/a.png"
    assert image_target("") == ""
    assert image_target("data:image/png,x") != image_target("data:image/png,y")
    assert len(image_target("data:" + "x" * 10_000)) < 30


def test_places_survive_renumbering_and_insertions():
    one = blocks("<div class='ad n17' id=x1><p>a</p></div><p>b</p>")
    two = blocks("<p>new</p><div id=x2 class='n18 ad'><p>a</p></div><p>b</p>")
    assert one.places == (two.places[1], two.places[2])
    assert one.places[0] != one.places[1]
    assert one.hashes().tolist() == two.hashes().tolist()[1:]


def test_visible_text_has_no_targets_or_entities():
    page = blocks("<p>a <a href='/x'>link</a> &amp;lt; &lt;b&gt;</p><p>c</p>")
    assert page.visible_text() == "a link &lt; <b>\nc"


def test_blocks_leave_the_tree_unchanged():
    page = parse("<div hidden><img src=a.png></div><p>b")
    assert blocks_of(page.tree, "") == blocks_of(page.tree, "")
    assert page.requisites() == ("a.png",)


def test_too_many_blocks_keep_their_text():
    found = blocks("<p>x</p>" * (MAX_BLOCKS + 5) + "<p>last</p>")
    assert len(found.texts) == len(found.places) == MAX_BLOCKS
    assert found.texts[-1].endswith("last")
    assert len(lines_of("x\n" * (MAX_BLOCKS + 5)).texts) == MAX_BLOCKS


def test_lines():
    assert lines_of("a  b\r\n\n c ").texts == ("a b", "c")


@pytest.mark.parametrize("few_tags", [10_000, -1])
def test_a_missing_end_tag_is_searched_for_once(monkeypatch, few_tags):
    monkeypatch.setattr(tags, "FEW_TAGS", few_tags)
    calls = Counter()

    def count(_, event, called):
        if event == "c_call":
            calls[called.__name__] += 1

    text = "<!--" * 1_000 + "<script>" * 1_000 + "<style>" * 1_000
    sys.setprofile(count)
    try:
        found = list(block_runs(f"<body><xmp>{text}</xmp><p>end</p></body>"))
    finally:
        sys.setprofile(None)
    assert ("end", None) in found
    # Otherwise a page of a few megabytes would take hours.
    assert calls["find"] + calls["startswith"] < 20_000


@pytest.mark.parametrize("few_tags", [tags.FEW_TAGS, -1])
def test_a_hidden_element_with_raw_content_hides_nothing_behind_it(monkeypatch, few_tags):
    monkeypatch.setattr(tags, "FEW_TAGS", few_tags)
    html = "<p>a</p><iframe hidden src=x><p>n</iframe><script hidden>s</script><p>b</p>"
    assert texts(html) == ["a", "b"]


@given(st.text(f"ab \n{TARGET_START}{TARGET_END}", max_size=30))
def test_targets_are_removed_as_their_pattern_says(text):
    assert without_targets(text) == TARGET.sub("", text)
