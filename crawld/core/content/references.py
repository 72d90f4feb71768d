"""Where HTML and CSS hold URLs, and what each is for: one table, read by all who need it.

`html_references` and `css_references` tell what a page or a style sheet names; `places` tells
where, for `rewrite`. Tag and attribute names come from the WHATWG HTML Standard (its index of
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

from crawld.core.content.kind import Kind
from crawld.core.content.markup import (
    Attribute,
    Source,
    Span,
    StartTag,
    attributes_of,
    source_of,
    start_tags,
    unescape,
)
from crawld.core.content.url_syntax import (
    css_places,
    css_unescape,
    refresh_place,
    srcset_places,
)


class Form(Enum):
    """How a place holds URLs."""

    PLAIN = auto()
    SRCSET = auto()
    REFRESH = auto()
    CSS = auto()
    HTML = auto()
    BASE = auto()
    DROPPED = auto()  # holds nothing a copy may keep
    BODY = auto()  # where what is shown of the page begins


class Place(NamedTuple):
    """Where URLs stand in a page.

    Attributes:
        form: how they are held.
        kind: what for; None where the content says (CSS, HTML).
        attribute: the attribute that holds them; None: what is between `start` and `end` does.
        start: offset of the attribute or of the raw text.
        end: offset behind it.
    """

    form: Form
    kind: Kind | None
    attribute: Attribute | None
    start: int
    end: int


class Reference(NamedTuple):
    """A URL as written, and what it is for."""

    kind: Kind
    url: str


def _of(names: str, attributes: dict[str, Kind]) -> dict[str, dict[str, Kind]]:
    return dict.fromkeys(names.split(), attributes)


_HREFS = ("href", "xlink:href")
_IMAGES = ("src", "data-src", "lowsrc")
_BOTH = dict.fromkeys(_HREFS, Kind.IMAGE)

PLAIN: dict[str, dict[str, Kind]] = {
    **_of("a area", dict.fromkeys(_HREFS, Kind.LINK)),
    **_of("iframe frame", {"src": Kind.FRAME, "data-src": Kind.FRAME, "longdesc": Kind.LINK}),
    **_of("form", {"action": Kind.FORM}),
    **_of("button", {"formaction": Kind.FORM}),
    **_of("input", {"formaction": Kind.FORM, "src": Kind.IMAGE}),
    **_of("img", {**dict.fromkeys(_IMAGES, Kind.IMAGE), "longdesc": Kind.LINK}),
    **_of("source audio track", {"src": Kind.MEDIA}),
    **_of("video", {"src": Kind.MEDIA, "poster": Kind.IMAGE}),
    **_of("script", {"src": Kind.SCRIPT, **dict.fromkeys(_HREFS, Kind.SCRIPT)}),
    **_of("embed", {"src": Kind.OBJECT}),
    **_of("object", {"data": Kind.OBJECT}),
    **_of("body table thead tbody tfoot tr td th", {"background": Kind.IMAGE}),
    **_of("blockquote q ins del", {"cite": Kind.MENTION}),
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

DROPPED = {"ping": Kind.CONTACT, "integrity": None, "crossorigin": None}
"""Attributes a copy cannot keep: one sends requests for nothing, the others bind what is loaded to
the bytes and the origin it came from."""

_RELS = (
    ("stylesheet", Kind.STYLE),
    ("icon", Kind.ICON),
    ("apple-touch-icon", Kind.ICON),
    ("apple-touch-icon-precomposed", Kind.ICON),
    ("apple-touch-startup-image", Kind.ICON),
    ("mask-icon", Kind.ICON),
    ("manifest", Kind.MANIFEST),
    ("modulepreload", Kind.SCRIPT),
    ("preconnect", Kind.CONTACT),
    ("dns-prefetch", Kind.CONTACT),
    *((rel, Kind.LINK) for rel in ("next", "prev", "first", "last", "up", "start", "contents")),
    *((rel, Kind.LINK) for rel in ("help", "search", "index", "glossary", "copyright", "author")),
    *((rel, Kind.LINK) for rel in ("alternate", "prerender", "license")),
)
_PRELOADS = frozenset({"preload", "prefetch"})
_PRELOADED = {
    "audio": Kind.MEDIA,
    "document": Kind.FRAME,
    "embed": Kind.OBJECT,
    "fetch": Kind.DATA,
    "font": Kind.FONT,
    "image": Kind.IMAGE,
    "object": Kind.OBJECT,
    "script": Kind.SCRIPT,
    "style": Kind.STYLE,
    "track": Kind.MEDIA,
    "video": Kind.MEDIA,
    "worker": Kind.SCRIPT,
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


def places(text: str, *, xml: bool = False) -> Iterator[Place | Span]:
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
                    yield Place(Form.PLAIN, kinds[name], place, place.start, place.end)
                elif name in DROPPED:
                    yield Place(Form.DROPPED, DROPPED[name], place, place.start, place.end)
        elif styled or tag.name in named:
            yield from _places_of(text, tag, styled=styled)


def _is_styled(text: str, start: int, end: int) -> bool:
    """Return whether CSS between two offsets may name a URL."""
    return text.find("(", start, end) >= 0 and _CSS_SIGN.search(text, start, end) is not None


def _places_of(text: str, tag: StartTag, *, styled: bool) -> Iterator[Place]:
    attributes = attributes_of(text, tag, _NAMES)
    kinds = _kinds(text, tag.name, attributes)
    for name, attribute in attributes.items():
        kind = kinds.get(name)
        if kind is not None:
            form = Form.BASE if tag.name == "base" else Form.PLAIN
            yield Place(form, kind, attribute, attribute.start, attribute.end)
        elif (form_kind := _other_form(text, tag.name, name, attributes, styled)) is not None:
            yield Place(*form_kind, attribute, attribute.start, attribute.end)
    if tag.name == "body":
        yield Place(Form.BODY, None, None, tag.attributes_end + 1, tag.attributes_end + 1)
    elif tag.name == "style" and tag.text_end is not None:
        yield Place(Form.CSS, None, None, tag.attributes_end + 1, tag.text_end)


def _other_form(
    text: str, tag: str, name: str, attributes: dict[str, Attribute], styled: bool
) -> tuple[Form, Kind | None] | None:
    if (tag, name) in SRCSETS:
        return Form.SRCSET, Kind.IMAGE
    if styled and name in CSS_ATTRIBUTES:
        return Form.CSS, None
    if tag == "iframe" and name == "srcdoc":
        return Form.HTML, None
    if name in DROPPED:
        return Form.DROPPED, DROPPED[name]
    if tag == "meta":
        return _meta_form(text, name, attributes)
    return None


def _meta_form(
    text: str, name: str, attributes: dict[str, Attribute]
) -> tuple[Form, Kind | None] | None:
    does = _value(text, attributes, "http-equiv")
    if name == "content" and does == "refresh":
        return Form.REFRESH, Kind.REFRESH
    if name == "http-equiv" and does in _POLICIES:
        return Form.DROPPED, None
    return None


def _kinds(text: str, tag: str, attributes: dict[str, Attribute]) -> dict[str, Kind]:
    if tag == "link":
        return {"href": _link_kind(text, attributes)}
    if tag == "base":
        return {"href": Kind.MENTION}
    return PLAIN.get(tag, {})


def _link_kind(text: str, attributes: dict[str, Attribute]) -> Kind:
    rels = _value(text, attributes, "rel").split()
    for rel, kind in _RELS:
        if rel in rels:
            return kind
    if _PRELOADS.intersection(rels):
        return _PRELOADED.get(_value(text, attributes, "as"), Kind.DATA)
    return Kind.MENTION


def _value(text: str, attributes: dict[str, Attribute], name: str) -> str:
    """Return a value that is a keyword, in lower case; "" if there is none."""
    attribute = attributes.get(name)
    if attribute is None:
        return ""
    return unescape(text[attribute.value_start : attribute.value_end]).strip().lower()


# --- what they say ---------------------------------------------------------------------------


def base_of(source: Source, *, xml: bool = False) -> str | None:
    """Return what the first base element with an href says, None if there is none."""
    if "<base" not in source.text.lower():
        return None
    for place in places(source.text, xml=xml):
        if isinstance(place, Place) and place.form is Form.BASE and place.attribute is not None:
            return attribute_value(source, place.attribute).strip()
    return None


def attribute_value(source: Source, attribute: Attribute) -> str:
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


def _references(source: Source, *, xml: bool) -> Iterator[Reference]:
    for place in places(source.text, xml=xml):
        if isinstance(place, Place) and place.form is Form.CSS and place.attribute is None:
            yield from css_references(source.read(source.text[place.start : place.end]))
        else:
            for kind, url in _urls_at(source, place):
                if not _opaque(url):
                    yield Reference(kind, url.strip())


def _urls_at(source: Source, place: Place | Span) -> Iterator[tuple[Kind, str]]:
    """Yield what the attribute at a place names, as written."""
    if not isinstance(place, Place):
        yield Kind.LINK, unescape(source.read(source.text[slice(*place)]))
    elif place.attribute is not None:
        yield from _READ[place.form](attribute_value(source, place.attribute), place.kind)


def css_references(css: str) -> Iterator[Reference]:
    """Yield every URL a style sheet or a style attribute names, with what it is for, in order."""
    for start, end, kind in css_places(css):
        url = css_unescape(css[start:end]).strip()
        if not _opaque(url):
            yield Reference(kind, url)


_OPAQUE = re.compile(r"[\x00-\x20]*+(?:(?!https?:)[a-z][a-z0-9+.-]*+:|#|\Z)", re.IGNORECASE).match


def _opaque(url: str) -> bool:
    """Whether a URL names nothing on the web: another scheme, a place in the page, nothing."""
    return _OPAQUE(url) is not None


def _plain(value: str, kind: Kind | None) -> Iterator[tuple[Kind, str]]:
    if kind is not None:
        yield kind, value


def _srcset(value: str, kind: Kind | None) -> Iterator[tuple[Kind, str]]:
    for start, end in srcset_places(value):
        yield Kind.IMAGE, value[start:end]


def _refresh(value: str, kind: Kind | None) -> Iterator[tuple[Kind, str]]:
    if place := refresh_place(value):
        yield Kind.REFRESH, value[slice(*place)]


def _css(value: str, kind: Kind | None) -> Iterator[tuple[Kind, str]]:
    yield from css_references(value)


def _html(value: str, kind: Kind | None) -> Iterator[tuple[Kind, str]]:
    # A document inside a document inside a document is not read.
    for place in places(value):
        if not (isinstance(place, Place) and place.form is Form.HTML):
            yield from _urls_at(Source(value, None), place)


_READ: dict[Form, Callable[[str, Kind | None], Iterator[tuple[Kind, str]]]] = {
    Form.PLAIN: _plain,
    Form.SRCSET: _srcset,
    Form.REFRESH: _refresh,
    Form.CSS: _css,
    Form.HTML: _html,
    Form.BASE: lambda _value, _kind: iter(()),
    Form.DROPPED: _plain,
}
