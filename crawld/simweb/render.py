"""HTML of a page at a revision, and the noise a server adds to each response.

A page is rendered once per revision into constant pieces with holes between them. Each response
fills the holes with noise (date stamp, counter, advertisement, nonce, CSRF field, comment). So two
responses of one revision differ only in the holes.

Invariants: the caches of a site are bounded, texts by number, rendered pages by bytes; an evicted
page is rebuilt from its edits, byte for byte the same.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from crawld.simweb.graph import VOCABULARY, SiteGraph
from crawld.simweb.page_text import MEAN_SENTENCE_BYTES, USUAL_EDITS, EditKind, EditMix, PageText
from crawld.simweb.stateless_random import draw

KEPT_TEXTS = 512
KEPT_HTML_BYTES = 32 * 2**20

_FRAME_BYTES = 760  # head, infobox and footer of a page without text and links
_LINK_BYTES = 53
_HOLE = re.compile("\0(\\w)")
_ADVERTS = 12


class Noise(StrEnum):
    """What differs between two responses of one revision; the value marks its hole."""

    DATE = "d"
    COUNTER = "c"
    ADVERT = "a"
    NONCE = "n"
    CSRF = "f"
    COMMENT = "m"


ALL_NOISE = frozenset(Noise)


@dataclass(frozen=True, slots=True)
class PageStyle:
    """How the pages of a site look.

    Attributes:
        page_bytes: target size of a page; the actual size is within a fifth of it, but never below
            what its links need.
        mix: shares of the kinds of edits.
        noise: what each response adds.
    """

    page_bytes: int = 3000
    mix: EditMix = USUAL_EDITS
    noise: frozenset[Noise] = frozenset()


PLAIN_STYLE = PageStyle()


class Rendering:
    """All pages of a site as HTML.

    Only the home page links to `home_links`. Up to `kept_html_bytes` of pages stay in memory.
    """

    def __init__(
        self,
        graph: SiteGraph,
        style: PageStyle,
        *,
        home_links: tuple[str, ...] = (),
        kept_html_bytes: int = KEPT_HTML_BYTES,
    ) -> None:
        self._graph = graph
        self._style = style
        self._home_links = home_links
        self._kept_html_bytes = kept_html_bytes
        self._texts: OrderedDict[int, PageText] = OrderedDict()
        self._pieces: OrderedDict[int, tuple[int, list[bytes]]] = OrderedDict()
        self.kept_bytes = 0

    def html(self, page: int, revision: int, *, serial: int = 0, at: float = 0.0) -> bytes:
        """Return the body of response number `serial`, from which its noise is drawn.

        The date stamp shows `at`.
        """
        pieces = self._pieces_of(page, revision)
        if len(pieces) == 1:
            return pieces[0]
        filled = list(pieces)
        for hole in range(1, len(pieces), 2):
            filled[hole] = _noise(pieces[hole], serial, at)
        return b"".join(filled)

    def edit_kind(self, page: int, revision: int) -> EditKind:
        """Return the kind of edit that made `revision` (at least 1) of a page."""
        return self._text(page, revision).kinds[revision - 1]

    def _pieces_of(self, page: int, revision: int) -> list[bytes]:
        kept = self._pieces.get(page)
        if kept is not None and kept[0] == revision:
            self._pieces.move_to_end(page)
            return kept[1]
        pieces = [part.encode() for part in _HOLE.split(self._template(page, revision))]
        if kept is not None:
            self.kept_bytes -= sum(map(len, kept[1]))
        self._pieces[page] = (revision, pieces)
        self._pieces.move_to_end(page)
        self.kept_bytes += sum(map(len, pieces))
        while self.kept_bytes > self._kept_html_bytes and len(self._pieces) > 1:
            _, (_, evicted) = self._pieces.popitem(last=False)
            self.kept_bytes -= sum(map(len, evicted))
        return pieces

    def _text(self, page: int, revision: int) -> PageText:
        text = self._texts.pop(page, None)
        if text is None or text.revision > revision:
            links = len(self._graph.outlinks(page))
            room = self._style.page_bytes - _FRAME_BYTES - links * _LINK_BYTES
            text = PageText(
                draw(self._graph.seed, page, 5),
                sentences=room // MEAN_SENTENCE_BYTES,
                mix=self._style.mix,
            )
        while text.revision < revision:
            text.advance()
        if revision == 0:
            return text  # cheap to draw again, and most pages of a large web never change
        self._texts[page] = text
        if len(self._texts) > KEPT_TEXTS:
            self._texts.popitem(last=False)
        return text

    def _template(self, page: int, revision: int) -> str:
        title = self._graph.title(page)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{title}</title>\n"
            '<link rel="stylesheet" href="/style.css">\n'
            f"{self._hole(Noise.NONCE)}</head>\n<body>\n{self._hole(Noise.COMMENT)}"
            '<header><img src="/logo.svg" alt="logo"><nav><a href="/">Home</a></nav>'
            f"{self._hole(Noise.CSRF)}</header>\n"
            f'<main id="content">\n<h1>{title}</h1>\n'
            f"{self._main(page, self._text(page, revision))}</main>\n"
            f"{self._hole(Noise.ADVERT)}<footer>{self._hole(Noise.DATE)}"
            f"{self._hole(Noise.COUNTER)}<p>Text may be copied freely.</p></footer>\n"
            "</body>\n</html>\n"
        )

    def _main(self, page: int, text: PageText) -> str:
        graph = self._graph
        links = [f'<a href="{graph.path(n)}">{graph.title(n)}</a>' for n in graph.outlinks(page)]
        if page == 0:
            links += [f'<a href="{path}">{path}</a>' for path in self._home_links]
        table, in_text = text.facts[:3], text.facts[3:]
        parts = [_infobox(table)]
        blocks = len(text.blocks)
        for k, block in enumerate(text.blocks):
            if k % 4 == 0:
                heading = VOCABULARY[draw(graph.seed, page, 6, k) % 1024].capitalize()
                parts.append(f"<h2>{heading}</h2>\n")
            fact = f" They were {in_text[k]} in all." if k < len(in_text) else ""
            see = f" See {', '.join(links[k::blocks])}." if k < len(links) else ""
            parts.append(f"<p>{' '.join(block)}{fact}{see}</p>\n")
        parts += [f"<p>They were {number} in all.</p>\n" for number in in_text[blocks:]]
        return "".join(parts)

    def _hole(self, noise: Noise) -> str:
        return f"\0{noise.value}" if noise in self._style.noise else ""


def _infobox(numbers: list[int]) -> str:
    labels = ("Inhabitants", "Height", "Founded")
    rows = "".join(
        f"<tr><th>{label}</th><td>{number:,}</td></tr>"
        for label, number in zip(labels, numbers, strict=True)
    )
    return f'<table class="infobox">{rows}</table>\n'


def _noise(mark: bytes, serial: int, at: float) -> bytes:
    kind = Noise(mark.decode())
    token = draw(serial, ord(kind.value))
    match kind:
        case Noise.DATE:
            stamp = time.strftime("%d %B %Y, %H:%M:%S", time.gmtime(at))
            text = f"<p>Page served on {stamp} ({serial}).</p>"
        case Noise.COUNTER:
            text = f"<p>This page was viewed {serial + 1} times.</p>"
        case Noise.ADVERT:
            text = f'<aside class="ad"><p>{_advert(token % _ADVERTS)}</p></aside>\n'
        case Noise.NONCE:
            text = f'<script nonce="{token:016x}">var t = "{token:x}";</script>\n'
        case Noise.CSRF:
            text = f'<form><input type="hidden" name="csrf" value="{token:016x}"></form>'
        case Noise.COMMENT:
            text = f"<!-- cache {token:016x} served in {token % 90} ms -->\n"
    return text.encode()


def _advert(number: int) -> str:
    word = VOCABULARY[draw(number, 7) % 1024]
    return (
        f"Buy {word} today, only {10 + draw(number, 8) % 90} coins at {word.capitalize()} and Co."
    )
