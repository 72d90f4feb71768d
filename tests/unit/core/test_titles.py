"""Titles without the name of their site."""

import pytest

from crawld.core.titles import common_end, title_of_path, without_end


@pytest.mark.parametrize(
    ("titles", "end"),
    [
        (["A - Wiki", "B - Wiki", "C - Wiki"], " - Wiki"),
        (["A | Docs | Site", "B | Docs | Site", "C | Docs | Site", "D"], " | Docs | Site"),
        (["A | X | Site", "B | Y | Site", "C | Z | Site"], " | Site"),
        (["A - Wiki", "B - Wiki"], ""),
        (["A - Wiki", "B - Wiki", "C - Wiki", "D", "E", "F"], ""),
        (["A-Wiki", "B-Wiki", "C-Wiki"], ""),
        ([], ""),
    ],
)
def test_the_end_that_most_titles_share(titles, end):
    assert common_end(titles) == end


def test_a_title_that_is_only_the_name_of_the_site_is_kept():
    titles = [" - Wiki", " - Wiki", " - Wiki"]
    assert [without_end(title, common_end(titles)) for title in titles] == titles


def test_the_end_of_a_huge_title_is_read_only_near_its_end():
    assert common_end(["x - " * 500_000] * 3) == " - x - "
    assert common_end(["x" * 1_000_000 + " - Wiki"] * 3) == " - Wiki"


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/wiki/Alan_Turing", "Alan Turing"),
        ("/a/b.c/page+one.html", "page one"),
        ("/a/v1.2/", "v1.2"),
        ("/.html", ".html"),
        ("/", ""),
        ("", ""),
    ],
)
def test_the_title_that_a_path_suggests(path, title):
    assert title_of_path(path) == title
