"""Kinds of documents that are read without being HTML: plain text, JSON, feeds, text of a PDF.

`document_blocks` cuts them into blocks, so that they are compared, searched and diffed like pages.
A document that is not what its type says is cut into lines.
"""

from __future__ import annotations

from typing import Final

from crawld.core.content import media
from crawld.core.content.blocks import Blocks, lines_of
from crawld.core.content.feed_blocks import feed_blocks
from crawld.core.content.json_blocks import json_blocks

PDF: Final = "application/pdf"

PDF_TEXT: Final = "text/vnd.crawld.pdf"
"""The media type of the text of a PDF, for all that analyse stored copies; it is UTF-8."""

FEED_TYPES: Final = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/rdf+xml"}
)

_READABLE: Final = FEED_TYPES | {
    *(media.HTML, media.XHTML, media.PLAIN, PDF, PDF_TEXT, "text/markdown", "text/x-markdown"),
}


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON, or a format written in JSON (RFC 6839, section 3.1)."""
    return content_type == media.JSON or content_type.endswith("+json")


def is_readable(content_type: str | None) -> bool:
    """Whether people read documents of a media type, so that they are searched."""
    return content_type is not None and (content_type in _READABLE or is_json(content_type))


def has_structure(content_type: str) -> bool:
    """Whether documents of a media type are read value by value, not by lines."""
    return content_type in FEED_TYPES or is_json(content_type)


def document_blocks(text: str, content_type: str) -> Blocks:
    """Return the blocks of a text document that is not HTML."""
    found = None
    if is_json(content_type):
        found = json_blocks(text)
    elif content_type in FEED_TYPES:
        found = feed_blocks(text)
    return lines_of(text) if found is None else found
