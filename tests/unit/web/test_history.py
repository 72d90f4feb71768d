"""The list of versions of a page, the difference of two, and the forms for them."""

import pytest

from crawld.core.content.analysis import read_blocks
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import VolatileRules
from crawld.store.changes import volatile
from tests.unit.web.conftest import DAY_S, NOW, PATH, URL, sent


def text(number):
    return f"<body><p>A steady text.</p><p>Viewed {number} times.</p>"


@pytest.fixture
def history(mirror):
    for number in range(3):
        mirror.page(URL, text(number), at=NOW + number * DAY_S)
    return mirror


def test_two_versions_can_be_selected(history, header_of):
    listed = sent(history.get(f"/versions{PATH}"))
    assert listed.count('type="radio"') == 6
    assert f'name="url" value="{URL}"' in listed
    for chosen in ("old=1&new=3", "old=3&new=1"):
        reply = history.get(f"/diff?url=https%3A%2F%2Fexample.org%2Fa&{chosen}")
        assert (reply.status, header_of(reply, "location")) == (302, f"/diff/1..3{PATH}")


def test_a_version_imported_later_counts_as_older(history, header_of):
    history.page(URL, "from an archive", at=NOW - DAY_S)
    for chosen in ("old=1&new=4", "old=4&new=1"):
        reply = history.get(f"/diff?url={URL}&{chosen}")
        assert (reply.status, header_of(reply, "location")) == (302, f"/diff/4..1{PATH}")


@pytest.mark.parametrize(
    "query",
    ["", "url=x", f"url={URL}&old=1", f"url={URL}&old=1&new=x", f"url={URL}&old=1&new=4"],
)
def test_an_invalid_selection_is_not_found(history, query):
    assert history.get(f"/diff?{query}").status == 404


def test_a_single_version_has_no_comparison(mirror):
    mirror.page(URL, "one")
    listed = sent(mirror.get(f"/versions{PATH}"))
    assert "radio" not in listed
    assert "first copy" in listed


def test_a_long_list_has_several_parts(mirror):
    for number in range(203):
        mirror.page(URL, f"text {number}", at=NOW + number)
    first = sent(mirror.get(f"/versions{PATH}"))
    assert first.count('type="radio"') == 400
    older = first.partition('rel="next" href="')[2].partition('"')[0]
    rest = sent(mirror.get(older))
    assert [f"/@v{number}{PATH}" in rest for number in (1, 3, 4)] == [True, True, False]
    assert f'href="/versions{PATH}">Newest' in rest


def test_a_difference_links_to_its_neighbors(history):
    shown = sent(history.get(f"/diff/1..2{PATH}"))
    assert "Previous change" not in shown
    assert f'href="/diff/2..3{PATH}"' in shown
    shown = sent(history.get(f"/diff/2..3{PATH}"))
    assert f'href="/diff/1..2{PATH}"' in shown
    assert "Next change" not in shown
    assert f'src="/@v2{PATH}"' in shown


def test_noise_is_ignored_unless_raw(history):
    first, second = (read_blocks(text(number).encode(), "text/html") for number in (0, 1))
    rules = ReadingPair.of(first, second).learn(VolatileRules(), pair=True)
    page_id = history.known(URL).page_id
    volatile.put_of_page(history.connection, page_id, rules.to_bytes())
    shown = sent(history.get(f"/diff/1..2{PATH}"))
    assert "No visible text has changed" in shown
    assert "1 place of noise ignored" in shown
    assert "<del>0</del><ins>1</ins>" in sent(history.get(f"/diff/1..2/raw{PATH}"))


def test_versions_of_another_page_are_not_compared(history):
    history.page("https://example.org/b", "other")
    assert history.get(f"/diff/1..4{PATH}").status == 404
    assert history.get(f"/diff/1..99{PATH}").status == 404


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("url=https://example.org/a", PATH),
        ("url=+example.org/a+&at=", PATH),
        (
            "url=http://EXAMPLE.org/%C3%BC&at=2026-05-29T10:00",
            "/@2026-05-29T10:00/http/example.org/%C3%BC",
        ),
        ("url=//evil.test/x", "/https/evil.test/x"),
        ("url=javascript:alert(1)", None),
        ("url=", None),
        ("url=example.org/%0d%0aSet-Cookie:x", "/https/example.org/Set-Cookie:x"),
    ],
)
def test_open_redirects_to_the_page(mirror, header_of, query, path):
    reply = mirror.get(f"/open?{query}")
    assert (reply.status, header_of(reply, "location")) == (302 if path else 404, path)


def test_titles_are_escaped(mirror):
    mirror.page(URL, "<p>one", title="<script>alert(1)</script>\u202e")
    mirror.page(URL, "<p>two", title="<script>alert(1)</script>\u202e", at=NOW + 1)
    for target in ("/site/docs", f"/versions{PATH}", f"/diff/1..2{PATH}"):
        assert "<script>" not in sent(mirror.get(target))
