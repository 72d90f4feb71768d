"""How many pages the edit of a template may change, before its pages are listed."""

import pytest

from crawld.core.revisit.template_sizes import UNNAMED_USES, LikelySizes, by_uses, like_others

USES = {"Template:Wide": 200, "Template:Box": 40, "File:A.png": 4}


def likely(listed=None, uses=(), *, copies=180, articles=200):
    return LikelySizes(listed or {}, dict(uses), copies=copies, articles=articles)


def test_a_listed_template_affects_as_many_pages_as_then():
    assert likely({"Template:Wide": 150}, USES).of("Template:Wide") == 150.0


def test_nothing_is_known_of_the_first_template():
    sizes = likely().of("Template:Wide")
    assert min(sizes) < 1.2
    assert max(sizes) > 150.0


def test_a_third_template_is_larger_than_two_others_in_one_of_three_cases():
    sizes = likely({"Template:Box": 10, "Template:Note": 20, "File:A.png": 1}).of("Template:Wide")
    assert sum(size > 20.5 for size in sizes) / len(sizes) == pytest.approx(1 / 3, abs=0.05)
    # Templates are not like files.
    assert max(likely({"File:A.png": 1, "File:B.png": 1}).of("File:C.png")[:20]) < 1.1


def test_the_wiki_says_how_many_pages_use_a_template():
    # Nine of ten pages of the wiki are mirrored; no mirror has more pages of it than copies.
    sizes = likely(uses=USES).of("Template:Box")
    assert (min(sizes) >= 36.0, max(sizes) <= 40.0) == (True, True)
    assert set(likely(uses=USES, copies=180, articles=180).of("Template:Wide")) == {180.0}
    # Of a small part nobody knows; templates that were listed tell.
    wide = likely(uses=USES, copies=20, articles=2_000).of("Template:Box")
    assert min(wide) < 5.0 < 15.0 < max(wide)
    listed = {f"Template:{number}": 1 for number in range(20)}
    uses = USES | dict.fromkeys(listed, 100)
    learned = likely(listed, uses, copies=20, articles=2_000).of("Template:Box")
    assert sum(size == pytest.approx(0.4) for size in learned) / len(learned) > 0.9


def test_a_template_that_the_wiki_does_not_name_is_used_seldom():
    assert max(likely(uses=USES).of("Template:New")) <= UNNAMED_USES
    # A full list names only the most used ones.
    full = {f"Template:{number}": 50 + number for number in range(500)}
    sizes = likely(uses=full).of("Template:New")
    assert UNNAMED_USES < max(sizes) <= 50.0


def test_any_template_is_one_that_was_not_listed():
    sizes = likely({"Template:Wide": 190}, USES).of_any()
    assert max(sizes) <= 40.0
    assert likely({"Template:Wide": 150}).of_any() == like_others([150.0], 180.0)


def test_likely_sizes_are_possible():
    for sizes in (like_others([0.0, 900.0], 100.0), by_uses(3.0, [0.0, 1.0], 0.5)):
        assert all(0.0 <= size <= 100.0 for size in sizes)
