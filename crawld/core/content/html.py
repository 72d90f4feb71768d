"""Parses an HTML page: its links and the metadata of its head.

The tree (Lexbor) is built once and kept in the `ParsedPage`, so that links, requisites and blocks
come from the same parse. Hrefs are returned as written, with entities resolved; the URL and scope
rules resolve and judge them.

A hostile page must not cost more than a normal one. Lexbor never recurses, but three constructs
take quadratic time: deep nesting (each `<div>` searches the open elements for a `<p>`), one tag
with many attributes (each is compared with all before it), and unclosed formatting elements, which
are cloned into every following paragraph (a 40 KB page can create 10 million nodes).
`_parsable_size` finds, in one pass over the tags, where the page exceeds the limits. The page is
cut there.

Invariants: `parse` never raises and never recurses; `links` keep document order, with repeats, and
are at most `max_links`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from crawld.core.content.tree_memory import tree_limit
from crawld.core.content.url_syntax import refresh_url_span, srcset_url_spans
from crawld.core.url import MAX_RAW_LENGTH

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

MAX_PARSE_BYTES = 8 * 2**20
"""Bytes parsed of one page; a tree takes about 15 times its source."""

MAX_DEPTH = 3_000
"""Open elements. Browsers stop nesting at 512; at 3,000 the quadratic cost is still 10 ms."""

MAX_TREE_NODES = 3_000_000
"""Nodes that a page may create; the upper bound is the sum of depths over its start tags."""

MAX_ATTRIBUTES_PER_TAG = 2_000
"""Each attribute is compared with those before it: at 2,000 that costs 6 ms."""

_SMALL_BYTES = 2**16
"""Smaller pages are matched tag by tag only if they have a stretch without `>`. That match takes a
twelfth of all work on a page, and no page of this size can cost more than 0.6 s."""

_WITHOUT_COPIES = LexborDocumentOptions.WO_EVENTS.value
"""Disables copies within the tree (`selectedcontent`), which saves a third of the parse time."""

_DEPTH_CHECK_TAGS = int(math.sqrt(2 * MAX_TREE_NODES))
"""With fewer tags than this neither the sum of depths nor the depth can exceed its limit."""

_REQUISITE_RELS = frozenset({"stylesheet", "icon", "apple-touch-icon", "manifest", "mask-icon"})

# Tags by the HTML standard's tokenizer: a quote counts only where a value begins, and `>` or `<`
# inside quotes are text. Possessive, so that matching is linear.
_ATTRIBUTE = rb"""[\s/]*+=?+[^\s/>=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?+)?+"""
_WITHIN_LIMIT = re.compile(
    rb"(?:[^<]++|<(?![A-Za-z])|<[A-Za-z][^\s/>]*+(?:%b){0,%d}+(?!%b))*+"
    % (_ATTRIBUTE, MAX_ATTRIBUTES_PER_TAG, _ATTRIBUTE)
)

# Elements without an end tag, or whose end tag authors omit: neither nests.
_FLAT_TAGS = (
    *("br", "hr", "img", "input", "meta", "link", "area", "base", "col", "embed", "source"),
    *("track", "wbr", "param", "p", "li", "td", "tr", "th", "dt", "dd", "option", "optgroup"),
    *("thead", "tbody", "tfoot", "colgroup", "rt", "rp", "html", "head", "body"),
)


@dataclass(frozen=True, slots=True)
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
    end = _parsable_size(body)
    return LexborHTMLParser(body if end == len(body) else body[:end], options=_WITHOUT_COPIES), end


def _links(tree: LexborHTMLParser, max_links: int) -> tuple[str, ...]:
    nodes = tree.css("a[href],area[href],iframe[src],frame[src]")[:max_links]
    return tuple(href for node in nodes if (href := _url(_href(node))))


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
    span = refresh_url_span(content[: MAX_RAW_LENGTH + 64])  # the seconds, and `url=`
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


def _nesting_table() -> np.ndarray:
    """Return whether a tag nests (1) or not (0), by five bits of its first three bytes."""
    nests = np.ones(2**15, dtype=np.int8)
    for name in _FLAT_TAGS:
        for end in (" ", ">", "/", "\n", "\t", "\r"):
            codes = [ord(letter) & 31 for letter in (name + end)[:3]]
            base = codes[0] << 10 | codes[1] << 5
            nests[base | codes[2] if len(codes) == 3 else slice(base, base + 32)] = 0
    return nests


_NESTS = _nesting_table()


def _parsable_size(body: bytes) -> int:
    """Return the number of leading bytes that can be parsed within the limits."""
    size = min(len(body), MAX_PARSE_BYTES)
    size = tree_limit(body, size)
    if size > _SMALL_BYTES or _has_long_stretch(body, size):
        found = _WITHIN_LIMIT.match(body, 0, size)
        size = found.end() if found else size
    if body.count(b"<", 0, size) < _DEPTH_CHECK_TAGS:
        return size
    text = np.frombuffer(body, dtype=np.uint8, count=size)
    tags = np.flatnonzero(text[:-8] == ord("<"))
    return _depth_limit(body, tags, size) if tags.size else size


def _has_long_stretch(body: bytes, size: int) -> bool:
    """Return whether a tag without a quoted `>` may have too many attributes.

    An attribute takes at least two bytes, so at least one stretch of `MAX_ATTRIBUTES_PER_TAG` bytes
    contains no `>`.
    """
    step = MAX_ATTRIBUTES_PER_TAG
    return any(body.find(b">", at, at + step) < 0 for at in range(0, size - step + 1, step))


def _depth_limit(body: bytes, tags: np.ndarray, size: int) -> int:
    """Return the offset where nesting, or the nodes it may clone, exceed the limits."""
    # Four bytes at every offset, overlapping: one gather reads a sign and the name after it.
    words = np.ndarray(shape=(size - 3,), dtype="<u4", buffer=body, strides=(1,))
    closing = (words[tags] >> 8 & 0xFF) == ord("/")
    names = words[tags + closing] >> 8
    code = (names & 31) << 10 | (names >> 3 & 31 << 5) | names >> 16 & 31
    step = _NESTS[code] * ((names & 0xFF) >= ord("A"))
    depth = np.cumsum(np.where(closing, -step, step), dtype=np.int64)
    # An end tag without a start closes nothing: measure from the lowest point so far.
    depth -= np.minimum(np.minimum.accumulate(depth), 0)
    if depth.max() <= MAX_DEPTH and int(depth.sum()) <= MAX_TREE_NODES:
        return size
    wrong = (depth > MAX_DEPTH) | (np.cumsum(np.where(closing, 0, depth)) > MAX_TREE_NODES)
    return int(tags[np.argmax(wrong)]) if wrong.any() else size
