"""Analyzes one body: type, text, links, blocks, digests and sketch.

`analyse` combines the parts of this package. A visit that only follows links can call
`media.decode`, `html.parse` and `fingerprint.digest` alone.

Invariants: every body has an analysis. HTML is parsed, JSON and feeds are read by their structure,
other text is cut into lines; a binary body has no text and is compared by its digest alone. The
part of a body beyond the limits is not parsed, but enters the cleaned digest as one opaque block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crawld.core.content import html, media
from crawld.core.content.blocks import Blocks, blocks_of
from crawld.core.content.difference import difference
from crawld.core.content.documents import PDF_TEXT, document_blocks
from crawld.core.content.fingerprint import cleaned_digest, digest, sketch
from crawld.core.content.parse_limits import MAX_PARSE_BYTES
from crawld.core.content.quarantine import UNANALYSED
from crawld.core.content.volatile import VolatileRules, cleaned
from crawld.core.value_type import value_type

MAX_TEXT_BYTES = MAX_PARSE_BYTES
"""Bytes read of a text body that is not HTML."""

Measure = Callable[[str | bytes, str | bytes], float]
"""Returns how much two texts differ, [0, 1]."""

_PAGES = frozenset({media.HTML, media.XHTML})
_TEXTUAL = frozenset({media.XML, media.JSON, "application/javascript", "image/svg+xml"})


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one body.

    Attributes:
        content_type: the sniffed media type.
        charset: the charset of the text, None for a binary body.
        page: links and head, None if the body is not HTML.
        blocks: the visible text.
        cleaned_digest: digest of the cleaned text, under the given rules.
        sketch: sketch for near-duplicates.
        difference: weighted difference from the previous blocks, None without them.
    """

    content_type: str
    charset: str | None
    page: html.ParsedPage | None
    blocks: Blocks
    digest: bytes
    cleaned_digest: bytes
    sketch: bytes
    difference: float | None


def analyse(
    body: bytes,
    content_type: str | None = None,
    *,
    previous: Blocks | None = None,
    volatile: VolatileRules | None = None,
    max_links: int = html.MAX_LINKS,
    measure: Measure = difference,
    exact: bytes | None = None,
) -> Analysis:
    """Analyze one body.

    Args:
        body: the body as received, after content decoding.
        previous: blocks of the version to compare with (`read_blocks` of its stored body).
        volatile: rules of the page and of its host, joined, as they were before this body.
        measure: measures the difference of two cleaned texts.
        exact: digest of the body; None: not known yet.
    """
    believed = _type_of(body, content_type)
    charset, page, blocks = _read(body, believed, content_type, max_links)
    stable = cleaned(blocks, volatile)
    return Analysis(
        content_type=believed,
        charset=charset,
        page=page,
        blocks=blocks,
        digest=exact or digest(body),
        cleaned_digest=cleaned_digest(stable),
        sketch=sketch(blocks.visible_text()),
        difference=None if previous is None else measure(cleaned(previous, volatile), stable),
    )


def read_blocks(body: bytes, content_type: str | None = None) -> Blocks:
    """Return only the blocks of a body, as in its `analyse`."""
    believed = _type_of(body, content_type)
    text = _text_of(body, believed, content_type)
    if text is None:
        return _opaque(body)
    if believed not in _PAGES:
        return text.document(believed)
    markup = text.markup()
    tree, end = html.tree_of(markup)
    return text.blocks(blocks_of(tree, html.title_of(tree)), markup[end:])


def _type_of(body: bytes, content_type: str | None) -> str:
    declared = media.media_type(content_type)
    if declared in (UNANALYSED, PDF_TEXT):
        return declared  # even if it looks like a page
    return media.sniff(content_type, body[: media.SNIFF_BYTES])


def difference_of(
    old: Blocks,
    new: Blocks,
    volatile: VolatileRules | None = None,
    measure: Measure = difference,
) -> float:
    """Return the weighted difference of two readings, both cleaned under the same rules."""
    return measure(cleaned(old, volatile), cleaned(new, volatile))


@value_type
class _Text:
    """A text body: the decoded part, and the bytes after it."""

    decoded: media.DecodedText
    tail: bytes

    def markup(self) -> bytes:
        return self.decoded.text.encode("utf-8", "replace")

    def document(self, believed: str) -> Blocks:
        return _with_tail(document_blocks(self.decoded.text, believed), self.tail)

    def blocks(self, blocks: Blocks, unparsed: bytes) -> Blocks:
        return _with_tail(blocks, unparsed + self.tail)


def _text_of(body: bytes, believed: str, content_type: str | None) -> _Text | None:
    if not _is_text(believed):
        return None
    declared = media.charset_parameter(content_type)
    return _Text(media.decode(body[:MAX_TEXT_BYTES], declared), body[MAX_TEXT_BYTES:])


def _read(
    body: bytes, believed: str, content_type: str | None, max_links: int
) -> tuple[str | None, html.ParsedPage | None, Blocks]:
    text = _text_of(body, believed, content_type)
    if text is None:
        return None, None, _opaque(body)
    charset = text.decoded.charset
    if believed not in _PAGES:
        return charset, None, text.document(believed)
    markup = text.markup()
    page = html.parse(markup, max_links=max_links)
    found = blocks_of(page.tree, page.title)
    return charset, page, text.blocks(found, markup[page.parsed_bytes :])


def _is_text(believed: str) -> bool:
    return (
        believed.startswith("text/") or believed in _TEXTUAL or believed.endswith(("+xml", "+json"))
    )


def _opaque(body: bytes) -> Blocks:
    return Blocks((f"body: {digest(body).hex()}",), (0,)) if body else Blocks((), ())


def _with_tail(blocks: Blocks, tail: bytes) -> Blocks:
    opaque = _opaque(tail)
    return Blocks(blocks.texts + opaque.texts, blocks.places + opaque.places) if tail else blocks
