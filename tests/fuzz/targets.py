"""What is fuzzed: each target reads bytes, permits the errors that its reader declares, and checks
what must hold for any input. Anything else that it raises is a finding.
"""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

from crawld.core.content.blocks import blocks_of
from crawld.core.content.html import parse, title_of, tree_of
from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.robots import Robots, deciding_line, parse_robots_tags
from crawld.core.url import (
    canonicalize,
    canonicalize_given,
    registrable_domain,
    resolve,
    server_name,
    split_url,
    suggest_url,
    url_keys,
)
from crawld.errors import InvalidUrlError
from crawld.export.importer import read_page
from crawld.export.warc_reader import DamagedArchiveError, read_warc
from crawld.net.decompress import Decoder
from crawld.net.errors import FetchError
from crawld.sources.event_stream import EventReader, parse_event, read_change, renamed_titles
from crawld.sources.feed import FeedError, read_feed
from crawld.sources.listing import read_listing
from crawld.sources.mediawiki_api import ApiResponse, read_response
from crawld.sources.mediawiki_changes import (
    ChangesCursor,
    read_changes,
    read_oldest,
    read_template_users,
)
from crawld.sources.mediawiki_feed import read_feed as read_revisions
from crawld.sources.mediawiki_history import read_history, read_log, read_titles, revision_kinds
from crawld.sources.mediawiki_listed import read_resolved
from crawld.sources.mediawiki_members import read_counts, read_newest, read_pages
from crawld.sources.mediawiki_rest import parsoid_revision
from crawld.sources.mediawiki_site import find_api, read_siteinfo, shown_revision
from crawld.sources.mediawiki_title import TitleRules
from crawld.sources.mediawiki_usage import read_usage
from crawld.sources.sitemap import SitemapError, SitemapReader, pack, unpack

CORPUS = Path(__file__).parent / "corpus"
"""Inputs to begin with, a folder for each target."""

FOUND = Path(__file__).parent / "found"
"""Inputs that were findings, and stay mended."""

BASE = "https://wiki.test/a/b?c"
AGENT = "crawld/1.0"
NOW = 1_767_225_600.0
MAX_BYTES = 64 * 1024


def fuzz_url(data: bytes) -> None:
    """A canonical URL is canonical, and consists of its parts."""
    text = data.decode("utf-8", "surrogateescape")
    for base in (None, BASE):
        try:
            url = canonicalize(text, base)
        except InvalidUrlError as error:
            suggest_url(text, error)
            continue
        assert canonicalize(url) == url
        assert url.isascii()
        parts = split_url(url)
        assert url.startswith(parts.origin)
        assert parts.origin + parts.target == url
        registrable_domain(parts.host)
        server_name(url)
        assert url_keys(url) == url_keys(url)
    with suppress(InvalidUrlError):
        canonicalize_given(text)
    assert all(canonicalize(each) == each for each in resolve(BASE, text.split("\n")))


def fuzz_robots(data: bytes) -> None:
    """The rules and the line that is shown for them agree."""
    rules = Robots.parse(data, AGENT)
    for name in ("a/b", "a", "private/x?y=%7e", "%2F*$"):
        url = f"https://wiki.test/{name}"
        line = deciding_line(data, AGENT, url)
        assert rules.allowed(url) or line is not None
    assert rules.crawl_delay_s is None or 0.0 <= rules.crawl_delay_s < float("inf")
    assert rules.allowed("https://wiki.test/robots.txt")
    parse_robots_tags(data.decode("latin-1").split("\n"), AGENT)


def fuzz_html(data: bytes) -> None:
    """A page is parsed, outlined and rewritten; what is rewritten is still readable."""
    page = parse(data)
    tree, _ = tree_of(data)
    blocks_of(tree, title_of(tree))
    page.requisites()
    find_api(page, BASE)
    shown_revision(data)
    resolve(BASE, page.links)
    again = rewrite_html(data, BASE, lambda url, *_: None)
    parse(again)


def fuzz_css(data: bytes) -> None:
    """A style sheet without copies of its addresses stays readable."""
    rewrite_css(data, BASE, lambda url, *_: None)


