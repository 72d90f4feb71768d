"""contrib/plugins/main_text.py: the main text decides, in the daemon, too."""

from pathlib import Path

import pytest

from crawld.plugin_host import examples
from crawld.plugin_host.trial import found_at, try_file

FILE = Path(__file__).parents[2] / "contrib" / "plugins" / "main_text.py"

ARTICLE = """<p>The beech is a large tree of the forests of Europe. It grows slowly, and it bears
shade better than most others, so that it stays at last where a forest is left to itself.</p>
<p>Its wood is hard and even. Chairs, tools and toys are made of it. It burns well. {more}</p>"""


def whole(more="", *, aside="Visitors today: 17", menu="Start"):
    return (
        f"<html><head><title>Beech</title></head><body><nav><a href='/'>{menu}</a></nav>"
        f"<article><h1>Beech</h1>{ARTICLE.format(more=more)}</article>"
        f"<aside>{aside}</aside><footer>Cookies and {aside}</footer></body></html>"
    )


@pytest.fixture
def plugin():
    return found_at(FILE).load()


def verdict(plugin, html, previous=None, tags=None):
    return plugin.read_response(examples.reading(html, previous, tags=tags))


def test_it_works_with_its_options():
    options = {"min_characters": 100, "include_tables": False}
    assert try_file(FILE, options).problems == []
    assert "unknown: min_length" in try_file(FILE, {"min_length": 1}).problems[0]


def test_the_digest_is_that_of_the_main_text(plugin):
    first, noisy = verdict(plugin, whole()), verdict(plugin, whole(aside="Visitors today: 18"))
    edited = verdict(plugin, whole("Its nuts are eaten by many animals of the forest."))
    assert first.digest == noisy.digest != edited.digest
    assert int(first.tags["words"]) > 50


def test_a_copy_without_a_digest_is_compared_itself(plugin):
    assert verdict(plugin, whole(aside="now 18"), whole()).changed is False
    assert verdict(plugin, whole("One more sentence about the nuts."), whole()).changed is True


def test_a_copy_with_a_digest_is_not_parsed_again(plugin):
    assert verdict(plugin, whole(), whole("x"), {"words": "60"}).changed is None


def test_pages_without_an_article_are_left_to_crawld(plugin):
    assert verdict(plugin, "<p>Hello</p>") is None
