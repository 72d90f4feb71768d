"""Requisites of a page (images, styles, scripts ...), read from its parsed tree.

Finds the requisites among the URLs of `references.url_locations` in a twentieth of the time: a
visit has already parsed the page for its links, and only elements that can name a requisite are
read. CSS within the page is read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from crawld.core.content.html import MAX_LINKS, ParsedPage
from crawld.core.content.references import PRELOADED, PRELOADS, RELS, css_references
from crawld.core.content.url_kind import UrlKind
from crawld.core.content.url_syntax import srcset_url_spans

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MIRRORED_KINDS = frozenset(
    {UrlKind.IMAGE, UrlKind.ICON, UrlKind.STYLE, UrlKind.SCRIPT, UrlKind.FONT}
)
"""Kinds of requisites that are always mirrored; audio and video only on request."""

_VISIBLE_SELECTOR = (
    "img,source[srcset],source[data-srcset],script[src],link[href][rel],link[imagesrcset],"
    'input[type="image" i][src],video[poster],[background],image,feImage,use'
)
_MEDIA_SELECTOR = "video[src],audio[src],source[src],track[src]"
_STYLED_SELECTOR = 'style,[style*="url(" i],[style*="image-set(" i]'

_RELS = frozenset(rel for rel, kind in RELS if kind in MIRRORED_KINDS)
_PRELOADED = frozenset(name for name, kind in PRELOADED.items() if kind in MIRRORED_KINDS)
_ATTRIBUTES = {
    "img": ("src", "data-src", "lowsrc"),
    "script": ("src",),
    "input": ("src",),
    "video": ("poster",),
    "image": ("href", "xlink:href"),
    "feimage": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}


class Needs(NamedTuple):
    """Which requisites of a page or a style sheet are wanted.

    Attributes:
        most: how many at most.
        media: whether audio and video are among them.
    """

    most: int
    media: bool = False


def page_requisites(page: ParsedPage, *, include_media: bool = False) -> list[str]:
    """Return the requisite URLs of a page, as written, without repeats, grouped by element."""
    found: dict[str, None] = {}
    for node in page.tree.css(_VISIBLE_SELECTOR)[:MAX_LINKS]:
        found.update(dict.fromkeys(_node_urls(node)))
    for node in page.tree.css(_STYLED_SELECTOR)[:MAX_LINKS]:
        css = node.text() if node.tag == "style" else node.attributes.get("style")
        found.update(dict.fromkeys(stylesheet_requisites(css or "")))
    if include_media:
        hrefs = (node.attributes.get("src") for node in page.tree.css(_MEDIA_SELECTOR)[:MAX_LINKS])
        found.update(dict.fromkeys(href for href in hrefs if href))
    return [href for href in found if _is_fetchable(href)]


def stylesheet_requisites(css: str) -> Iterator[str]:
    """Yield the requisite URLs of a style sheet, as written."""
    return (each.url for each in css_references(css) if each.kind in MIRRORED_KINDS)


def _node_urls(node: LexborNode) -> Iterable[str]:
    attributes = node.attrs
    tag = (node.tag or "").lower()
    if tag == "link":
        yield from _link_urls(attributes.get("rel"), attributes.get("as"), attributes.get("href"))
    for name in _ATTRIBUTES.get(tag, ()):
        if value := attributes.get(name):
            yield value.strip()
    if background := attributes.get("background"):
        yield background.strip()
    for name in ("srcset", "data-srcset", "imagesrcset"):
        if value := attributes.get(name):
            yield from (value[start:end] for start, end in srcset_url_spans(value))


def _link_urls(rel: str | None, loaded_as: str | None, href: str | None) -> Iterable[str]:
    rels = (rel or "").lower().split()
    if not href:
        return
    if _RELS.intersection(rels) or (
        PRELOADS.intersection(rels) and (loaded_as or "").strip().lower() in _PRELOADED
    ):
        yield href.strip()


def _is_fetchable(href: str) -> bool:
    # References within the page and data: URLs need no request.
    return not href.startswith("#") and not href[:5].lower().startswith("data:")
