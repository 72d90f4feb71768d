"""How much of a page is parsed so that its tree stays within its memory."""

import tracemalloc

import pytest

from crawld.core.content.page_memory import analysable_size, analysis_bytes
from crawld.core.content.tree_memory import (
    ATTRIBUTE_BYTES,
    MAX_TEXT_BYTES,
    TAG_BYTES,
    TREE_BYTES,
    TagScan,
    count_tags,
    size_within,
    tree_limit,
    working_set_bytes,
)

PAGE = b"<html><head><title>x</title><body>"


def repeat(part, size=MAX_TEXT_BYTES, start=PAGE):
    return start + part * ((size - len(start)) // len(part))


def limit_of(body):
    return tree_limit(TagScan(body, len(body)))


@pytest.mark.parametrize(
    "part",
    [
        b"lorem ipsum dolor sit amet > \n",
        b"<p>" + b"lorem ipsum dolor sit amet, " * 10,
        b'<p><a href="/wiki/Lorem_ipsum" title="Lorem ipsum">lorem</a> ' + b"dolor sit " * 20,
        b"<p><b>lorem</b> <i>ipsum</i> " + b"dolor sit amet " * 30,
    ],
)
def test_ordinary_pages_are_parsed_whole(part):
    body = repeat(part)
    assert limit_of(body) == len(body)


@pytest.mark.parametrize(
    ("part", "cost_bytes"),
    [
        (b"<br>", TAG_BYTES),
        (b"<p>a", TAG_BYTES),
        (b"<p a b c>", TAG_BYTES + 3 * ATTRIBUTE_BYTES),
        (b"<p\ta\nb\fc>", TAG_BYTES + 3 * ATTRIBUTE_BYTES),
        (b"<p/a/b/c>", TAG_BYTES + 3 * ATTRIBUTE_BYTES),
        (b'<p x=">" a b c>', TAG_BYTES + 4 * ATTRIBUTE_BYTES),
        (b"<p x='1'y='2'z='3'>", TAG_BYTES + 3 * ATTRIBUTE_BYTES),
        (b"<p " + b"a " * 1000 + b">", TAG_BYTES + 1000 * ATTRIBUTE_BYTES),
    ],
)
def test_a_page_is_cut_where_its_tree_reaches_the_limit(part, cost_bytes):
    body = repeat(part)
    tags = body.count(b"<", 0, limit_of(body))
    assert tags * cost_bytes == pytest.approx(TREE_BYTES, rel=0.35)
    assert tags * cost_bytes <= TREE_BYTES * 1.01


@pytest.mark.parametrize("body", [b"", b"<", b"<p", b"<" * 5000, b"<p " * 5000, b"<b>" * 5000])
def test_broken_pages_have_a_limit(body):
    assert 0 <= limit_of(body) <= len(body)


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 100_000])
def test_the_tags_of_a_page_are_counted_up_to_a_size(size):
    body = b"<p>a</p>\xff" * 20_000
    assert count_tags(body, size) == body[:size].count(b"<")


def test_the_working_set_grows_with_the_body_up_to_the_limits():
    sizes = [0, 1000, 10**5, 10**6, MAX_TEXT_BYTES, 64 * 2**20]
    found = [working_set_bytes(size) for size in sizes]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] <= TREE_BYTES + 96 * 2**20


@pytest.mark.parametrize("memory_mb", [10, 100, 200])
def test_what_fits_is_as_large_as_possible_within_a_factor_of_two(memory_mb):
    size = size_within(memory_mb * 2**20)
    assert working_set_bytes(size) <= memory_mb * 2**20 < working_set_bytes(2 * size)
    assert size_within(2**40) == MAX_TEXT_BYTES


def test_an_article_takes_less_than_its_length_tells():
    body = (
        b"<p>Twelve words of prose stand in this paragraph, which is not marked up.</p>\n" * 20_000
    )
    assert analysis_bytes(body, len(body)) < working_set_bytes(len(body)) / 3
    assert analysis_bytes(b"<p a b c>" * 100_000, 900_000) == working_set_bytes(900_000)


@pytest.mark.parametrize("part", [b"<p>word</p>", b"<p a b c>", b"<b>x<p>", b"a "])
def test_the_part_that_fits_takes_no_more_than_the_memory(part):
    body = part * 2_000_000
    size = analysable_size(body, 20 * 2**20)
    assert 0 < size < len(body)
    assert analysis_bytes(body, size) <= 20 * 2**20 < analysis_bytes(body, min(2 * size, 2**23))


@pytest.mark.parametrize("part", [b"<", b"<p>", b"<b>", b"< a "])
def test_to_find_the_part_that_fits_takes_less_than_the_memory(part):
    body = part * (2**23 // len(part))
    tracemalloc.start()
    try:
        analysable_size(body, 20 * 2**20)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes <= 20 * 2**20


def test_counting_the_tags_of_a_large_page_takes_no_memory():
    body = b"<p>word" * 2_000_000
    tracemalloc.start()
    try:
        assert count_tags(body, len(body)) == 2_000_000
        assert tracemalloc.get_traced_memory()[1] < len(body) / 10
    finally:
        tracemalloc.stop()
