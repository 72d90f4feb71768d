"""Files of page views."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.config.site import SiteConfig
from crawld.config.views import LEAST_WEIGHT, read_views
from crawld.errors import ConfigError

TITLE_URL = "https://w.test/wiki/{title}"


def site(path):
    return SiteConfig(name="w", seeds=("https://w.test/",), views_file=path, title_url=TITLE_URL)


@pytest.fixture
def read(tmp_path):
    def read(text, **options):
        path = tmp_path / "views.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_views(site(path), **options)

    return read


def test_titles_and_urls_are_weighted_by_their_views(read):
    views = read(
        "# a comment\nWeb crawler 30\nC++\t10\nhttps://w.test/other?x=1 19\nWeb_crawler 1\n"
    )
    weight = {
        path: views.weight(f"https://w.test/{path}")
        for path in ("wiki/Web_crawler", "wiki/C%2B%2B", "other?x=1", "wiki/Unknown")
    }
    # The views of both spellings are added up; the mean of 31, 10 and 19 has weight 1.
    assert weight == pytest.approx(
        {"wiki/Web_crawler": 31 / 20, "wiki/C%2B%2B": 0.5, "other?x=1": 0.95, "wiki/Unknown": 0.5}
    )


def test_a_page_that_nobody_reads_keeps_a_small_weight(read):
    views = read("A 1000000\nB 0\n")
    assert views.weight("https://w.test/wiki/B") == pytest.approx(LEAST_WEIGHT)


@pytest.mark.parametrize("text", ["", "# nothing\n", "A 0\nB 0\n"])
def test_no_views_give_every_page_the_same_weight(read, text):
    views = read(text)
    assert views.weight("https://w.test/wiki/A") == views.weight("https://w.test/wiki/C")


def test_bad_lines_are_counted_and_hide_no_other(read):
    bad = ["alone", "A -1", "A 1.5", "A 9999999999999999", "[bad] 3", "http://[ 4", "7", "B 3x"]
    text = "\n".join([*bad, "Good 5"]).encode() + b"\n\xff\xfe 3\n"
    views = read(text)
    assert views.bad_count == len(bad) + 1
    assert [each.line for each in views.bad] == [1, 2, 3, 4, 5]
    assert len(views.hashes) == 1
    assert read("A 1\nB 1\nC 1\n", max_lines=2).hashes.shape == (2,)


def test_a_missing_file_is_the_operators_error(tmp_path):
    with pytest.raises(ConfigError, match="views_file"):
        read_views(site(tmp_path / "none.txt"))


@given(st.lists(st.tuples(st.sampled_from("ABCDE"), st.integers(0, 10**6)), min_size=1))
def test_the_order_of_lines_does_not_matter_and_the_mean_is_one(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("views") / "v"
    found = []
    for order in (lines, lines[::-1]):
        path.write_text("".join(f"{title} {count}\n" for title, count in order))
        found.append(read_views(site(path)))
    first, second = found
    assert (first.weights == second.weights).all()
    assert first.weights.min() >= LEAST_WEIGHT * 0.999
    if sum(count for _, count in lines) >= len(first.hashes):
        assert 1.0 <= float(first.weights.mean()) + 1e-3 <= 1.02


def test_the_digest_tells_weights_apart_and_not_their_order(read):
    digests = [
        read(text).digest for text in ("A 1\nB 2\n", "B 2\nA 1\n", "A 2\nB 1\n", "A 1\nC 2\n")
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
