"""Pages of a site and their links, computed instead of stored.

Pages are numbered 0 .. pages - 1; page 0 is the home page at `/`. The parent of page i is page
(i - 1) // branching, so a breadth-first crawl from the home page reaches every page. Cross links
are added, skewed towards low numbers like the in-links of a real wiki. A title is a bijection of
the page number (an affine map modulo a power of the vocabulary size, whose digits are words). So
arithmetic turns a path back into its page, and a site of a million pages needs no memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crawld.simweb.stateless_random import draw, uniform

_ONSETS = "bdfgklmnprstvwzh"
_VOWELS = "aeiou"
_ENDINGS = ("", "n", "ra", "lis", "st", "mo", "der", "th")


def _vocabulary() -> tuple[str, ...]:
    # Two syllables encode the number, so all words differ; the ending is for variety.
    syllables = [_ONSETS[i % 16] + _VOWELS[(i // 16 + i) % 5] for i in range(32)]
    return tuple(
        syllables[i >> 5] + syllables[i & 31] + _ENDINGS[draw(i) % len(_ENDINGS)]
        for i in range(1024)
    )


VOCABULARY = _vocabulary()
_WORD_NUMBER = {word: number for number, word in enumerate(VOCABULARY)}
_SIZE = len(VOCABULARY)


@dataclass(frozen=True, slots=True)
class SiteGraph:
    """A wiki-like site: page numbers, titles, paths and links.

    Attributes:
        pages: number of pages, at least 1.
        seed: other seeds give other titles and other cross links.
        branching: children of a page in the tree.
        cross_links: random links of a page besides those of the tree.
    """

    pages: int
    seed: int = 0
    branching: int = 8
    cross_links: int = 10
    _code: tuple[int, int, int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if min(self.pages, self.branching) < 1 or self.cross_links < 0:
            raise ValueError("pages and branching must be at least 1, cross_links 0")
        digits = 2
        while _SIZE**digits < self.pages:
            digits += 1
        # An odd factor is invertible modulo a power of two.
        code = (digits, _SIZE**digits, draw(self.seed, 3) | 1, draw(self.seed, 4))
        object.__setattr__(self, "_code", code)

    def title(self, page: int) -> str:
        """Return the unique title of a page, two words or more."""
        digits, modulus, factor, offset = self._code
        code = (page * factor + offset) % modulus
        words = []
        for _ in range(digits):
            code, digit = divmod(code, _SIZE)
            words.append(VOCABULARY[digit])
        return " ".join(words).capitalize()

    def path(self, page: int) -> str:
        """Return the path of a page; `/` for the home page."""
        if page == 0:
            return "/"
        return f"/wiki/{self.title(page).replace(' ', '_')}"

    def page_at(self, path: str) -> int | None:
        """Return the page at `path`; None if there is none."""
        if path == "/":
            return 0
        page = self._page_titled(path.rpartition("/")[2])
        return page if page is not None and self.path(page) == path else None

    def parent(self, page: int) -> int:
        """Return the parent of a page in the tree; the home page is its own parent."""
        return max(0, (page - 1) // self.branching)

    def children(self, page: int) -> range:
        """Return the children of a page in the tree."""
        first = page * self.branching + 1
        return range(min(first, self.pages), min(first + self.branching, self.pages))

    def outlinks(self, page: int) -> tuple[int, ...]:
        """Return the pages that a page links to, without itself and without duplicates."""
        found = dict.fromkeys((*self.children(page), 0, self.parent(page)))
        for k in range(self.cross_links):
            found[int(self.pages * uniform(self.seed, page, 2, k) ** 2)] = None
        found.pop(page, None)
        return tuple(found)

    def _page_titled(self, name: str) -> int | None:
        digits, modulus, factor, offset = self._code
        words = name.lower().split("_")
        if len(words) != digits:
            return None
        code = 0
        for word in reversed(words):
            if (number := _WORD_NUMBER.get(word)) is None:
                return None
            code = code * _SIZE + number
        page = (code - offset) * pow(factor, -1, modulus) % modulus
        return page if page < self.pages else None
