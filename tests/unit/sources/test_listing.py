"""Directories as web servers write them, and other pages of links."""

import pytest

from crawld.sources.listed_page import read_date
from crawld.sources.listing import read_listing
from tests.unit.steps import count_steps

URL = "http://a.test/docs/"
NINE = read_date("2026-11-21T09:00Z")

NGINX = b"""<html><head><title>Index of /docs/</title></head><body><h1>Index of /docs/</h1><hr><pre>
<a href="../">../</a>
<a href="b%20c.html">b c.html</a>                                21-Nov-2026 09:00      1234
<a href="d/">d/</a>                                              21-Nov-2026 09:00         -
</pre><hr></body></html>"""
APACHE = b"""<table><tr><th><a href="?C=N;O=D">Name</a></th></tr>
<tr><td valign="top"><img src="/icons/text.gif"></td><td><a href="b%20c.html">b c.html</a></td>
<td align="right">2026-11-21 09:00  </td><td align="right">1.2K</td></tr>
<tr><td><a href="d/">d/</a></td><td>2026-11-21 09:00 </td></tr></table>"""
LIGHTTPD = b"""<tr class="d"><td class="n"><a href="d/">d</a>/</td><td class="m">-</td></tr>
<tr><td class="n"><a href="b%20c.html">b c</a></td><td class="m">2026-Nov-21 09:00:17</td></tr>"""


@pytest.mark.parametrize("body", [NGINX, APACHE, LIGHTTPD])
def test_directories(body):
    dates = {entry.url: entry.changed for entry in read_listing(body, URL, None).entries}
    assert dates["http://a.test/docs/b%20c.html"] == NINE
    assert dates["http://a.test/docs/d/"] == (None if body is LIGHTTPD else NINE)


def test_a_page_of_links():
    body = b"<p><a href=/1>one</a> of <a href='/2'>two</a> <a href=/1>again</a> <a href=./>self</a>"
    listing = read_listing(body, URL, "Sat, 21 Nov 2026 09:00:00 GMT")
    assert [tuple(entry) for entry in listing.entries] == [
        ("http://a.test/1", None, None),
        ("http://a.test/2", None, None),
    ]
    assert listing.own_page.changed == read_date("2026-11-21T09:00:00Z")


@pytest.mark.parametrize(
    "body", [b"", b"\0" * 100, b"<a href=" * 5_000, b"<a href='x'>y</a>" + b"<b>" * 9_999]
)
def test_junk_is_read_quickly(body):
    assert len(read_listing(body, URL, "soon").entries) <= 1


@pytest.mark.parametrize(
    "piece",
    [
        *(b"<a ", b"<a href", b"<a href=", b'<a x href = "', b"<a href=x", b"<a href=x>", b"<b>"),
        *(
            b"<a href=x>x</a>",
            b"<a href=x>x</a><b>",
            b"<a href=x>x</a> ",
            b"<a href=x>x</a><",
            b" ",
        ),
        b"2026-11-21 ",
    ],
)
def test_hostile_listings_are_read_in_linear_time(piece):
    # re2 is linear; the steps are those of the matches. Many formatting tags are counted one by one
    # from some number on, so that both sizes must be beyond it.
    least = 3_000 if piece == b"<b>" else 1_000
    few, many = (b"<html>" + piece * count for count in (least, 2 * least))
    steps = [count_steps(read_listing, body, "http://a.test/", None) for body in (few, many)]
    assert steps[1] < 2.3 * steps[0] + 2_000
