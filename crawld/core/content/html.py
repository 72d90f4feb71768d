"""Parses an HTML page: its links and the metadata of its head.

The tree (Lexbor) is built once and kept in the `ParsedPage`, so that links, requisites and blocks
come from the same parse. Hrefs are returned as written, with entities resolved; the URL and scope
rules resolve and judge them.

A hostile page must not cost more than a normal one of its size: the page is cut where
`parse_limits.parsable_size` finds that it exceeds the limits.

Invariants: `parse` never raises and never recurses; `links` keep document order, with repeats, and
are at most `max_links`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from crawld.core.content.parse_limits import MAX_PARSE_BYTES, parsable_size
from crawld.core.content.tree_memory import TagScan, tree_limit
from crawld.core.content.url_syntax import refresh_url_span, srcset_url_spans
from crawld.core.url import MAX_RAW_LENGTH
from crawld.core.value_type import value_type

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_LINKS = 10_000
"""Links read of one page; the rest are ignored."""

MAX_TITLE_CHARACTERS = 2_000
"""Longest title; search results, tables and logs show it. Real ones have a few hundred."""

_MAX_LANG_CHARACTERS = 100
"""Longest language tag; those of BCP 47 have at most 35 characters in practice."""

_MAX_CONTENT_CHARACTERS = 1_000
"""Characters read of a meta element that names a generator or directives for robots."""

_WITHOUT_COPIES = LexborDocumentOptions.WO_EVENTS.value
"""Disables copies within the tree (`selectedcontent`), which saves a third of the parse time."""

_REQUISITE_RELS = frozenset({"stylesheet", "icon", "apple-touch-icon", "manifest", "mask-icon"})


@value_type
class ParsedPage:
    """The links and metadata of one HTML page.

    Attributes:
        title: text of the first title element, white space collapsed, at most
            `MAX_TITLE_CHARACTERS`.
        lang: language of the html element, as written.
        base: first base href, or None. No URL here is longer than `url.MAX_RAW_LENGTH`.
        links: hrefs of a, area and frames, in document order, including `nofollow_links`.
        nofollow_links: hrefs whose own rel contains nofollow.
        canonical: href of link rel=canonical, or None.
        robots: lower-case directives of meta name=robots; `none` is expanded.
        refresh: target of meta http-equiv=refresh, or None.
        generator: content of meta name=generator, or "".
        edit_uri: href of link rel=EditURI (RSD), or None.
        parsed_bytes: bytes parsed; fewer than the page has if it exceeds the limits.
    """

    title: str
    lang: str
    base: str | None
    links: tuple[str, ...]
    nofollow_links: frozenset[str]
    canonical: str | None
    robots: frozenset[str]
    refresh: str | None
    generator: str
    edit_uri: str | None
    parsed_bytes: int
    tree: LexborHTMLParser = field(repr=False, compare=False)

    def requisites(self) -> tuple[str, ...]:
        """Return the hrefs of everything a browser loads with the page, without repeats, in order.

        Images with their srcset, media, frames, scripts, style sheets and icons.
        """
        found: dict[str, None] = {}
        for node in self.tree.css(_REQUISITES):
            for href in _requisites_of(node):
                found.setdefault(href)
                if len(found) >= MAX_LINKS:
                    return tuple(found)
        return tuple(found)


_REQUISITES = (
    "img,source,video,audio,track,embed[src],iframe[src],frame[src],script[src],"
    'input[type="image" i][src],object[data],link[href][rel],body[background]'
)


def parse(html: str | bytes, *, max_links: int = MAX_LINKS) -> ParsedPage:
    """Parse one HTML page and read its links and head, as far as possible if it is broken.

    Bytes are read as UTF-8 (`media.decode` comes first).
    """
    body = html.encode("utf-8", "replace") if isinstance(html, str) else html
    tree, end = tree_of(body)
    head = _Head(tree)
    return ParsedPage(
        title=title_of(tree),
        lang=_lang(tree),
        base=head.base,
        links=_links(tree, max_links),
        nofollow_links=_nofollow_links(tree),
        canonical=head.canonical,
        robots=frozenset(head.robots),
        refresh=head.refresh,
        generator=head.generator,
        edit_uri=head.edit_uri,
        parsed_bytes=end,
        tree=tree,
    )


def tree_of(body: bytes) -> tuple[LexborHTMLParser, int]:
    """Return the tree of a page in UTF-8, and the number of bytes parsed."""
    scan = TagScan(body, min(len(body), MAX_PARSE_BYTES))
    end = parsable_size(scan, tree_limit(scan))
    return LexborHTMLParser(body if end == len(body) else body[:end], options=_WITHOUT_COPIES), end


def _links(tree: LexborHTMLParser, max_links: int) -> tuple[str, ...]:
    nodes = tree.css("a[href],area[href],iframe[src],frame[src]")[:max_links]
    hrefs = [href for node in nodes if (href := _href(node))]
    if hrefs and len(max(hrefs, key=len)) > MAX_RAW_LENGTH:
        return tuple(filter(_url, hrefs))
    return tuple(hrefs)


def _nofollow_links(tree: LexborHTMLParser) -> frozenset[str]:
    # One short selector searches a tree in a third of the time of two long ones.
    nodes = tree.css('[href][rel~="nofollow" i]')
    return frozenset(href for node in nodes if node.tag in ("a", "area") and (href := _href(node)))


def _href(node: LexborNode) -> str | None:
    # Inside svg the selector also finds xlink:href, which is kept under its full name.
    attributes = node.attrs
    return attributes.get("href") or attributes.get("xlink:href") or attributes.get("src")


def title_of(tree: LexborHTMLParser) -> str:
    """Return the text of the first title element, white space collapsed, cut to its limit."""
    node = tree.css_first("title")
    if node is None:
        return ""
    # Twice the length leaves room for the white space that is collapsed.
    return " ".join(node.text()[: 2 * MAX_TITLE_CHARACTERS].split())[:MAX_TITLE_CHARACTERS]


def _lang(tree: LexborHTMLParser) -> str:
    root = tree.root
    lang = root and (root.attrs.get("lang") or root.attrs.get("xml:lang"))
    return lang[:_MAX_LANG_CHARACTERS] if lang else ""


class _Head:
    """Collects the values of base, link and meta elements; the first of each kind wins."""

    __slots__ = ("base", "canonical", "edit_uri", "generator", "refresh", "robots")

    def __init__(self, tree: LexborHTMLParser) -> None:
        self.base: str | None = None
        self.canonical: str | None = None
        self.edit_uri: str | None = None
        self.generator = ""
        self.refresh: str | None = None
        self.robots: set[str] = set()
        for node in tree.css("base[href],link[href],meta[content]")[:MAX_LINKS]:
            attributes = node.attributes
            if "content" in attributes:
                self._read_meta(attributes, attributes.get("content") or "")
            elif "rel" in attributes:
                self._read_link(attributes, _url((attributes.get("href") or "").strip()))
            elif self.base is None and node.tag == "base":
                self.base = _url((attributes.get("href") or "").strip()) or ""

    def _read_meta(self, attributes: dict[str, str | None], content: str) -> None:
        name = (attributes.get("name") or "").strip().lower()
        if name == "robots":
            directives = {
                part.strip().lower() for part in content[:_MAX_CONTENT_CHARACTERS].split(",")
            }
            self.robots |= directives - {""}
            if "none" in directives:
                self.robots |= {"noindex", "nofollow"}
        elif name == "generator":
            self.generator = self.generator or content[:_MAX_CONTENT_CHARACTERS].strip()
        elif (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            self.refresh = self.refresh or refresh_target(content)

    def _read_link(self, attributes: dict[str, str | None], href: str | None) -> None:
        rels = (attributes.get("rel") or "").lower().split()
        if not href:
            return
        if "canonical" in rels:
            self.canonical = self.canonical or href
        elif "edituri" in rels:
            self.edit_uri = self.edit_uri or href


def refresh_target(content: str) -> str | None:
    """Return the URL of a refresh directive such as `5; url=/next`, None if it only reloads.

    >>> refresh_target("0;URL='/next'"), refresh_target("30")
    ('/next', None)
    """
    span = refresh_url_span(content)
    return _url(content[slice(*span)].strip("\t\n\f\r ;,")) if span else None


def _url(href: str | None) -> str | None:
    """Return a URL as written, None if it is empty or longer than any that is parsed."""
    return href if href and len(href) <= MAX_RAW_LENGTH else None


def _requisites_of(node: LexborNode) -> list[str]:
    attributes = node.attributes
    if node.tag == "link":
        rels = (attributes.get("rel") or "").lower().split()
        names = ["href"] if _REQUISITE_RELS.intersection(rels) else []
    else:
        names = ["src", "poster", "data", "background"]
    hrefs = [href.strip() for name in names if (href := attributes.get(name))]
    if srcset := attributes.get("srcset"):
        hrefs += [srcset[start:end] for start, end in srcset_url_spans(srcset)]
    return [href for href in hrefs if _url(href) and not href[:5].lower().startswith("data:")]
