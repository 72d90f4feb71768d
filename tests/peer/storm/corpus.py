"""Pages of a wiki before a storm: all kinds that readers and operators meet.

There are three parts: titles that begin with `PREFIX`, pages in `CATEGORY` or below, and listed
titles. They overlap; if one of them is mirrored alone, nine pages of ten are in it. Templates are
nested and used by few and by many.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.peer.wiki_dump import EPOCH_AT, WORDS, Revision, WikiPage

PREFIX = "Atlas "
CATEGORY = "Category:Storm"
CATEGORIES = {
    "Category:Storm": None,
    "Category:Storm stones": "Category:Storm",
    "Category:Storm rivers": "Category:Storm",
    "Category:Storm deep rivers": "Category:Storm rivers",
}
"""Categories of the part, each with its parent."""

CATEGORY_DEPTH = 2
ALONE = 0.9
"""Share of the pages in a part that is mirrored alone."""

LABEL = "Template:Storm label"
STYLE = "MediaWiki:Common.css"

ODD_TITLES = (
    "C++",
    "100% wool",
    'The "Old" Mill',
    "Salt & pepper",
    "AC/DC",
    "Who goes there? (film)",
    "Málaga",
    "北京市",
    "Ratio 3:4",
    "Tom's; Dick~s",
    "مرحبا بالعالم",
    "שלום",
    "Plus+minus=3",
    "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}",
    "\N{GRINNING FACE} face",
    "Back\\slash",
    "Dot.",
    "Equals=a&b",
    "Star*bang! (at@dollar$,comma)",
    "Émile Zola",
    "IPhone",
    "Ø" * 110,
    "Long " + "title " * 35 + "end",
)


def words_of(number: int, count: int = 4) -> str:
    """Return words that encode a number."""
    words = []
    for _ in range(count):
        number, word = divmod(number, len(WORDS))
        words.append(WORDS[word])
    return " ".join(words)


def number_of(words: str) -> int:
    """Return the number that words encode."""
    number = 0
    for word in reversed(words.split(" ")):
        number = number * len(WORDS) + WORDS.index(word)
    return number


def mark(key: str, number: int) -> str:
    """Return the sentence by which a copy tells what it shows."""
    return f"Mark of {key}: {words_of(number)}."


@dataclass(slots=True)
class Article:
    """A page with content: articles, subpages, talk pages.

    Attributes:
        key: words that no other page or template has.
        number: number of its last edit.
        templates, categories, files: what its text uses; a file with its width, 0: as it is.
    """

    key: str
    number: int
    sentences: list[str]
    templates: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    files: list[tuple[str, int]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return its wikitext."""
        boxes = "".join(f"{{{{{name.removeprefix('Template:')}}}}}" for name in self.templates)
        images = "".join(
            f"[[{name}|{width}px]] " if width else f"[[{name}]] " for name, width in self.files
        )
        parts = "\n\n".join(f"== Part {i} ==\n{each}" for i, each in enumerate(self.sentences, 1))
        links = " and ".join(f"[[:{link}]]" for link in self.links)
        categories = "\n".join(f"[[{name}]]" for name in self.categories)
        return (
            f"{boxes}\n{mark(self.key, self.number)}\n\n{images}\nBeside {links}.\n\n"
            f"{parts}\n\n{categories}"
        )


@dataclass(slots=True)
class Redirect:
    """A page that redirects."""

    target: str

    def text(self) -> str:
        """Return its wikitext."""
        return f"#REDIRECT [[:{self.target}]]"


@dataclass(slots=True)
class Template:
    """A template with a mark; `labels`: the category that it gives to its users."""

    key: str
    number: int
    labels: str | None = None

    def text(self) -> str:
        """Return its wikitext."""
        label = f"<includeonly>[[{self.labels}]]</includeonly>" if self.labels else ""
        return f"<div>{mark(self.key, self.number)}</div>{label}"


@dataclass(slots=True)
class Corpus:
    """All pages by title.

    Attributes:
        users: titles of the templates that a storm edits, by number of pages that use them.
        outer: templates that only include another.
        images: content of each file.
        listed: titles of the title list, as an operator spells them.
    """

    pages: dict[str, Article | Redirect] = field(default_factory=dict)
    templates: dict[str, Template] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)
    outer: dict[str, str] = field(default_factory=dict)
    images: dict[str, bytes] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)

    def histories(self, seed: int) -> list[WikiPage]:
        """Return all pages with one to three revisions each, long ago."""
        rng = random.Random(seed)
        texts = {
            **{title: page.text() for title, page in self.pages.items()},
            **{title: each.text() for title, each in self.templates.items()},
            **{f"Template:{name}": f"{{{{{inner}}}}}" for name, inner in self.outer.items()},
            **{
                name: f"A category. {f'[[{parent}]]' if parent else ''}"
                for name, parent in CATEGORIES.items()
            },
        }
        return [_history(rng, title, text) for title, text in texts.items()]


def style_text(number: int) -> str:
    """Return the style sheet of the wiki after its edit `number`."""
    return f".storm-mark-{words_of(number).replace(' ', '-')} {{ color: #123456; }}"


