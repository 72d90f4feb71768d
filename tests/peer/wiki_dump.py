"""Deterministic histories of wiki pages, and their MediaWiki XML dump.

Pages form a binary tree of links from `Main Page`, so a crawl finds all of them; each also links to
a random page. Rates of change vary over three powers of ten. One edit in ten reverts to the text
before the last, so a digest recurs. Some titles contain characters that software often handles
wrong.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape

EPOCH_AT = 1_704_067_200  # 2024-01-01, after every revision
YEAR_S = 365 * 86_400

AWKWARD_TITLES = (
    "C++",
    "AC/DC",
    "Who goes there? (film)",
    "Salt & pepper",
    "Málaga",
    "北京市",
    "100% wool",
    'The "Old" Mill',
    "Ratio 3:4",
    "Tom's; Dick~s",
)
_WORD_LIST = """
anchor barley candle drift estuary ferry granite hollow inlet juniper kettle lantern
mortar needle orchard pewter quarry rudder saddle timber uplands vessel willow yarn zinc
"""
WORDS = tuple(_WORD_LIST.split())
_FORM = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">'
    "\n{pages}</mediawiki>\n"
)
_REVISION = (
    "<revision><timestamp>{time}</timestamp><contributor><username>{who}</username></contributor>"
    "<comment>{comment}</comment><model>wikitext</model><format>text/x-wiki</format>"
    '<text xml:space="preserve">{text}</text></revision>\n'
)


@dataclass(frozen=True, slots=True)
class Revision:
    """One saved text of a page; `at` in Unix seconds."""

    at: int
    text: str
    comment: str = ""
    contributor: str = "Importer"


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page and its revisions, oldest first."""

    title: str
    revisions: tuple[Revision, ...]
    namespace: int = 0


def make_histories(pages: int, revisions: int, seed: int = 1) -> list[WikiPage]:
    """Return `pages` articles with `revisions` revisions each.

    The last pages are a template, a category and a redirect to the first article.
    """
    rng = random.Random(seed)
    awkward = AWKWARD_TITLES[: pages // 2]
    titles = [f"Entry {number:04d}" for number in range(pages - len(awkward))] + list(awkward)
    articles = [_article(rng, titles, place, revisions) for place in range(pages)]
    start = EPOCH_AT - 20 * YEAR_S
    box = Revision(start, "<div>Entry of revision {{{1}}}</div>", "template")
    return [
        *articles,
        WikiPage("Template:Entry", (box,), namespace=10),
        WikiPage("Category:Entries", (Revision(start, "All entries.", "category"),), namespace=14),
        WikiPage("First entry", (Revision(start, f"#REDIRECT [[{titles[0]}]]", "redirect"),)),
    ]


def main_page_text(pages: Sequence[WikiPage]) -> str:
    """Return the text of a main page that links to the root of the article tree."""
    return f"Welcome. Start at [[{pages[0].title}]] or read [[:Category:Entries]]."


def to_xml_dump(pages: Iterable[WikiPage]) -> str:
    """Return pages as an XML dump for `importDump.php`."""
    return _FORM.format(pages="".join(map(_page, pages)))


def _article(rng: random.Random, titles: Sequence[str], place: int, revisions: int) -> WikiPage:
    title = titles[place]
    below = titles[2 * place + 1 : 2 * place + 3]
    # From one revision a day to one in three years, log-uniform by page.
    mean_gap_s = 86_400 * 10 ** rng.uniform(0, 3)
    ages_s = [rng.expovariate(1 / mean_gap_s) for _ in range(revisions)]
    at = EPOCH_AT - int(sum(ages_s)) - revisions
    texts: list[str] = []
    made = []
    for number, gap_s in enumerate(ages_s):
        if len(texts) > 1 and rng.random() < 0.1:
            text, comment = texts[-2], "revert"
        else:
            text, comment = _text(rng, title, (*below, rng.choice(titles)), number), "edit"
        texts.append(text)
        made.append(Revision(at, text, f"{comment} {number}", rng.choice(["Anna", "Ben"])))
        at += 1 + int(gap_s)
    return WikiPage(title, tuple(made))


def _text(rng: random.Random, title: str, links: Sequence[str], number: int) -> str:
    paragraphs = [
        " ".join(rng.choices(WORDS, k=rng.randint(10, 70))).capitalize() + "."
        for _ in range(min(number + 2, 6))
    ]
    seen = " and ".join(f"[[:{link}]]" for link in links)
    sections = "\n\n".join(f"== Part {i} ==\n{text}" for i, text in enumerate(paragraphs, 1))
    return (
        f"'''{title}''' stands beside {seen}.{{{{Entry|{number}}}}}\n\n{sections}\n\n"
        "[[Category:Entries]]"
    )


def _page(page: WikiPage) -> str:
    revisions = "".join(
        _REVISION.format(
            time=datetime.fromtimestamp(revision.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            who=escape(revision.contributor),
            comment=escape(revision.comment),
            text=escape(revision.text),
        )
        for revision in page.revisions
    )
    title = escape(page.title)
    return f"<page><title>{title}</title><ns>{page.namespace}</ns>\n{revisions}</page>\n"
