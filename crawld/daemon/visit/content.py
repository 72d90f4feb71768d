"""The content of a response: its type, title, links we may follow, and requisites.

A body that was already analysed for a comparison is not parsed again (`content_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import islice

from crawld.core.content import html, media
from crawld.core.content.analysis import Analysis
from crawld.core.content.documents import FEED_TYPES, PDF
from crawld.core.content.feed_blocks import feed_title
from crawld.core.content.parse_limits import MAX_PARSE_BYTES
from crawld.core.content.requisites import Needs, page_requisites, stylesheet_requisites
from crawld.core.link_cache import LINKS
from crawld.core.robots import parse_robots_tags
from crawld.core.url import canonicalize, split_url
from crawld.core.value_type import value_type
from crawld.errors import InvalidUrlError
from crawld.net.exchange import PREFIX_BYTES, FetchResponse
from crawld.pdf_text import PdfText

PRODUCT = "crawld"
"""The product token that robots.txt and robots tags may name."""

FEED_HEAD_BYTES = 8_192
"""Bytes of a feed that are read for its title."""

HTML_TYPES = frozenset({media.HTML, media.XHTML})
CSS = "text/css"


@value_type
class PageContent:
    """The content of a page.

    Attributes:
        content_type: the media type, declared or detected.
        charset: the charset it was decoded with, None if it is not text.
        title: of an HTML page, a feed or a PDF.
        urls: canonical URLs of the links that we may follow.
        noarchive: whether the page asks not to be stored.
        base: the base of its relative URLs, where that is not its own URL.
        shows_url: target of a wiki redirect that was served with status 200.
        needs: canonical URLs that a browser loads to show it; None: they were not read.
    """

    content_type: str
    charset: str | None = None
    title: str | None = None
    urls: Sequence[str] = ()
    noarchive: bool = False
    base: str | None = None
    shows_url: str | None = None
    needs: Sequence[str] | None = None
    page: html.ParsedPage | None = field(default=None, repr=False, compare=False)


def read_content(
    url: str, response: FetchResponse, max_links: int, *, needs: Needs | None = None
) -> PageContent:
    """Parse a body for its links alone, without cutting blocks: the cheap way for first copies.

    Args:
        needs: which requisites of a page to read; None: none.
    """
    declared = response.header("content-type")
    content_type = media.sniff(declared, response.body[:PREFIX_BYTES])
    if content_type not in HTML_TYPES:
        return _without_page(response, content_type, None)
    decoded = media.decode(response.body, media.charset_parameter(declared))
    page = html.parse(decoded.text, max_links=max_links)
    return _of_page(url, response, page, content_type, decoded.charset, needs)


def needed_by(
    url: str,
    response: FetchResponse,
    content: PageContent,
    needs: Needs,
) -> Sequence[str]:
    """Return the canonical URLs that a browser loads to show a page or a style sheet.

    Args:
        response: its body, HTML or CSS; other types need nothing.
    """
    if content.page is not None:
        return _needed_by_page(content.page, content.base or url, needs)
    if content.content_type != CSS:
        return []
    declared = media.charset_parameter(response.header("content-type"))
    text = media.decode(response.body[:MAX_PARSE_BYTES], declared).text
    hrefs = dict.fromkeys(stylesheet_requisites(text))
    return LINKS.resolve(url, islice(hrefs, needs.most))


def _needed_by_page(page: html.ParsedPage, base: str, needs: Needs) -> Sequence[str]:
    hrefs = page_requisites(page, include_media=needs.media)
    return LINKS.resolve(base, islice(hrefs, needs.most))


def content_of(
    url: str, response: FetchResponse, analysis: Analysis, needs: Needs | None = None
) -> PageContent:
    """Return the content of an analysed body; see `read_content`."""
    if analysis.page is None or analysis.content_type not in HTML_TYPES:
        return _without_page(response, analysis.content_type, analysis.charset)
    charset = analysis.charset or "utf-8"
    return _of_page(url, response, analysis.page, analysis.content_type, charset, needs)


def unread_content(response: FetchResponse) -> PageContent:
    """Return the content of a body that must not be analysed, by its header alone."""
    declared = media.media_type(response.header("content-type")) or media.HTML
    return _without_page(response, declared, None)


def pdf_content(response: FetchResponse, pdf: PdfText) -> PageContent:
    """Return the content of a PDF whose text was extracted."""
    return replace(_without_page(response, PDF, None), title=pdf.title.strip() or None)


def _without_page(response: FetchResponse, content_type: str, charset: str | None) -> PageContent:
    tags = parse_robots_tags([response.header("x-robots-tag") or ""], PRODUCT)
    title = None
    if content_type in FEED_TYPES:
        declared = media.charset_parameter(response.header("content-type"))
        title = feed_title(media.decode(response.body[:FEED_HEAD_BYTES], declared).text)
    return PageContent(content_type, charset=charset, title=title, noarchive=tags.noarchive)


def _of_page(
    url: str,
    response: FetchResponse,
    page: html.ParsedPage,
    content_type: str,
    charset: str,
    needs: Needs | None = None,
) -> PageContent:
    tags = parse_robots_tags([response.header("x-robots-tag") or ""], PRODUCT)
    links = (*page.links, page.refresh) if page.refresh else page.links
    followed = () if tags.nofollow or "nofollow" in page.robots else links
    if page.nofollow_links:
        followed = tuple(href for href in followed if href not in page.nofollow_links)
    base = _base(page.base, url) if page.base else None
    return PageContent(
        content_type,
        charset=charset,
        title=page.title or None,
        urls=LINKS.resolve(base or url, followed),
        noarchive=tags.noarchive or "noarchive" in page.robots,
        base=base,
        shows_url=_shown_by(page, url),
        needs=None if needs is None else _needed_by_page(page, base or url, needs),
        page=page,
    )


def _shown_by(page: html.ParsedPage, url: str) -> str | None:
    """Return the target of a MediaWiki redirect, which is served with status 200."""
    if page.canonical is None or not page.generator.startswith("MediaWiki"):
        return None
    try:
        shown = canonicalize(page.canonical, url)
    except InvalidUrlError:
        return None
    return shown if shown != url and split_url(shown).origin == split_url(url).origin else None


def _base(href: str, url: str) -> str:
    try:
        return canonicalize(href, url)
    except InvalidUrlError:
        return url
