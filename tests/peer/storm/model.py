"""What a wiki shows, kept by the harness itself, and what belongs to the mirrored part.

`WikiModel.view(title)` is what a reader of the wiki sees, as far as marks can tell it, and
`members()` the titles that a mirror of the part must have.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

from tests.peer.storm.corpus import (
    CATEGORIES,
    LABEL,
    PREFIX,
    Article,
    Corpus,
    Redirect,
)

PARTS = ("category", "titles", "prefix")


@dataclass(frozen=True, slots=True)
class PageView:
    """What a reader should see at a title.

    Attributes:
        marks: numbers by key, of the page and of its templates; None: no page.
        only: keys of pages that may be seen instead, at any number; for redirects.
    """

    marks: tuple[tuple[str, int], ...] | None
    only: frozenset[str] = frozenset()


ABSENT = PageView(None)


@dataclass
class WikiModel:
    """The pages of a wiki and the rules of the mirrored part.

    Attributes:
        parts: of `PARTS`; those that are mirrored, empty for the whole wiki.
        deleted: deleted pages, for a restoration.
    """

    corpus: Corpus
    parts: tuple[str, ...]
    deleted: dict[str, Article | Redirect] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pages = self.corpus.pages
        self.templates = self.corpus.templates
        self.images = self.corpus.images
        self._listed = {normalized(title) for title in self.corpus.listed if "[" not in title}

    def article(self, title: str) -> Article | None:
        """Return the article at a title."""
        page = self.pages.get(title)
        return page if isinstance(page, Article) else None

    def view(self, title: str) -> PageView:
        """Return what a reader of the wiki sees at a title."""
        page = self.pages.get(title)
        if page is None:
            return ABSENT
        if isinstance(page, Article):
            return PageView(tuple(sorted(self._marks(page).items())))
        target = self.pages.get(page.target)
        if isinstance(target, Article):
            return PageView((), frozenset({target.key}))
        # A redirect to a redirect or to nothing: the wiki shows the redirect itself.
        last = self.article(target.target) if target is not None else None
        return PageView((), frozenset({last.key} if last else ()) | {""})

    def _marks(self, page: Article) -> dict[str, int]:
        marks = {page.key: page.number}
        for name in page.templates:
            inner = f"Template:{self._inner(name)}" if name in self.corpus.outer else name
            template = self.templates[inner]
            marks[template.key] = template.number
        return marks

    def _inner(self, name: str) -> str:
        while name in self.corpus.outer:
            name = self.corpus.outer[name]
        return name

    def users(self, template: str) -> list[str]:
        """Return the titles that use a template, directly or through others."""
        key = self.templates[template].key
        return [
            title
            for title, page in self.pages.items()
            if isinstance(page, Article) and key in self._marks(page)
        ]

    def members(self) -> set[str]:
        """Return the titles that a mirror of the part must have.

        A redirect to a page of no part may be followed or marked; both are right.
        """
        redirects = {
            title: page.target for title, page in self.pages.items() if isinstance(page, Redirect)
        }
        listed = self._listed | {redirects[each] for each in self._listed if each in redirects}
        named = {title for title in self.pages if self._is_named(title, listed)}
        articles = {title for title in named if title not in redirects}
        return articles | {title for title in named - articles if redirects[title] in articles}

    def _is_named(self, title: str, listed: set[str]) -> bool:
        if not self.parts:
            return not title.startswith("Talk:")
        page = self.pages[title]
        return (
            ("prefix" in self.parts and title.removeprefix("Talk:").startswith(PREFIX))
            or ("titles" in self.parts and title in listed)
            or (
                "category" in self.parts
                and isinstance(page, Article)
                and not self._categories(page).isdisjoint(CATEGORIES)
            )
        )

    def _categories(self, page: Article) -> set[str]:
        label = self.templates[LABEL]
        labelled = {label.labels} if LABEL in page.templates and label.labels else set()
        return {*page.categories, *labelled}


def normalized(title: str) -> str:
    """Return a title as MediaWiki spells it."""
    title = unicodedata.normalize("NFC", title.replace("_", " ").strip())
    return title[:1].upper() + title[1:]
