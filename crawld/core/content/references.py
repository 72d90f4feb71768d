"""Where HTML and CSS hold URLs, and what each is for: one table, read by all who need it.

`html_references` and `css_references` tell what a page or a style sheet names; `url_locations`
tells where, for `rewrite`. Tag and attribute names come from the WHATWG HTML Standard (its index of
attributes), with the obsolete ones that pages still use, and from SVG 2. What stands inside an
attribute that holds more than a URL is read by `url_syntax`.

URLs are given as written, character references and CSS escapes resolved; `javascript:`, `data:`
and their like are left out. What a base element says is `base_of`.

Invariants: as `markup`: linear time, ascending offsets, nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from crawld.core.content.markup import (
    Attribute,
    HrefSpan,
    MarkupText,
    StartTag,
    attributes_of,
    source_of,
    start_tags,
    unescape,
)
from crawld.core.content.url_kind import UrlKind
from crawld.core.content.url_syntax import (
    css_unescape,
    css_url_spans,
    refresh_url_span,
    srcset_url_spans,
)


class UrlSyntax(Enum):
    """How a place holds URLs."""

    PLAIN = auto()
    SRCSET = auto()
    REFRESH = auto()
    CSS = auto()
    HTML = auto()
    BASE = auto()
    DROPPED = auto()  # holds nothing a copy may keep
    BODY = auto()  # where what is shown of the page begins


class UrlLocation(NamedTuple):
    """Where URLs stand in a page.

    Attributes:
        syntax: how they are held.
        kind: what for; None where the content says (CSS, HTML).
        attribute: the attribute that holds them; None: what is between `start` and `end` does.
        start: offset of the attribute or of the raw text.
        end: offset behind it.
    """

    syntax: UrlSyntax
    kind: UrlKind | None
    attribute: Attribute | None
    start: int
    end: int


class Reference(NamedTuple):
    """A URL as written, and what it is for."""

    kind: UrlKind
    url: str


def _of(names: str, attributes: dict[str, UrlKind]) -> dict[str, dict[str, UrlKind]]:
    return dict.fromkeys(names.split(), attributes)


_HREFS = ("href", "xlink:href")
_IMAGES = ("src", "data-src", "lowsrc")
_BOTH = dict.fromkeys(_HREFS, UrlKind.IMAGE)

PLAIN: dict[str, dict[str, UrlKind]] = {
    **_of("a area", dict.fromkeys(_HREFS, UrlKind.LINK)),
    **_of(
        "iframe frame", {"src": UrlKind.FRAME, "data-src": UrlKind.FRAME, "longdesc": UrlKind.LINK}
    ),
    **_of("form", {"action": UrlKind.FORM}),
    **_of("button", {"formaction": UrlKind.FORM}),
    **_of("input", {"formaction": UrlKind.FORM, "src": UrlKind.IMAGE}),
    **_of("img", {**dict.fromkeys(_IMAGES, UrlKind.IMAGE), "longdesc": UrlKind.LINK}),
    **_of("source audio track", {"src": UrlKind.MEDIA}),
    **_of("video", {"src": UrlKind.MEDIA, "poster": UrlKind.IMAGE}),
    **_of("script", {"src": UrlKind.SCRIPT, **dict.fromkeys(_HREFS, UrlKind.SCRIPT)}),
    **_of("embed", {"src": UrlKind.OBJECT}),
    **_of("object", {"data": UrlKind.OBJECT}),
    **_of("body table thead tbody tfoot tr td th", {"background": UrlKind.IMAGE}),
    **_of("blockquote q ins del", {"cite": UrlKind.MENTION}),
    **_of("image feimage use", _BOTH),
    **_of("pattern filter lineargradient radialgradient textpath mpath", _BOTH),
}
"""Attributes that hold one URL, by tag; `link`, `meta` and `base` are read by their other
attributes. `data-src` is where scripts that load images late look for them."""

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
"""Attributes of any element that hold CSS."""

DROPPED = {"ping": UrlKind.CONTACT, "integrity": None, "crossorigin": None}
"""Attributes a copy cannot keep: one sends requests for nothing, the others bind what is loaded to
the bytes and the origin it came from."""

_RELS = (
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
    *((rel, UrlKind.LINK) for rel in ("next", "prev", "first", "last", "up", "start", "contents")),
    *(
        (rel, UrlKind.LINK)
        for rel in ("help", "search", "index", "glossary", "copyright", "author")
    ),
    *((rel, UrlKind.LINK) for rel in ("alternate", "prerender", "license")),
)
_PRELOADS = frozenset({"preload", "prefetch"})
_PRELOADED = {
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

_TAGS = frozenset({*PLAIN, "link", "meta", "base", "style"})
_NAMES = frozenset(
    {
        *(name for kinds in PLAIN.values() for name in kinds),
        *(name for _, name in SRCSETS),
        *CSS_ATTRIBUTES,
        *DROPPED,
        *("srcdoc", "rel", "as", "http-equiv", "content"),
    }
)
# Most tags are these, and all there is to see in them are their addresses.
_SIMPLE = {name: PLAIN[name] for name in ("a", "area", "script", "form", "input", "button")}
_SIMPLE_NAMES = frozenset({*(name for kinds in _SIMPLE.values() for name in kinds), *DROPPED})
# Cells and quotations are many, and name a URL hardly ever.
_COMMON_TAGS = _TAGS - frozenset(
    ["thead", "tbody", "tfoot", "table", "tr", "td", "th", "blockquote", "q", "ins", "del"]
)
_RARE_WORDS = ("background", "cite=")
_CSS_SIGN = re.compile(r"(?:url|image-set)\(", re.IGNORECASE)
_POLICIES = frozenset(
    {"content-security-policy", "content-security-policy-report-only", "x-dns-prefetch-control"}
)


# --- where they are --------------------------------------------------------------------------


def url_locations(text: str, *, xml: bool = False) -> Iterator[UrlLocation | HrefSpan]:
    """Yield the places of a page that hold URLs, in order; a link in its usual spelling as a span.

    Args:
        text: the page, decoded or one character a byte.
        xml: whether it is XML.
    """
    # Words are looked for, in lower case: a pattern takes twenty times as long.
    lowered = text.lower()
    named = _TAGS if any(word in lowered for word in _RARE_WORDS) else _COMMON_TAGS
    for tag in start_tags(text, xml=xml, only=named):
        if not isinstance(tag, StartTag):
            yield tag
            continue
        styled = _is_styled(text, tag.attributes_start, tag.attributes_end)
        if not styled and (kinds := _SIMPLE.get(tag.name)) is not None:
            for name, place in attributes_of(text, tag, _SIMPLE_NAMES).items():
                if name in kinds:
                    yield UrlLocation(UrlSyntax.PLAIN, kinds[name], place, place.start, place.end)
                elif name in DROPPED:
                    yield UrlLocation(
                        UrlSyntax.DROPPED, DROPPED[name], place, place.start, place.end
                    )
        elif styled or tag.name in named:
            yield from _places_of(text, tag, styled=styled)


def _is_styled(text: str, start: int, end: int) -> bool:
    """Return whether CSS between two offsets may name a URL."""
    return text.find("(", start, end) >= 0 and _CSS_SIGN.search(text, start, end) is not None


def _places_of(text: str, tag: StartTag, *, styled: bool) -> Iterator[UrlLocation]:
    attributes = attributes_of(text, tag, _NAMES)
    kinds = _kinds(text, tag.name, attributes)
    for name, attribute in attributes.items():
        kind = kinds.get(name)
        if kind is not None:
            syntax = UrlSyntax.BASE if tag.name == "base" else UrlSyntax.PLAIN
            yield UrlLocation(syntax, kind, attribute, attribute.start, attribute.end)
        elif (syntax_and_kind := _other_form(text, tag.name, name, attributes, styled)) is not None:
            yield UrlLocation(*syntax_and_kind, attribute, attribute.start, attribute.end)
    if tag.name == "body":
        yield UrlLocation(
            UrlSyntax.BODY, None, None, tag.attributes_end + 1, tag.attributes_end + 1
        )
    elif tag.name == "style" and tag.text_end is not None:
        yield UrlLocation(UrlSyntax.CSS, None, None, tag.attributes_end + 1, tag.text_end)


def _other_form(
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
        return _meta_form(text, name, attributes)
    return None


def _meta_form(
    text: str, name: str, attributes: dict[str, Attribute]
) -> tuple[UrlSyntax, UrlKind | None] | None:
    does = _value(text, attributes, "http-equiv")
    if name == "content" and does == "refresh":
        return UrlSyntax.REFRESH, UrlKind.REFRESH
    if name == "http-equiv" and does in _POLICIES:
        return UrlSyntax.DROPPED, None
    return None


def _kinds(text: str, tag: str, attributes: dict[str, Attribute]) -> dict[str, UrlKind]:
    if tag == "link":
        return {"href": _link_kind(text, attributes)}
    if tag == "base":
        return {"href": UrlKind.MENTION}
    return PLAIN.get(tag, {})


def _link_kind(text: str, attributes: dict[str, Attribute]) -> UrlKind:
    rels = _value(text, attributes, "rel").split()
    for rel, kind in _RELS:
        if rel in rels:
            return kind
    if _PRELOADS.intersection(rels):
        return _PRELOADED.get(_value(text, attributes, "as"), UrlKind.DATA)
    return UrlKind.MENTION


def _value(text: str, attributes: dict[str, Attribute], name: str) -> str:
    """Return a value that is a keyword, in lower case; "" if there is none."""
    attribute = attributes.get(name)
    if attribute is None:
        return ""
    return unescape(text[attribute.value_start : attribute.value_end]).strip().lower()


# --- what they say ---------------------------------------------------------------------------


def base_of(source: MarkupText, *, xml: bool = False) -> str | None:
    """Return what the first base element with an href says, None if there is none."""
    if "<base" not in source.text.lower():
        return None
    for place in url_locations(source.text, xml=xml):
        if (
            isinstance(place, UrlLocation)
            and place.syntax is UrlSyntax.BASE
            and place.attribute is not None
        ):
            return attribute_value(source, place.attribute).strip()
    return None


def attribute_value(source: MarkupText, attribute: Attribute) -> str:
    """Return the value of an attribute, character references resolved."""
    return unescape(source.read(source.text[attribute.value_start : attribute.value_end]))


def html_references(
    body: bytes, charset: str = "utf-8", *, xml: bool = False
) -> Iterator[Reference]:
    """Yield every URL a page names, with what it is for, in order.

    Args:
        body: the page.
        charset: the Python codec to read it with.
        xml: whether it is XML (XHTML, SVG).
    """
    yield from _references(source_of(body, charset), xml=xml)


def _references(source: MarkupText, *, xml: bool) -> Iterator[Reference]:
    for place in url_locations(source.text, xml=xml):
        if (
            isinstance(place, UrlLocation)
            and place.syntax is UrlSyntax.CSS
            and place.attribute is None
        ):
            yield from css_references(source.read(source.text[place.start : place.end]))
        else:
            for kind, url in _urls_at(source, place):
                if not _opaque(url):
                    yield Reference(kind, url.strip())


def _urls_at(source: MarkupText, place: UrlLocation | HrefSpan) -> Iterator[tuple[UrlKind, str]]:
    """Yield what the attribute at a place names, as written."""
    if not isinstance(place, UrlLocation):
        yield UrlKind.LINK, unescape(source.read(source.text[slice(*place)]))
    elif place.attribute is not None:
        yield from _READ[place.syntax](attribute_value(source, place.attribute), place.kind)


def css_references(css: str) -> Iterator[Reference]:
    """Yield every URL a style sheet or a style attribute names, with what it is for, in order."""
    for start, end, kind in css_url_spans(css):
        url = css_unescape(css[start:end]).strip()
        if not _opaque(url):
            yield Reference(kind, url)


_OPAQUE = re.compile(r"[\x00-\x20]*+(?:(?!https?:)[a-z][a-z0-9+.-]*+:|#|\Z)", re.IGNORECASE).match


def _opaque(url: str) -> bool:
    """Whether a URL names nothing on the web: another scheme, a place in the page, nothing."""
    return _OPAQUE(url) is not None


def _plain(value: str, kind: UrlKind | None) -> Iterator[tuple[UrlKind, str]]:
    if kind is not None:
        yield kind, value


def _srcset(value: str, kind: UrlKind | None) -> Iterator[tuple[UrlKind, str]]:
    for start, end in srcset_url_spans(value):
        yield UrlKind.IMAGE, value[start:end]


def _refresh(value: str, kind: UrlKind | None) -> Iterator[tuple[UrlKind, str]]:
    if place := refresh_url_span(value):
        yield UrlKind.REFRESH, value[slice(*place)]


def _css(value: str, kind: UrlKind | None) -> Iterator[tuple[UrlKind, str]]:
    yield from css_references(value)


def _html(value: str, kind: UrlKind | None) -> Iterator[tuple[UrlKind, str]]:
    # A document inside a document inside a document is not read.
    for place in url_locations(value):
        if not (isinstance(place, UrlLocation) and place.syntax is UrlSyntax.HTML):
            yield from _urls_at(MarkupText(value, None), place)


_READ: dict[UrlSyntax, Callable[[str, UrlKind | None], Iterator[tuple[UrlKind, str]]]] = {
    UrlSyntax.PLAIN: _plain,
    UrlSyntax.SRCSET: _srcset,
    UrlSyntax.REFRESH: _refresh,
    UrlSyntax.CSS: _css,
    UrlSyntax.HTML: _html,
    UrlSyntax.BASE: lambda _value, _kind: iter(()),
    UrlSyntax.DROPPED: _plain,
}
