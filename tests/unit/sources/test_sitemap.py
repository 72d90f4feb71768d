"""Sitemaps: valid ones, real ones, and hostile ones."""

import gzip
import tracemalloc
import zlib
from pathlib import Path

import pytest

from crawld.sources.listed_page import ListedPage, TimeSpan, read_date
from crawld.sources.sitemap import (
    MAX_EXPANSION,
    MAX_SILENT_BYTES,
    DateStatistics,
    SitemapError,
    SitemapKind,
    SitemapReader,
    pack,
    unpack,
)

DATA = Path(__file__).parents[2] / "data" / "sources"
NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
NOW = 1_795_262_400.0


def read(body):
    """Return kind, entries and junk of a document."""
    reader, found = SitemapReader(), []
    for piece in unpack(body):
        found += reader.feed(piece)
    return reader.kind, found + reader.close(), reader.junk


def urlset(*rows, ns=NS, root="urlset"):
    return f'<?xml version="1.0"?>\n<{root} xmlns="{ns}">{"".join(rows)}</{root}>'.encode()


def row(loc, **more):
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in {"loc": loc, **more}.items())
    return f"<url>{fields}</url>"


def test_pages_with_dates_and_frequencies():
    body = urlset(
        row(
            "http://a.test/x?a=1&amp;b=2", lastmod="2026-11-21", changefreq="daily", priority="0.5"
        ),
        row("\n http://A.test/b%c3%bc \n", changefreq=" Never "),
        row("http://a.test/c", lastmod="soon", changefreq="often"),
    )
    assert read(body) == (
        SitemapKind.PAGES,
        [
            ListedPage("http://a.test/x?a=1&b=2", read_date("2026-11-21"), 86_400.0),
            ListedPage("http://a.test/b%C3%BC", None, float("inf")),
            ListedPage("http://a.test/c"),
        ],
        0,
    )


def test_an_index():
    listed = row("http://a.test/1.xml.gz", lastmod="2026-11-21T12:00:00Z")
    index = urlset(listed.replace("url>", "sitemap>"), root="sitemapindex")
    entry = ListedPage("http://a.test/1.xml.gz", TimeSpan(NOW, NOW + 1.0))
    assert read(index) == (SitemapKind.INDEX, [entry], 0)


def test_fields_of_images_and_news_are_ignored():
    body = urlset(
        "<url><image:image xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'>"
        "<image:loc>http://a.test/i.png</image:loc></image:image>"
        "<loc>http://a.test/p</loc><x:lastmod xmlns:x='urn:x'>2026</x:lastmod></url>"
    )
    assert read(body)[1] == [ListedPage("http://a.test/p")]


@pytest.mark.parametrize("ns", ["", "http://www.google.com/schemas/sitemap/0.84", "urn:whatever"])
def test_any_namespace_of_the_root_is_accepted(ns):
    assert read(urlset(row("http://a.test/p"), ns=ns))[1] == [ListedPage("http://a.test/p")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_encodings(encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><urlset>{row("http://a.test/ü")}</urlset>'
    assert read(text.encode(encoding))[1] == [ListedPage("http://a.test/%C3%BC")]


def test_lines_of_urls():
    body = b"\xef\xbb\xbfhttp://a.test/1\r\nhttps://a.test/2\n\n# said\nhttp://a.test/3"
    urls = ["http://a.test/1", "https://a.test/2", "http://a.test/3"]
    assert read(body) == (SitemapKind.PAGES, [ListedPage(url) for url in urls], 0)


def test_urls_that_cannot_be_fetched_are_counted():
    rows = [row("ftp://a.test/"), row(""), row("http://a.test/"), row("/x")]
    assert read(urlset(*rows)) == (SitemapKind.PAGES, [ListedPage("http://a.test/")], 3)


def test_a_feed_may_be_a_sitemap():
    reader = SitemapReader()
    reader.feed(b"<rss version='2.0'><channel>")
    assert reader.kind is SitemapKind.FEED


def test_what_a_real_mediawiki_writes():
    kind, found, junk = read((DATA / "mediawiki_sitemap.xml.gz").read_bytes())
    assert (kind, len(found), junk) == (SitemapKind.PAGES, 13, 0)
    assert found[0] == ListedPage("http://wiki.test/wiki/AC/DC", read_date("2023-03-31T01:27:11Z"))


def test_gzip_members_and_padding():
    body = urlset(row("http://a.test/1"))
    packed = gzip.compress(body[:90]) + gzip.compress(body[90:])
    assert read(packed + b"\0" * 500)[1] == [ListedPage("http://a.test/1")]


# --- hostile input ------------------------------------------------------------------------------

LAUGHS = (
    b'<!DOCTYPE urlset [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    b"<urlset><url><loc>http://a.test/&b;</loc></url></urlset>"
)
SECRETS = (
    b'<!DOCTYPE urlset [<!ENTITY f SYSTEM "file:///etc/hostname">]>'
    b"<urlset><url><loc>http://a.test/&f;</loc></url></urlset>"
)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (LAUGHS, "document type"),
        (SECRETS, "document type"),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "HTML page"),
        (b"<html><body>Not found</body></html>", "HTML page"),
        (b"<svg/>", "<svg>"),
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<urlset><url>", "well-formed"),
        (b"<urlset>&nothing;</urlset>", "well-formed"),
        (b'<?xml version="1.0" encoding="x-none"?><urlset/>', "unreadable"),
        (b"<urlset>" + b"<url>" * 20, "deep"),
        (b"not found\n" * 100, "lines of URLs"),
        (b"\0\1\2" * 100_000, "lines of URLs"),
        (gzip.compress(b"<urlset></urlset>")[:-6], "incomplete"),
        (b"\x1f\x8b" + b"junk" * 100, "gzip"),
    ],
)
def test_hostile_documents_raise(body, why):
    with pytest.raises(SitemapError, match=why):
        read(body)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: b"<urlset><url><loc>" + b"x" * (3 * MAX_SILENT_BYTES), "without an element"),
        (lambda: b"<urlset><!--" + b"-x" * (2 * MAX_SILENT_BYTES), "without an element"),
        (lambda: b"<urlset " + b"a" * (3 * MAX_SILENT_BYTES), "without an element"),
        (lambda: gzip.compress(b"<urlset>" + b"<url></url>" * 1_000_000), "unpack"),
    ],
    ids=["text", "comment", "attribute", "compressed"],
)
def test_documents_that_are_too_large_raise(make, why):
    with pytest.raises(SitemapError, match=why):
        read(make())


