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
from collections.abc import Collection, Iterable, Iterator, Mapping
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
_VALUES: Final = {"meter": "value", "progress": "value", "use": "href"}
"""Attributes that say what an element shows, whether it has text or not."""

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
    if tag == "input":
        value = attributes.get("value") or ""
        is_seen = (attributes.get("type") or "").lower() not in _UNSEEN_INPUTS
        if is_seen or _PLAIN_NUMBER.fullmatch(value):
            yield f"input {value} {'checked' in attributes}"
    elif tag == "img":
        source = attributes.get("src") or ""
        if "?" in source:  # the path is part of the text
            yield f"img {link_target(source)}"
        yield from _later_sources(attributes)
    elif tag in _SHAPES:
        yield f"{tag} {[attributes.get(name) for name in _DRAWN]}"
    elif tag in _EDITS or tag == "option":
        yield f"{tag} {node.text()}"
    elif tag == "style":
        yield from (f"url {match[1]}" for match in _PICTURE.finditer(node.text()))
    elif tag == "meta":
        if name := attributes.get("itemprop"):
            yield f"meta {name} {attributes.get('content')}"
    elif tag in _VALUES:
        yield f"{tag} {attributes.get(_VALUES[tag])}"
    elif address := attributes.get("src") or attributes.get("data"):
        yield f"{tag} {link_target(address)}"
    elif tag == "source":
        yield from _later_sources(attributes)
    elif tag not in _PLACE_HOLDERS and _is_blank(node):
        yield from _shown_attributes(attributes)


def _is_blank(node: LexborNode) -> bool:
    """Whether an element contains nothing but space; never reads the text of many elements."""
    child = node.child
    return child is None or (
        child.tag == "-text" and child.next is None and not child.text().strip()
    )


def _later_sources(attributes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the addresses of pictures for other screens, and of those that a script loads."""
    for name, value in attributes.items():
        if value and (name == "srcset" or name.startswith("data-")):
            addresses = (part.strip(",") for part in value.split() if "/" in part)
            yield from (f"{name} {link_target(address)}" for address in addresses)


def _shown_attributes(attributes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield what the attributes of an element without text may show."""
    for name, value in attributes.items():
        if name not in _NOT_SHOWN and not name.startswith("on"):
            shown = "" if value is None or _TOKEN.fullmatch(value) else value
            yield f"{name} {[match[0] for match in _VALUE.finditer(shown)]}"
