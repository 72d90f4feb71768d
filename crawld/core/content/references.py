"""Finds the URLs in HTML and CSS, and the purpose of each.

`url_locations` returns the positions of the URLs of a page, for `rewrite`, and `css_references` the
URLs of a style sheet. Tag and attribute names come from the WHATWG HTML Standard (its index of
attributes), with the obsolete ones that pages still use, and from SVG 2. `url_syntax` reads
attributes that contain more than one URL. `base_of` returns the base element's URL, `linked_href`
that of a link element.

Invariants: as in `markup`: linear time, ascending offsets, nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import Enum, auto
from typing import NamedTuple

from crawld.core.content.markup import (
    Attribute,
    HrefSpan,
    MarkupText,
    StartTag,
    attributes_of,
    start_tags,
    unescape,
)
from crawld.core.content.url_kind import UrlKind
from crawld.core.content.url_syntax import css_unescape, css_url_spans


class UrlSyntax(Enum):
    """How a location contains URLs."""

    PLAIN = auto()
    SRCSET = auto()
    REFRESH = auto()
    CSS = auto()
    HTML = auto()
    BASE = auto()
    DROPPED = auto()  # contains nothing that a copy may keep
    BODY = auto()  # the start of the page's body


class UrlLocation(NamedTuple):
    """A location of URLs in a page.

    Attributes:
        syntax: how it contains them.
        kind: their purpose; None if the content decides (CSS, HTML).
        attribute: the attribute that contains them; None if the text from `start` to `end` does.
        start: offset of the attribute or of the raw text.
        end: offset after it.
    """

    syntax: UrlSyntax
    kind: UrlKind | None
    attribute: Attribute | None
    start: int
    end: int


class Reference(NamedTuple):
    """A URL as written, and its purpose."""

    kind: UrlKind
    url: str


def _for_tags(names: str, attributes: dict[str, UrlKind]) -> dict[str, dict[str, UrlKind]]:
    return dict.fromkeys(names.split(), attributes)


_HREFS = ("href", "xlink:href")
_IMAGES = ("src", "data-src", "lowsrc")
_BOTH = dict.fromkeys(_HREFS, UrlKind.IMAGE)

URL_ATTRIBUTES: dict[str, dict[str, UrlKind]] = {
    **_for_tags("a area", dict.fromkeys(_HREFS, UrlKind.LINK)),
    **_for_tags(
        "iframe frame", {"src": UrlKind.FRAME, "data-src": UrlKind.FRAME, "longdesc": UrlKind.LINK}
    ),
    **_for_tags("form", {"action": UrlKind.FORM}),
    **_for_tags("button", {"formaction": UrlKind.FORM}),
    **_for_tags("input", {"formaction": UrlKind.FORM, "src": UrlKind.IMAGE}),
    **_for_tags("img", {**dict.fromkeys(_IMAGES, UrlKind.IMAGE), "longdesc": UrlKind.LINK}),
    **_for_tags("source audio track", {"src": UrlKind.MEDIA}),
    **_for_tags("video", {"src": UrlKind.MEDIA, "poster": UrlKind.IMAGE}),
    **_for_tags("script", {"src": UrlKind.SCRIPT, **dict.fromkeys(_HREFS, UrlKind.SCRIPT)}),
    **_for_tags("embed", {"src": UrlKind.OBJECT}),
    **_for_tags("object", {"data": UrlKind.OBJECT}),
    **_for_tags("body table thead tbody tfoot tr td th", {"background": UrlKind.IMAGE}),
    **_for_tags("blockquote q ins del", {"cite": UrlKind.MENTION}),
    **_for_tags("image feimage use", _BOTH),
    **_for_tags("pattern filter lineargradient radialgradient textpath mpath", _BOTH),
}
"""Attributes that contain one URL, by tag; `link`, `meta` and `base` depend on their other
attributes. `data-src` is used by scripts that load images late."""

SRCSETS = {
    *((tag, name) for tag in ("img", "source") for name in ("srcset", "data-srcset")),
    ("link", "imagesrcset"),
}

CSS_ATTRIBUTES = frozenset(
    {
        *("style", "fill", "stroke", "filter", "mask", "clip-path", "cursor"),
        *("marker", "marker-start", "marker-mid", "marker-end"),
    }
)
"""Attributes of any element that contain CSS."""

DROPPED = {"ping": UrlKind.CONTACT, "integrity": None, "crossorigin": None}
"""Attributes a copy cannot keep: `ping` sends requests, the others tie the loaded content to its
original bytes and origin."""

_LINK_RELS = (
    *("next", "prev", "first", "last", "up", "start", "contents", "help", "search", "index"),
    *("glossary", "copyright", "author", "alternate", "prerender", "license"),
)
RELS = (
    ("stylesheet", UrlKind.STYLE),
    ("icon", UrlKind.ICON),
    ("apple-touch-icon", UrlKind.ICON),
    ("apple-touch-icon-precomposed", UrlKind.ICON),
    ("apple-touch-startup-image", UrlKind.ICON),
    ("mask-icon", UrlKind.ICON),
    ("manifest", UrlKind.MANIFEST),
    ("modulepreload", UrlKind.SCRIPT),
    ("preconnect", UrlKind.CONTACT),
    ("dns-prefetch", UrlKind.CONTACT),
    *((rel, UrlKind.LINK) for rel in _LINK_RELS),
)
"""Purpose of a link element by its rel; the first of these decides."""

PRELOADS = frozenset({"preload", "prefetch"})
PRELOADED = {
    "audio": UrlKind.MEDIA,
    "document": UrlKind.FRAME,
    "embed": UrlKind.OBJECT,
    "fetch": UrlKind.DATA,
    "font": UrlKind.FONT,
    "image": UrlKind.IMAGE,
    "object": UrlKind.OBJECT,
    "script": UrlKind.SCRIPT,
    "style": UrlKind.STYLE,
    "track": UrlKind.MEDIA,
    "video": UrlKind.MEDIA,
    "worker": UrlKind.SCRIPT,
}
"""Purpose of a preloaded URL by the attribute `as`."""

_LINK = frozenset({"link"})
_LINK_ATTRIBUTES = frozenset({"rel", "href"})
_TAGS = frozenset({*URL_ATTRIBUTES, "link", "meta", "base", "style"})
_NAMES = frozenset(
    {
        *(name for kinds in URL_ATTRIBUTES.values() for name in kinds),
        *(name for _, name in SRCSETS),
        *CSS_ATTRIBUTES,
        *DROPPED,
        *("srcdoc", "rel", "as", "http-equiv", "content"),
    }
)
# Most tags are these; only their URLs are relevant.
_SIMPLE = {
    name: URL_ATTRIBUTES[name] for name in ("a", "area", "script", "form", "input", "button")
}
_SIMPLE_NAMES = frozenset({*(name for kinds in _SIMPLE.values() for name in kinds), *DROPPED})
# Cells and quotations are frequent, and rarely contain a URL.
_TAGS_WITHOUT_CELLS = _TAGS - frozenset(
    ["thead", "tbody", "tfoot", "table", "tr", "td", "th", "blockquote", "q", "ins", "del"]
)
_RARE_WORDS = ("background", "cite=")
_CSS_SIGN = re.compile(r"(?:url|image-set)\(", re.IGNORECASE)
_POLICIES = frozenset(
    {"content-security-policy", "content-security-policy-report-only", "x-dns-prefetch-control"}
)


# --- locations -------------------------------------------------------------------------------


def url_locations(text: str, *, xml: bool = False) -> Iterator[UrlLocation | HrefSpan]:
    """Yield the URL locations of a page, in order; a link in its usual spelling as a span.

    Args:
        text: the page, decoded or one character a byte.
    """
    # Searching for words in lower case: a pattern takes twenty times as long.
    lowered = text.lower()
    named = _TAGS if any(word in lowered for word in _RARE_WORDS) else _TAGS_WITHOUT_CELLS
    for tag in start_tags(text, xml=xml, only=named):
        if not isinstance(tag, StartTag):
            yield tag
            continue
        styled = _is_styled(text, tag.attributes_start, tag.attributes_end)
        if not styled and (kinds := _SIMPLE.get(tag.name)) is not None:
            for name, location in attributes_of(text, tag, _SIMPLE_NAMES).items():
                if name in kinds:
                    yield UrlLocation(
                        UrlSyntax.PLAIN, kinds[name], location, location.start, location.end
                    )
                elif name in DROPPED:
                    yield UrlLocation(
                        UrlSyntax.DROPPED, DROPPED[name], location, location.start, location.end
                    )
        elif styled or tag.name in named:
            yield from _tag_locations(text, tag, styled=styled)


def _is_styled(text: str, start: int, end: int) -> bool:
    """Return whether CSS between two offsets may contain a URL."""
    return text.find("(", start, end) >= 0 and _CSS_SIGN.search(text, start, end) is not None


def _tag_locations(text: str, tag: StartTag, *, styled: bool) -> Iterator[UrlLocation]:
    attributes = attributes_of(text, tag, _NAMES)
    kinds = _kinds(text, tag.name, attributes)
    for name, attribute in attributes.items():
        kind = kinds.get(name)
        if kind is not None:
            syntax = UrlSyntax.BASE if tag.name == "base" else UrlSyntax.PLAIN
            yield UrlLocation(syntax, kind, attribute, attribute.start, attribute.end)
        elif (
            syntax_and_kind := _other_syntax(text, tag.name, name, attributes, styled)
        ) is not None:
            yield UrlLocation(*syntax_and_kind, attribute, attribute.start, attribute.end)
    if tag.name == "body":
        yield UrlLocation(
            UrlSyntax.BODY, None, None, tag.attributes_end + 1, tag.attributes_end + 1
        )
    elif tag.name == "style" and tag.text_end is not None:
        yield UrlLocation(UrlSyntax.CSS, None, None, tag.attributes_end + 1, tag.text_end)


def _other_syntax(
    text: str, tag: str, name: str, attributes: dict[str, Attribute], styled: bool
) -> tuple[UrlSyntax, UrlKind | None] | None:
    if (tag, name) in SRCSETS:
        return UrlSyntax.SRCSET, UrlKind.IMAGE
    if styled and name in CSS_ATTRIBUTES:
        return UrlSyntax.CSS, None
    if tag == "iframe" and name == "srcdoc":
        return UrlSyntax.HTML, None
    if name in DROPPED:
        return UrlSyntax.DROPPED, DROPPED[name]
    if tag == "meta":
        return _meta_syntax(text, name, attributes)
    return None


def _meta_syntax(
    text: str, name: str, attributes: dict[str, Attribute]
) -> tuple[UrlSyntax, UrlKind | None] | None:
    equivalent = _value(text, attributes, "http-equiv")
    if name == "content" and equivalent == "refresh":
        return UrlSyntax.REFRESH, UrlKind.REFRESH
    if name == "http-equiv" and equivalent in _POLICIES:
        return UrlSyntax.DROPPED, None
    return None


def _kinds(text: str, tag: str, attributes: dict[str, Attribute]) -> dict[str, UrlKind]:
    if tag == "link":
        return {"href": _link_kind(text, attributes)}
    if tag == "base":
        return {"href": UrlKind.MENTION}
    return URL_ATTRIBUTES.get(tag, {})


def _link_kind(text: str, attributes: dict[str, Attribute]) -> UrlKind:
    rels = _value(text, attributes, "rel").split()
    for rel, kind in RELS:
        if rel in rels:
            return kind
    if PRELOADS.intersection(rels):
        return PRELOADED.get(_value(text, attributes, "as"), UrlKind.DATA)
    return UrlKind.MENTION


def _value(text: str, attributes: dict[str, Attribute], name: str) -> str:
    """Return a keyword value in lower case; "" if there is none."""
    attribute = attributes.get(name)
    if attribute is None:
        return ""
    return unescape(text[attribute.value_start : attribute.value_end]).strip().lower()


# --- URLs ------------------------------------------------------------------------------------


def base_of(source: MarkupText, *, xml: bool = False) -> str | None:
    """Return the href of the first base element that has one, else None."""
    if "<base" not in source.text.lower():
        return None
    for location in url_locations(source.text, xml=xml):
        if (
            isinstance(location, UrlLocation)
            and location.syntax is UrlSyntax.BASE
            and location.attribute is not None
        ):
            return attribute_value(source, location.attribute).strip()
    return None


def linked_href(text: str, rels: Collection[str]) -> str | None:
    """Return the href of the first link element with one of some relations, as written.

    Args:
        text: the head of a page, decoded or as latin-1.
        rels: relations in lower case; the page may write them in any.

    Returns:
        "" if that element has no href; None if there is no such element.
    """
    for tag in start_tags(text, only=_LINK):
        if not isinstance(tag, StartTag) or tag.name not in _LINK:
            continue
        attributes = attributes_of(text, tag, _LINK_ATTRIBUTES)
        if not set(_value(text, attributes, "rel").split()).isdisjoint(rels):
            href = attributes.get("href")
            return attribute_value(MarkupText(text, None), href) if href is not None else ""
    return None


def attribute_value(source: MarkupText, attribute: Attribute) -> str:
    """Return the value of an attribute, character references resolved."""
    return unescape(source.read(source.text[attribute.value_start : attribute.value_end]))


def css_references(css: str) -> Iterator[Reference]:
    """Yield every URL of a style sheet or a style attribute with its purpose, in order.

    Escapes are resolved; `data:` and other schemes that are not for the web are left out.
    """
    for start, end, kind in css_url_spans(css):
        url = css_unescape(css[start:end]).strip()
        if _NOT_WEB(url) is None:
            yield Reference(kind, url)


_NOT_WEB = re.compile(r"[\x00-\x20]*+(?:(?!https?:)[a-z][a-z0-9+.-]*+:|#|\Z)", re.IGNORECASE).match
"""Matches another scheme, a fragment alone, or nothing."""
