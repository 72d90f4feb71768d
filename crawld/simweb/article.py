"""Generate pages in the style of an encyclopedia: infobox, sections, notes, many links.

Benchmarks use them as load; the simulated web serves smaller pages. Equal seeds give equal pages.
"""

from __future__ import annotations

from random import Random

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LEXICON = 2000
_SCRIPT = "x" * 2000


def make_article(seed: int, size_bytes: int = 60_000) -> bytes:
    """Return an article of about the given size."""
    return _Article(seed).markup(size_bytes)


class _Article:
    """Generates the words and parts of one article."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rng = Random(seed)
        self._lexicon = [self._word() for _ in range(_LEXICON)]

    def markup(self, size_bytes: int) -> bytes:
        menu = "".join(f'<li id="n-{n}">{self._link(2)}</li>\n' for n in range(60))
        box = "".join(self._row() for _ in range(20))
        notes = "".join(self._note(n) for n in range(30))
        head = (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>Article {self._seed}</title>"
            '<meta name="generator" content="MediaWiki 1.39"><link rel="canonical" href="/wiki/A">'
            f"<script>var config = {{{_SCRIPT}}};</script></head><body><ul>{menu}</ul><main>"
            f'<h1 id="firstHeading">Article {self._seed}</h1><table class="infobox">{box}</table>\n'
        )
        foot = (
            f'<ol class="references">{notes}</ol></main>'
            "<footer>Last edited on 12 November 2026.</footer></body></html>"
        )
        paragraphs, size, note = [], len(head) + len(foot), 0
        while size < size_bytes:
            paragraph, note = self._paragraph(note)
            paragraphs.append(paragraph)
            size += len(paragraph)
        return (head + "".join(paragraphs) + foot).encode()

    def _word(self) -> str:
        return "".join(self._rng.choice(_LETTERS) for _ in range(self._rng.randint(2, 10)))

    def _words(self, count: int) -> str:
        return " ".join(self._rng.choice(self._lexicon) for _ in range(count))

    def _link(self, count: int) -> str:
        target = self._words(2).replace(" ", "_")
        return f'<a href="/wiki/{target}" title="{self._words(2)}">{self._words(count)}</a>'

    def _row(self) -> str:
        number = self._rng.randint(1, 9999)
        return f'<tr><th scope="row">{self._words(2)}</th><td>{number} {self._link(1)}</td></tr>\n'

    def _note(self, number: int) -> str:
        source = f"https://{self._words(1)}.example/{self._words(1)}"
        return (
            f'<li id="cite_note-{number}"><span class="mw-cite-backlink">'
            f'<b><a href="#cite_ref-{number}">^</a></b></span> <cite class="citation web">'
            f'{self._words(4)} <a rel="nofollow" class="external text" href="{source}">'
            f'"{self._words(4)}"</a>. <i>{self._words(2)}</i>. 2019.</cite></li>\n'
        )

    def _paragraph(self, note: int) -> tuple[str, int]:
        """Return a paragraph, and the number of the last note it cites."""
        parts = [f"<h2>{self._words(3)}</h2>\n"] if self._rng.random() < 0.2 else []
        for note in range(note + 1, note + 1 + self._rng.randint(3, 8)):  # noqa: B020
            parts.append(
                f"{self._words(self._rng.randint(8, 20))} {self._link(2)} {self._words(3)}."
                f'<sup id="cite_ref-{note}"><a href="#cite_note-{note}">[{note}]</a></sup> '
            )
        return "<p>" + "".join(parts) + "</p>\n", note


def edit_article(page: bytes, seed: int) -> bytes:
    """Return an article after an edit: a few words, a number, and the date in the footer."""
    rng = Random(seed)
    paragraphs = page.decode().split("<p>")
    for index in rng.sample(range(1, len(paragraphs)), 3):
        words = paragraphs[index].split(" ")
        words[2:4] = ["amended", str(rng.randint(1, 999))]
        paragraphs[index] = " ".join(words)
    text = "<p>".join(paragraphs)
    return text.replace("12 November 2026", f"{rng.randint(1, 30)} December 2026").encode()
