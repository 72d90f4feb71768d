import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.export.names import (
    PATH_BYTES,
    SEGMENT_BYTES,
    marked_path,
    page_path,
    path_key,
    quote_path,
    relative_link,
)


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("https://example.org/", "text/html", "example.org/index.html"),
        ("https://example.org/wiki/A", "text/html", "example.org/wiki/A.html"),
        ("https://example.org/a.htm", "text/html", "example.org/a.htm"),
        ("https://example.org/a.php", "text/html", "example.org/a.php.html"),
        ("https://example.org/a.html", "image/png", "example.org/a.html.png"),
        ("https://example.org/index.php/A", "text/html", "example.org/index.php_/A.html"),
        ("https://example.org/Talk:A", "text/html", "example.org/Talk_A.html"),
        ("https://example.org/K%C3%B6ln", "text/html", "example.org/Köln.html"),
        ("https://example.org/photo.JPG", "image/jpeg", "example.org/photo.JPG"),
        ("https://example.org/a.tar.gz", "application/gzip", "example.org/a.tar.gz"),
        ("https://example.org/raw", "application/octet-stream", "example.org/raw.bin"),
        ("http://[::1]:8080/a//b", "text/html", "[__1]_8080/a/_/b.html"),
        ("http://h/con/aux.css", "text/css", "h/_con/_aux.css"),
        ("http://h/.htaccess", "text/plain", "h/_.htaccess"),
        ("http://h/x%00y", "text/html", "h/x_y.html"),
        ("http://h/..%2F..%2Fetc%2Fpasswd", "text/html", "h/_.._.._etc_passwd.html"),
        ("http://h/a%5C..%5Cb", "text/html", "h/a_.._b.html"),
        ("http://h/end.%20", "text/html", "h/end.html"),
        ("http://index.html/", "text/html", "index.html_/index.html"),
    ],
)
def test_page_path(url, kind, path):
    assert page_path(canonicalize(url), kind) == path


def test_a_url_with_a_query_has_a_mark():
    one, other = (page_path(f"http://h/s.css?v={n}", "text/css") for n in (1, 2))
    assert one != other
    assert one.startswith("h/s~")
    assert one.endswith(".css")


def test_long_names_are_cut_and_keep_their_extension():
    path = page_path("http://h/" + "%C3%A9" * 300 + ".png", "image/png")
    assert len(path.encode()) <= SEGMENT_BYTES + 2
    assert path.endswith(".png")


def test_a_path_that_is_too_long_becomes_a_mark():
    path = page_path("http://h/" + "d/" * 3000, "text/html")
    assert len(path) < 40


@pytest.mark.parametrize(
    ("one", "other"),
    [("/a", "/A"), ("/straße", "/STRASSE"), ("/a", "/a.html"), ("/a?", "/a"), ("/a:b", "/a_b")],
)
def test_paths_that_file_systems_merge_share_a_key(one, other):
    urls = [canonicalize(f"http://h{each}") for each in (one, other)]
    assert len({path_key(page_path(url, "text/html")) for url in urls}) == 1


def test_a_mark_changes_the_key():
    path = page_path("http://h/A", "text/html")
    assert path_key(marked_path(path, "http://h/A")) != path_key(path)


segments = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@given(st.lists(segments, max_size=6), st.sampled_from(["text/html", "image/png", None, "x/y"]))
def test_rule_1_and_2_hold_for_any_url(parts, kind):
    try:
        url = canonicalize("http://h/" + "/".join(parts))
    except InvalidUrlError:
        return
    for path in (page_path(url, kind), marked_path(page_path(url, kind), url)):
        *directories, name = path.split("/")
        assert len(path.encode()) <= PATH_BYTES + SEGMENT_BYTES
        for segment in (*directories, name):
            assert segment not in ("", ".", "..")
            assert segment[0] != "."
            assert segment[-1] not in " ."
            assert not set(segment) & set('<>:"|?*\\\0\n')
        assert "." in name
        assert all("." not in each or each.endswith("_") for each in directories[1:])


@pytest.mark.parametrize(
    ("here", "there", "link"),
    [
        ("h/index.html", "h/a.html", "a.html"),
        ("h/a/b.html", "h/c/d.html", "../c/d.html"),
        ("h/a/b.html", "g/index.html", "../../g/index.html"),
        ("index.html", "h/index.html", "h/index.html"),
        ("h/a", "h/", "./"),
        ("h/a/b", "h/", "../"),
    ],
)
def test_relative_link(here, there, link):
    assert relative_link(here, there) == link


def test_quote_path_encodes_delimiters():
    assert quote_path("h/a#b 100%.html") == "h/a%23b%20100%25.html"