def fuzz_sitemap(data: bytes) -> None:
    """Entries are the same however the document is cut into pieces."""
    whole, cut = (_entries(data, size) for size in (len(data) or 1, 7))
    assert whole == cut
    with suppress(SitemapError):
        for piece in unpack(data):
            assert piece is not None
        assert b"".join(unpack(pack(data), packed_here=True)) in (data, b"".join(unpack(data)))


def _entries(data: bytes, size: int) -> tuple[list[object], bool]:
    reader, found = SitemapReader(), []
    try:
        for start in range(0, len(data), size):
            found += reader.feed(data[start : start + size])
        found += reader.close()
    except SitemapError:
        return [*found, *reader.take_entries()], False
    return found, True


def fuzz_feed(data: bytes) -> None:
    """A feed has entries, or an error that says why not."""
    with suppress(FeedError):
        read_feed(data, BASE)
    read_listing(data, BASE, "Thu, 01 Jan 2026 00:00:00 GMT")


def fuzz_mediawiki(data: bytes) -> None:
    """Each reader of API answers accepts any answer."""
    answer = read_response(200, "5", data, now=NOW, sent="Thu, 01 Jan 2026 00:00:00 GMT")
    if not isinstance(answer, ApiResponse):
        return
    cursor = ChangesCursor(at=NOW - 60.0)
    changes = read_changes(answer, cursor, NOW)
    assert ChangesCursor.from_json(changes.cursor.to_json()) == changes.cursor
    read_oldest(answer, cursor)
    read_template_users(answer)
    page = read_history(answer)
    if page is not None:
        revision_kinds(page.revisions)
    read_titles(answer, ["A", "B"])
    read_log(answer)
    read_resolved(answer, ["A", "Talk:B"])
    read_newest(answer)
    read_counts(answer, ["Category:A"])
    read_pages(answer)
    read_usage(answer)
    read_revisions(answer)
    with suppress(ValueError):
        _check_titles(read_siteinfo(answer.query).titles)


def _check_titles(rules: TitleRules) -> None:
    for title in ("A", "Talk:B", "a_b c", ":x", "\u00e9#y", "T:T:x"):
        spelled = rules.normalize(title)
        if spelled is not None:
            again = rules.normalize(spelled)
            assert again == spelled, f"{title!r}: {spelled!r}, then {again!r}"
            rules.url_of(spelled, "https://wiki.test")


def fuzz_events(data: bytes) -> None:
    """Events are the same however the stream is cut into pieces."""
    whole, cut = ([*_events(data, size)] for size in (len(data) or 1, 3))
    assert whole == cut
    for event in whole:
        parsed = parse_event(event.data)
        if parsed is not None:
            read_change(parsed[0])
            renamed_titles(parsed[0])


def _events(data: bytes, size: int):  # type: ignore[no-untyped-def]
    reader = EventReader()
    for start in range(0, len(data), size):
        yield from reader.feed(data[start : start + size])


def fuzz_warc(data: bytes) -> None:
    """Records are read up to the damage; a page is read, or refused for a reason."""
    with suppress(DamagedArchiveError):
        for record in read_warc(io.BytesIO(data)):
            with suppress(FetchError, InvalidUrlError, ValueError):
                read_page(record, NOW)


def fuzz_codings(data: bytes) -> None:
    """The first line names the codings; the rest decodes within its limit, or fails."""
    name, _, body = data.partition(b"\n")
    with suppress(FetchError):
        decoder = Decoder(name.decode("latin-1"), 1 << 20)
        size = 0
        for start in range(0, len(body), 100):
            size += sum(map(len, decoder.decode(body[start : start + 100])))
        size += sum(map(len, decoder.finish()))
        assert size <= 1 << 20


def fuzz_revision(data: bytes) -> None:
    """The revision of a page in Parsoid's HTML is a number, or there is none."""
    found = parsoid_revision(data)
    assert found is None or found >= 0


TARGETS = {
    name.removeprefix("fuzz_"): check
    for name, check in list(globals().items())
    if name.startswith("fuzz_")
}


def inputs_of(name: str) -> list[Path]:
    """Return the kept inputs of a target, those that were findings last."""
    return [*sorted((CORPUS / name).glob("*")), *sorted((FOUND / name).glob("*"))]
