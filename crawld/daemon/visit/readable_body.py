"""The form in which a body is analysed: the body itself, or the text of a PDF."""

from __future__ import annotations

from typing import Final

import structlog

from crawld.core.content.documents import PDF, PDF_TEXT
from crawld.core.content.media import sniff
from crawld.core.value_type import value_type
from crawld.daemon.analyser import LONG_BYTES, Analyser, weight_of
from crawld.daemon.frontier.site import ActiveSite
from crawld.net.exchange import PREFIX_BYTES, FetchResponse
from crawld.pdf_text import PdfError, PdfText, extract_pdf

log = structlog.get_logger(__name__)

OUTPUT_BYTES: Final = 16 * 2**20
"""Memory of the text of a PDF while it is read: a million characters, escaped and decoded."""


@value_type
class ReadableBody:
    """A body in the form in which it is analysed.

    Attributes:
        content_type: what it is read as: a Content-Type field.
        weight: how many times as long it takes as a page of its size.
        pdf: the text it was made from; None: it is the body as received.
    """

    body: bytes
    content_type: str | None
    weight: int = 1
    pdf: PdfText | None = None


async def readable_body(
    response: FetchResponse, site: ActiveSite, url: str, analyser: Analyser
) -> ReadableBody:
    """Return the form in which the body of a response is analysed.

    Raises:
        AnalysisDroppedError: within a visit, the daemon stops.
    """
    declared = response.header("content-type")
    kind = sniff(declared, response.body[:PREFIX_BYTES])
    if kind == PDF and site.stores(PDF) and not response.cut:
        pdf = await _read_pdf(response.body, url, analyser)
        if pdf is not None:
            return ReadableBody(pdf.text.encode(), f"{PDF_TEXT}; charset=utf-8", pdf=pdf)
    return ReadableBody(response.body, declared, weight_of(kind))


async def _read_pdf(body: bytes, url: str, analyser: Analyser) -> PdfText | None:
    """Return the text of a PDF; None, with a line in the log, if it has none that can be read."""
    try:
        # Its child may take seconds: among the calls that short ones do not wait for.
        return await analyser.run(
            extract_pdf,
            body,
            url=url,
            size_bytes=max(len(body), LONG_BYTES + 1),
            memory_bytes=len(body) + OUTPUT_BYTES,
        )
    except PdfError as error:
        hint = "it is stored, and compared byte by byte"
        log.info("pdf_without_text", page=url, why=str(error), hint=hint)
        return None
