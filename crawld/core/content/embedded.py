"""What a page shows that is no part of its text: frames, media, fields, icons, data, drawings.

Change detection leaves these out, since many of them change at every fetch. But two hosts of one
program may have the same texts around other contents: players of other videos, galleries of other
pictures, applications that draw other data. Pages of a replica rest only if this agrees too.

An element without text shows its attributes: an icon is a class, a script writes a price that is in
a data attribute.

Left out is what two copies of a page may have apart: names of either host, session parameters,
hidden form fields that are no numbers; in attributes and data words with digits and numbers of ten
digits (nonces, times); in programs also any single number (versions, counters, numbers of an
account), but not lists of numbers. Files of scripts are left out, since programs have versions.
Linear in the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

import xxhash

from crawld.core.content import html, media
from crawld.core.content.parse_limits import MAX_PARSE_BYTES
from crawld.core.content.targets import link_target
from crawld.core.content.twin import own_origin

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_NODES: Final = 5_000
"""Elements of one page that are looked at."""

_DRAWN: Final = (
    "d",
    "points",
    "width",
    "height",
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "r",
    "cx",
    "cy",
)
"""Attributes of shapes in SVG."""

_SHAPES: Final = ("path", "polygon", "polyline", "rect", "line", "circle", "ellipse")
_EDITS: Final = ("del", "ins", "s", "strike")
_NOT_SHOWN: Final = frozenset(
    {"id", "name", "nonce", "style", "href", "src", "srcset", "d", "points"}
)
"""Attributes of an element without text that its reader does not see, or that are read elsewhere.
"""

_PLACE_HOLDERS: Final = frozenset(
    {"head", "link", "p", "br", "hr", "wbr", "title", "textarea", "template"}
)
"""Elements that show nothing when they have no text."""

_SELECTOR: Final = ",".join(
    (
        *("iframe", "frame", "embed", "object", "video", "audio", "source", "img", "script"),
        *("style", "[style]", "input", "option[selected]", *_EDITS, *_SHAPES),
        *("meta[itemprop]", "meter", "progress", "use", ":blank"),
    )
)
_WORD: Final = re.compile(r"(?<!\w)[^\W\d]++(?!\w)")
"""A word without digits."""

_NUMBERS: Final = re.compile(r"\[\s*+(-?[\d.]++(?:\s*+,\s*+-?[\d.]++){2,}+)")
"""A list of three numbers or more."""

_NUMBER: Final = r"-?\d{1,9}(?:\.\d{1,9})?"
_VALUE: Final = re.compile(rf"(?<![\w.])(?<!\d:)(?:[^\W\d]++|{_NUMBER})(?![\w.:])")
"""A word without digits, or a number that is no time."""

_PLAIN_NUMBER: Final = re.compile(_NUMBER)
_TOKEN: Final = re.compile(r"(?=\D*\d)[\w+/=-]{24,}+")
_JSON_NUMBER: Final = re.compile(rf'[:\[,]\s*+"?({_NUMBER})(?="?\s*+[,}}\]])')

_PICTURE: Final = re.compile(r"url\(([^()]++)\)")
_UNSEEN_INPUTS: Final = frozenset({"hidden", "password"})


def embedded_digest(body: bytes, content_type: str | None, origins: Collection[str]) -> bytes:
    """Return the digest of what a page embeds; pages that embed nothing have the same.

    Args:
        body: the page.
        content_type: as declared.
        origins: those of the page and of its twin.
    """
    found = xxhash.xxh3_128()
    if media.sniff(content_type, body[: media.SNIFF_BYTES]) in (media.HTML, media.XHTML):
        text = media.decode(body[:MAX_PARSE_BYTES], media.charset_parameter(content_type)).text
        tree, _ = html.tree_of(text.encode("utf-8", "replace"))
        own = own_origin(origins)
        names = [origin.partition("//")[2] for origin in origins]
        labels = {label for name in names for label in _WORD.findall(name)} | {"http", "https"}
        for node in tree.css(_SELECTOR)[:MAX_NODES]:
            parts: Iterable[str]
            if node.tag == "script":
                # Word by word: a replacement would hold the interpreter for the whole script.
                script = node.text()
                words = (match[0] for match in _WORD.finditer(script))
                is_data = "json" in (node.attrs.get("type") or "").lower()
                numbers = _JSON_NUMBER if is_data else _NUMBERS
                parts = chain(
                    (word for word in words if word.lower() not in labels),
                    (match[1] for match in numbers.finditer(script)),
                )
            else:
                parts = (own.sub("", part) for part in _parts(node))
            for part in parts:
                found.update(part.encode("utf-8", "replace") + b"\n")
    return found.digest()


def _parts(node: LexborNode) -> Iterator[str]:
    tag, attributes = node.tag or "", node.attrs
    if style := attributes.get("style"):
        yield f"style {style}"
    if tag in _READERS:
        yield from _READERS[tag](node)
    elif address := attributes.get("src") or attributes.get("data"):
        yield f"{tag} {link_target(address)}"
    elif tag not in _PLACE_HOLDERS and _is_blank(node):
        yield from _shown_attributes(node)


def _field(node: LexborNode) -> Iterator[str]:
    value = node.attrs.get("value") or ""
    is_seen = (node.attrs.get("type") or "").lower() not in _UNSEEN_INPUTS
    if is_seen or _PLAIN_NUMBER.fullmatch(value):
        yield f"input {value} {'checked' in node.attrs}"


def _picture(node: LexborNode) -> Iterator[str]:
    """Yield the addresses of a picture: also those for other screens, or that a script loads."""
    source = node.attrs.get("src") or ""
    if node.tag == "source" or "?" in source:  # the path of an image is part of the text
        yield f"{node.tag} {link_target(source)}"
    for name, value in node.attrs.items():
        if value and (name == "srcset" or name.startswith("data-")):
            addresses = (part.strip(",") for part in value.split() if "/" in part)
            yield from (f"{name} {link_target(address)}" for address in addresses)


def _shape(node: LexborNode) -> Iterator[str]:
    yield f"{node.tag} {[node.attrs.get(name) for name in _DRAWN]}"


def _whole_text(node: LexborNode) -> Iterator[str]:
    yield f"{node.tag} {node.text()}"


def _backgrounds(node: LexborNode) -> Iterator[str]:
    yield from (f"url {match[1]}" for match in _PICTURE.finditer(node.text()))


def _property(node: LexborNode) -> Iterator[str]:
    if name := node.attrs.get("itemprop"):
        yield f"meta {name} {node.attrs.get('content')}"


def _value(node: LexborNode) -> Iterator[str]:
    yield f"{node.tag} {node.attrs.get('value')} {node.attrs.get('href')}"


_READERS: Final[dict[str, Callable[[LexborNode], Iterator[str]]]] = {
    "input": _field,
    "img": _picture,
    "source": _picture,
    "style": _backgrounds,
    "meta": _property,
    **dict.fromkeys(("meter", "progress", "use"), _value),
    **dict.fromkeys((*_EDITS, "option"), _whole_text),
    **dict.fromkeys(_SHAPES, _shape),
}
"""What elements show that do so whether they have text or not, by their names."""


def _is_blank(node: LexborNode) -> bool:
    """Whether an element contains nothing but space; never reads the text of many elements."""
    child = node.child
    return child is None or (
        child.tag == "-text" and child.next is None and not child.text().strip()
    )


def _shown_attributes(node: LexborNode) -> Iterator[str]:
    """Yield what the attributes of an element without text may show."""
    for name, value in node.attrs.items():
        if name not in _NOT_SHOWN and not name.startswith("on"):
            shown = "" if value is None or _TOKEN.fullmatch(value) else value
            yield f"{name} {[match[0] for match in _VALUE.finditer(shown)]}"
