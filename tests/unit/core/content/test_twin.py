"""Texts of twins: equal where two copies of a page differ in addresses, noise or path only."""

from dataclasses import replace

import pytest

from crawld.core.content.analysis import read_blocks
from crawld.core.content.twin import twin_digest, twin_text
from crawld.core.content.volatile import (
    NO_RULES,
    Cover,
    VolatileRule,
    VolatileRules,
    wording_hash,
)

ONE, OTHER = "https://docs.a.test", "http://mirror.a.test:8080"
ORIGINS = (ONE, OTHER)


def text(html, origin=ONE, path="/manual/page.html", rules=NO_RULES):
    blocks = read_blocks(html.encode(), "text/html; charset=utf-8")
    return twin_text(blocks, f"{origin}{path}", ORIGINS, rules)


def agree(one, other, **more):
    return text(one, **more) == text(other, OTHER, **more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f'<p>x <a href="{ONE}/a?b=1">y</a>', f'<p>x <a href="{OTHER}/a?b=1">y</a>'),
        (f'<p>x <a href="{ONE}/a">y</a>', '<p>x <a href="/a">y</a>'),
        ('<p>x <a href="next.html">y</a>', f'<p>x <a href="{OTHER}/manual/next.html">y</a>'),
        ('<p>x <a href="../up.html">y</a>', '<p>x <a href="/up.html">y</a>'),
        ('<p>x <a href="?page=2">y</a>', '<p>x <a href="/manual/page.html?page=2">y</a>'),
        (f'<p>x <a href="{ONE}">y</a>', '<p>x <a href="/">y</a>'),
        (f'<p>x <a href="//{ONE[8:]}/a">y</a>', f'<p>x <a href="{OTHER}/a">y</a>'),
        (f'<p>x <img src="{ONE}/i.png">', '<p>x <img src="/i.png">'),
        # A copy that links to the original, and addresses in the text.
        (f'<p>x <a href="{ONE}/a">y</a>', f'<p>x <a href="{ONE}/a">y</a>'),
        (
            f"<p>Retrieved from {ONE}/manual/page.html.",
            f"<p>Retrieved from {OTHER}/manual/page.html.",
        ),
    ],
)
def test_addresses_of_both_hosts_are_paths(one, other):
    assert agree(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<p>one text", "<p>another text"),
        (f'<p>x <a href="{ONE}/a">y</a>', f'<p>x <a href="{OTHER}/b">y</a>'),
        # Other hosts and ports: a longer name, a port, another scheme's port.
        (f'<p>x <a href="{ONE}.evil.test/a">y</a>', f'<p>x <a href="{OTHER}/a">y</a>'),
        (f'<p>x <a href="{ONE}:8443/a">y</a>', f'<p>x <a href="{OTHER}/a">y</a>'),
        ('<p>x <a href="http://mirror.a.test/a">y</a>', f'<p>x <a href="{OTHER}/a">y</a>'),
        ('<p>x <a href="mailto:me@a.test">y</a>', '<p>x <a href="/manual/mailto">y</a>'),
        ("<p>Costs 12 EUR", "<p>Costs 13 EUR"),
    ],
)
def test_other_differences_stay(one, other):
    assert not agree(one, other)


@pytest.mark.parametrize(
    "html",
    [
        "<title>404</title><p>The page {path} was not found.",
        '<p>Sign in to see {path}. <a href="/login?next={path}">Sign in</a>',
        "<p>There is no page named {name} here.",
        "<p>No {name}: see <a href='{origin}{path}'>{origin}{path}</a>",
    ],
)
def test_a_page_that_repeats_its_path_has_one_text_on_all_paths(html):
    texts = {
        text(html.format(path=path, name=path.rpartition("/")[2], origin=ONE), path=path)
        for path in ("/wiki/First_page", "/wiki/Second", "/other/deep/Third.html")
    }
    assert len(texts) == 1


def test_a_number_is_no_name():
    assert text("<p>Item 1234", path="/item/1234") == "Item 1234"
    assert text("<p>Item 1234 at /item/1234.html", path="/item/1234.html").startswith("Item 1234 ")


def test_the_root_is_no_word_of_the_text():
    assert text("<p>a/b", path="/") == "a/b"


def test_of_a_page_of_numbers_the_numbers_are_no_noise():
    """Another page of the host shows measured values in the same table, new at every fetch."""
    page = "<h1>Day 4</h1><p>Observed</p><table>{rows}</table>"

    def shown(*values):
        return page.format(rows="".join(f"<tr><td>{value}" for value in values))

    place = read_blocks(shown(1).encode(), "text/html").places[-1]
    rules = VolatileRules((VolatileRule(Cover.NUMBERS, place, 0, confirmed=True),))
    assert agree(shown(1), shown(2), rules=rules)
    assert not agree(shown(1, 2, 3), shown(4, 5, 6), rules=rules)


def test_noise_that_one_host_taught_holds_for_both():
    page = "<p>Body<p id=c>Viewed {count} times, last on 3 May {year}"
    [_, block] = read_blocks(page.format(count=1, year=2026).encode(), "text/html").texts
    place = read_blocks(page.encode(), "text/html").places[1]
    rule = VolatileRule(Cover.WORDING, place, wording_hash(block), confirmed=True)
    one, other = page.format(count=1, year=2026), page.format(count=977, year=2025)
    assert not agree(one, other)
    assert agree(one, other, rules=VolatileRules((rule,)))
    assert not agree(one, other, rules=VolatileRules((replace(rule, confirmed=False),)))


def test_an_empty_text_has_no_digest():
    assert twin_digest("") is None
    assert twin_digest(text("<p>x")) == twin_digest(text("<p>x", OTHER))


def test_links_that_are_no_urls_stay():
    assert agree(
        '<p>x <a href="//[">y</a> <a href="http://[x">z</a>',
        '<p>x <a href="//[">y</a> <a href="http://[x">z</a>',
    )
