import re

import pytest
from selectolax.lexbor import LexborHTMLParser

from crawld.simweb.graph import SiteGraph
from crawld.simweb.page_text import EditKind, EditMix, PageText
from crawld.simweb.render import ALL_NOISE, Noise, PageStyle, Rendering

GRAPH = SiteGraph(400, seed=4)


def main_text(html):
    return LexborHTMLParser(html).css_first("main").text()


def test_every_edit_changes_the_visible_text_in_its_way():
    rendering = Rendering(GRAPH, PageStyle(2500))
    for page in (0, 3, 77):
        before = main_text(rendering.html(page, 0))
        for revision in range(1, 120):
            after = main_text(rendering.html(page, revision))
            kind = rendering.edit_kind(page, revision)
            same_words = re.sub(r"\d", "", before) == re.sub(r"\d", "", after)
            assert before != after
            assert same_words == (kind is EditKind.DIGITS)
            assert (len(after) < len(before)) or kind is not EditKind.DELETION
            before = after


def test_edit_kinds_have_the_given_shares():
    mix = EditMix(insertion=0.3, digits=0.2, deletion=0.1)
    kinds = []
    for seed in range(40):
        text = PageText(seed, sentences=40, mix=mix)
        for _ in range(100):
            text.advance()
        kinds += text.kinds
    shares = {kind: kinds.count(kind) / len(kinds) for kind in EditKind}
    assert abs(shares[EditKind.DIGITS] - 0.2) < 0.03
    assert abs(shares[EditKind.DELETION] - 0.1) < 0.03
    assert abs(shares[EditKind.INSERTION] - 0.3) < 0.03


@pytest.mark.parametrize("mix", [EditMix(0, 0, 1), EditMix(1, 0, 0)])
def test_the_length_of_a_text_stays_bounded(mix):
    text = PageText(1, sentences=20, mix=mix)
    for _ in range(500):
        text.advance()
        assert 10 <= sum(map(len, text.blocks)) <= 40
    assert set(text.kinds) == {EditKind.DELETION, EditKind.INSERTION}


def test_shares_above_one_are_refused():
    with pytest.raises(ValueError, match="shares"):
        EditMix(0.5, 0.4, 0.2)


def test_a_revision_does_not_depend_on_the_order_of_requests():
    forward, backward = Rendering(GRAPH, PageStyle()), Rendering(GRAPH, PageStyle())
    upwards = [forward.html(7, revision) for revision in range(30)]
    downwards = [backward.html(7, revision) for revision in reversed(range(30))]
    assert upwards == downwards[::-1]


def test_two_responses_of_a_revision_differ_only_in_noise():
    quiet, noisy = Rendering(GRAPH, PageStyle()), Rendering(GRAPH, PageStyle(noise=ALL_NOISE))
    one = noisy.html(5, 2, serial=1, at=1.7e9)
    two = noisy.html(5, 2, serial=2, at=1.7e9)
    assert one != two
    assert main_text(one) == main_text(two) == main_text(quiet.html(5, 2))


@pytest.mark.parametrize("noise", Noise)
def test_each_kind_of_noise_works_alone(noise):
    rendering = Rendering(GRAPH, PageStyle(noise=frozenset({noise})))
    answers = {rendering.html(5, 0, serial=serial, at=1.7e9 + serial) for serial in range(9)}
    assert len(answers) > 4
    assert b"\0" not in b"".join(answers)


@pytest.mark.parametrize(
    ("page_bytes", "cross_links"), [(1500, 10), (3000, 10), (10_000, 20), (26_000, 63)]
)
def test_pages_have_the_planned_size_and_links(page_bytes, cross_links):
    graph = SiteGraph(5000, seed=1, cross_links=cross_links)
    rendering = Rendering(graph, PageStyle(page_bytes))
    for page in (*range(30), *range(900, 930)):
        html = rendering.html(page, 0)
        links = [node.attributes["href"] for node in LexborHTMLParser(html).css("main a")]
        assert sorted(links) == sorted(graph.path(link) for link in graph.outlinks(page))
        assert abs(len(html) / page_bytes - 1) < 0.2 or page < 900


def test_evicted_pages_are_rebuilt_identically():
    rendering = Rendering(SiteGraph(1000), PageStyle(10_000), kept_html_bytes=200_000)
    first = rendering.html(1, 3)
    for page in range(600):
        rendering.html(page, 0)
        assert rendering.kept_bytes <= 200_000
    assert rendering.html(1, 3) == first
