"""Seeds from lists, files and titles."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.config.seeds import BadSeed, Seed, read_seeds, title_path
from crawld.config.site import SiteConfig
from crawld.core.url import canonicalize
from crawld.errors import ConfigError, InvalidUrlError


@pytest.mark.parametrize(
    ("title", "path"),
    [
        ("Web crawler", "Web_crawler"),
        (" Web  _crawler_ ", "Web_crawler"),
        ("iPhone", "iPhone"),
        ("C++ (language)", "C%2B%2B_(language)"),
        ("AC/DC", "AC/DC"),
        ("What?", "What%3F"),
        ("100%", "100%25"),
        ("R&B", "R%26B"),
        ("Café", "Caf%C3%A9"),
        ("Talk:Main Page", "Talk:Main_Page"),
    ],
)
def test_titles_are_encoded_as_mediawiki_does(title, path):
    assert title_path(title) == path


@pytest.mark.parametrize(
    "title", ["", " _ ", "a#b", "a|b", "a[1]", "..", "a/../b", "x" * 256, "\t\0"]
)
def test_invalid_titles_are_refused(title):
    with pytest.raises(InvalidUrlError):
        title_path(title)


@given(st.text(max_size=60))
def test_any_title_is_one_segment_of_a_url_or_refused(title):
    try:
        path = title_path(title)
    except InvalidUrlError:
        return
    url = canonicalize(f"https://w.example/wiki/{path}")
    assert url.startswith("https://w.example/wiki/")
    assert "?" not in url


def site(**keys):
    return SiteConfig.model_validate({"name": "s", **keys})


def test_a_file_of_urls(tmp_path):
    path = tmp_path / "u.txt"
    long_line = b"https://a.example/" + b"x" * 200_000
    begin = b"\xef\xbb\xbfhttps://A.example/1\r\n\n  # no\n"
    path.write_bytes(begin + long_line + b"\n\xff\xfe\nhttps://b.example")
    first, long, junk, last = read_seeds(site(seeds_file=path))
    assert [(type(each), each.line) for each in (long, junk)] == [(BadSeed, 4), (BadSeed, 5)]
    assert (first.url, first.line) == ("https://a.example/1", 1)
    assert (last.url, last.line) == ("https://b.example/", 6)
    assert len(long.text) <= 80


def test_titles_and_list_together(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("Web crawler\n#  a comment\nA|B\nC++\n")
    title_url = "https://w.example/wiki/{title}"
    wiki = site(seeds=["https://w.example/"], titles_file=path, title_url=title_url)
    urls = [each.url for each in read_seeds(wiki) if isinstance(each, Seed)]
    paths = ("", "wiki/Web_crawler", "wiki/C%2B%2B")
    assert urls == [f"https://w.example/{path}" for path in paths]
    assert len(list(read_seeds(wiki, max_lines=1))) == 2


def test_files_that_cannot_be_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path / "none", tmp_path, pipe):
        with pytest.raises(ConfigError):
            list(read_seeds(site(seeds_file=path)))
