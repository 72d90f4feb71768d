"""What a page shows that is no part of its text: frames, media, fields, data in scripts, drawings.

Change detection leaves these out, since many of them change at every fetch. But two hosts of one
program may have the same texts around other contents: players of other videos, galleries of other
pictures, applications that draw other data. Pages of a replica rest only if this agrees too.

Left out is what two copies of a page may have apart: names of either host, session parameters,
hidden form fields; in scripts words with digits and single numbers (times, nonces, numbers of an
account), but not lists of numbers. Files of scripts are left out, since programs have versions.
Linear in the page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
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
_SELECTOR: Final = ",".join(
    (
        *("iframe", "frame", "embed", "object", "video", "audio", "source", "img", "script"),
        *("style", "[style]", "input", "option[selected]", *_EDITS, *_SHAPES),
    )
)
_WORD: Final = re.compile(r"(?<!\w)[^\W\d]++(?!\w)")
"""A word without digits."""

_NUMBERS: Final = re.compile(r"\[\s*+(-?[\d.]++(?:\s*+,\s*+-?[\d.]++){2,}+)")
"""A list of three numbers or more."""

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
                parts = chain(
                    (word for word in words if word.lower() not in labels),
                    (match[1] for match in _NUMBERS.finditer(script)),
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
        if (attributes.get("type") or "").lower() not in _UNSEEN_INPUTS:
            yield f"input {attributes.get('value') or ''} {'checked' in attributes}"
    elif tag == "img":
        source = attributes.get("src") or ""
        if "?" in source:  # the path is part of the text
            yield f"img {link_target(source)}"
    elif tag in _SHAPES:
        yield f"{tag} {[attributes.get(name) for name in _DRAWN]}"
    elif tag in _EDITS or tag == "option":
        yield f"{tag} {node.text()}"
    elif tag == "style":
        yield from (f"url {match[1]}" for match in _PICTURE.finditer(node.text()))
    elif address := attributes.get("src") or attributes.get("data"):
        yield f"{tag} {link_target(address)}"