def make_corpus(pages: int, seed: int, parts: Sequence[str]) -> Corpus:
    """Return a corpus of about `pages` pages, redirects, talk pages and subpages.

    Args:
        parts: what is mirrored: "category", "titles", "prefix".
    """
    rng = random.Random(seed)
    corpus = Corpus()
    alone = parts[0] if len(parts) == 1 else None
    for number, title in enumerate(_titles(pages, 10 if alone == "prefix" else 3)):
        corpus.pages[title] = Article(
            words_of(number, 3), 0, [new_sentence(rng) for _ in range(rng.randint(2, 6))]
        )
    _add_categories(corpus, rng, ALONE if alone == "category" else 0.5)
    _add_templates(corpus, rng)
    _add_files(corpus, rng, max(pages // 40, 2))
    titles = list(corpus.pages)
    for each in corpus.pages.values():
        assert isinstance(each, Article)
        each.links = rng.choices(titles, k=2)
    _add_redirects(corpus, rng, max(pages // 16, 3))
    _add_list(corpus, rng, ALONE if alone == "titles" else 0.2)
    return corpus


def _titles(pages: int, prefixed: int) -> list[str]:
    """Return titles of articles, subpages and talk pages.

    Of `prefixed` plain ones, all but one have the prefix; of three, one has.
    """
    odd = ODD_TITLES[: max(pages // 8, 1)]
    titles = [*odd, *(f"{PREFIX}{title}" for title in odd[: len(odd) // 2])]
    plain = max(pages * 9 // 10 - len(titles), 3)
    for number in range(plain):
        has_prefix = number % prefixed != 0 if prefixed > 3 else number % prefixed == 0
        prefix = PREFIX if has_prefix else "Entry "
        titles.append(f"{prefix}{number:03d}")
    atlas = [title for title in titles if title.startswith(PREFIX)]
    titles += [f"Talk:{title}" for title in atlas[: pages // 50]]
    titles += [f"{title}/Notes/Deep" for title in atlas[-(pages // 50) :]]
    return titles


def _add_categories(corpus: Corpus, rng: random.Random, share: float) -> None:
    names = list(CATEGORIES)
    for title, page in corpus.pages.items():
        assert isinstance(page, Article)
        if rng.random() < share and not title.startswith("Talk:"):
            page.categories.append(rng.choice(names))


def _add_templates(corpus: Corpus, rng: random.Random) -> None:
    titles = [title for title in corpus.pages if not title.startswith("Talk:")]
    total = len(titles)
    wanted = {
        "Template:Storm small one": 5,
        "Template:Storm small two": 5,
        "Template:Storm middle": min(50, total // 6),
        "Template:Storm wide/core": min(200, total * 2 // 5),
    }
    corpus.outer = {"Storm wide": "Storm wide/core", "Storm frame": "Storm wide"}
    for number, (name, count) in enumerate(wanted.items()):
        corpus.templates[name] = Template(words_of(9_000 + number, 3), 0)
        corpus.users[name] = rng.sample(titles, count)
        for title in corpus.users[name]:
            page = corpus.pages[title]
            assert isinstance(page, Article)
            wide = name.endswith("/core")
            page.templates.append(rng.choice(["Storm wide", "Storm frame"]) if wide else name)
    corpus.templates[LABEL] = Template(words_of(9_100, 3), 0)
    plain = [each for each in titles if not corpus.pages[each].categories]  # type: ignore[union-attr]
    corpus.users[LABEL] = rng.sample(plain, min(5, len(plain)))
    for title in corpus.users[LABEL]:
        corpus.pages[title].templates.append(LABEL)  # type: ignore[union-attr]


def _add_files(corpus: Corpus, rng: random.Random, count: int) -> None:
    titles = [title for title in corpus.pages if not title.startswith("Talk:")]
    for number in range(count):
        name = f"File:Storm picture {number}.png"
        corpus.images[name] = make_png(rng)
        for title in rng.sample(titles, min(4, len(titles))):
            corpus.pages[title].files.append((name, 120 * (number % 2)))  # type: ignore[union-attr]


def _add_redirects(corpus: Corpus, rng: random.Random, count: int) -> None:
    titles = [title for title in corpus.pages if not title.startswith("Talk:")]
    for number in range(count):
        prefix = PREFIX if number % 4 == 0 else ""
        corpus.pages[f"{prefix}Other name {number}"] = Redirect(rng.choice(titles))
    corpus.pages["Double name"] = Redirect("Other name 1")


def _add_list(corpus: Corpus, rng: random.Random, share: float) -> None:
    """List nearly every page of no other part, a share of the rest, redirects and spellings."""
    for title, page in corpus.pages.items():
        if isinstance(page, Redirect):
            if not title.startswith(PREFIX):
                corpus.listed.append(title)
        elif rng.random() < (
            share if title.startswith((PREFIX, "Talk:")) or page.categories else ALONE
        ):
            corpus.listed.append(title)
    plain = [title for title in corpus.listed if title.startswith("Entry ")]
    # The same titles in other spellings, and titles that the wiki does not have or refuses.
    corpus.listed += [title.replace(" ", "_") for title in plain[:2]]
    corpus.listed += [f"e{title[1:]}" for title in plain[2:4]]
    corpus.listed += ["Nobody wrote this", "Bad|title", "Bad[title]"]


def _history(rng: random.Random, title: str, text: str) -> WikiPage:
    at = EPOCH_AT - rng.randint(10**6, 10**8)
    older = tuple(
        Revision(at + 5_000 * number, f"Draft. {new_sentence(rng)}", "draft")
        for number in range(rng.randint(0, 2))
    )
    return WikiPage(title, (*older, Revision(at + 100_000, text, "seed")))


def new_sentence(rng: random.Random) -> str:
    """Return a random sentence."""
    return " ".join(rng.choices(WORDS, k=rng.randint(10, 50))).capitalize() + "."


def make_png(rng: random.Random, width: int = 300, height: int = 200) -> bytes:
    """Return a grey image of random stripes."""
    rows = b"".join(b"\0" + bytes([rng.randrange(256)]) * width for _ in range(height))
    chunks: Sequence[tuple[bytes, bytes]] = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
