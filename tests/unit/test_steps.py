"""Counted steps are the same at each run, and tell linear from quadratic work."""

import pytest

from crawld.core.content.markup import unescape
from crawld.core.content.references import css_references
from crawld.core.content.url_syntax import refresh_url_span
from tests.unit.steps import assert_linear, count_steps


def test_the_same_work_is_the_same_number_of_steps():
    text = "&amp;" * 100
    unescape(text)
    assert count_steps(unescape, text) == count_steps(unescape, text) > 100


def test_code_outside_crawld_is_not_counted():
    assert count_steps(sorted, range(1_000), key=lambda number: -number) == 0


def test_linear_work_passes():
    assert_linear(lambda size: "url(a) " * size, lambda css: list(css_references(css)))


def test_quadratic_work_is_seen():
    def read_every_prefix(text):
        for end in range(0, len(text), 50):
            unescape(text[:end])

    with pytest.raises(AssertionError, match="steps at size"):
        assert_linear(lambda size: "&lt;" * size, read_every_prefix)


def test_quadratic_work_within_methods_of_texts_is_seen():
    def read_all_each_time(text):
        for _ in range(0, len(text), 100):
            refresh_url_span(text)

    with pytest.raises(AssertionError, match="steps at size"):
        assert_linear(lambda size: "a" * size, read_all_each_time, size=20_000)