def test_entries_before_the_error_are_kept():
    reader = SitemapReader()
    piece = urlset(*(row(f"http://a.test/{i}") for i in range(3))).replace(b"</urlset>", b"<url><")
    with pytest.raises(SitemapError):
        reader.feed(piece + b"<")
    assert reader.take_entries() == [ListedPage(f"http://a.test/{i}") for i in range(3)]


def test_a_long_text_is_not_kept():
    reader = SitemapReader()
    reader.feed(b"<urlset><url><loc>http://a.test/</loc><lastmod>")
    for _ in range(20):
        reader.feed(b"2" * 50_000)
    assert reader.feed(b"</lastmod></url>") == [ListedPage("http://a.test/")]


def packed_sitemap(count):
    """Return a gzipped sitemap without ever holding it unpacked."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    parts = [packer.compress(f'<urlset xmlns="{NS}">'.encode())]
    for start in range(0, count, 1_000):
        urls = (f"http://a.test/{i}" for i in range(start, start + 1_000))
        rows = "".join(row(url, lastmod="2026-11-21") for url in urls)
        parts.append(packer.compress(rows.encode()))
    return b"".join([*parts, packer.compress(b"</urlset>"), packer.flush()])


def peak_bytes(body):
    """Return the number of entries of a packed sitemap, and the peak memory of reading it."""
    reader, census, count = SitemapReader(), DateStatistics(NOW), 0
    tracemalloc.start()
    for piece in unpack(body):
        found = reader.feed(piece)
        census.add(found)
        count += len(found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return count, peak


def test_memory_does_not_grow_with_the_sitemap():
    small, large = packed_sitemap(2_000), packed_sitemap(30_000)
    (few, before), (many, after) = peak_bytes(small), peak_bytes(large)
    assert (few, many) == (2_000, 30_000)
    assert after < 1.3 * before


# --- statistics of dates -------------------------------------------------------------------------


def census_of(dates):
    census = DateStatistics(NOW)
    for start in range(0, len(dates), 7):
        part = dates[start : start + 7]
        census.add([ListedPage("http://a.test/", read_date(date)) for date in part])
    return census


def test_a_shared_date_is_the_date_of_the_file():
    census = census_of(["2026-11-20T10:00:00Z"] * 19 + ["2026-01-01"])
    assert census.shared_date() == read_date("2026-11-20T10:00:00Z")


def test_open_until_is_the_end_of_the_last_open_span():
    assert census_of(["2026-11-20", "2026-01-01"]).open_until is None
    today = read_date("2026-11-21")
    assert census_of(["2026-11-20", "2026-11-21", "2027-01-01"]).open_until == today.end
    assert census_of(["2026-11-21", "2026"]).open_until == read_date("2026").end


@pytest.mark.parametrize(
    "dates",
    [
        ["2026-11-20"] * 9,  # a few pages may have changed together
        ["2026-11-20"] * 15 + ["2026-11-19"] * 5,
        ["2026-11-20"] * 15 + [""] * 5,
        [f"2026-10-{day:02}" for day in range(1, 31)],
        [],
    ],
)
def test_distinct_dates_are_not_shared(dates):
    assert census_of(dates).shared_date() is None


def test_future_dates_are_counted_and_are_not_the_newest():
    census = census_of(["2026-11-20", "2026-12-24", "2099"])
    assert (census.dated, census.future, census.newest) == (3, 2, read_date("2026-11-20").first)


def test_empty_members_are_refused_after_a_bounded_number():
    with pytest.raises(SitemapError, match="compressed parts"):
        list(unpack(gzip.compress(b"", mtime=0) * 50_000))


def test_many_blocks_without_output_leave_pauses():
    blocks = gzip.compress(b"", mtime=0)[:10] + b"\0\0\0\xff\xff" * 400_000
    pieces = []
    reader = map(pieces.append, unpack(blocks))
    with pytest.raises(SitemapError, match="incomplete"):
        list(reader)
    assert len(pieces) > 20
    assert set(pieces) == {b""}


def test_a_list_that_repeats_itself_can_be_packed_and_read_again():
    body = b" " * 10_000_000
    packed = pack(body)
    assert len(packed) * MAX_EXPANSION < len(body)
    assert b"".join(unpack(packed, packed_here=True)) == body
    with pytest.raises(SitemapError, match="unpack to more than"):
        list(unpack(packed))
    assert pack(packed) is packed
