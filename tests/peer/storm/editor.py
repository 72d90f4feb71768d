"""Changes a wiki through its API, and the harness's model of it with it.

Each method makes one kind of change to pages that it chooses by itself. It returns False, and
changes nothing, if no page fits.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.peer.mediawiki import MediaWiki
from tests.peer.storm.corpus import (
    CATEGORIES,
    LABEL,
    PREFIX,
    STYLE,
    Article,
    Redirect,
    make_png,
    new_sentence,
    style_text,
    words_of,
)
from tests.peer.storm.model import WikiModel
from tests.peer.wiki_dump import Revision, WikiPage

ZIPF = 0.8
MEMBER_SHARE = 0.8


class StormEditor:
    """Edits a wiki at random.

    Attributes:
        style_number: number of the last edit of the wiki's style sheet.
        touched: titles at which pages were deleted, restored, moved, swapped or imported.
    """

    def __init__(self, wiki: MediaWiki, model: WikiModel, seed: int) -> None:
        self.style_number = 0
        self.touched: set[str] = set()
        self._wiki = wiki
        self._model = model
        self._rng = random.Random(seed)
        self._edits = 0
        self._names = 20_000
        titles = sorted(model.members())
        self._ranked = [page for title in titles if (page := model.article(title))]
        self._rng.shuffle(self._ranked)
        self._weights = [(rank + 1) ** -ZIPF for rank in range(len(self._ranked))]

    def kinds(self) -> dict[str, Callable[[], bool]]:
        """Return the kinds of change by name."""
        return {
            "edit": self.edit,
            "create": self.create,
            "move": self.move,
            "move_away": lambda: self.move(redirect=False),
            "swap": self.swap,
            "delete": self.delete,
            "restore": self.restore,
            "upload": self.upload,
            "upload_again": self.upload_again,
            "import_page": self.import_page,
            "import_revision": self.import_revision,
            "add_category": self.add_category,
            "remove_category": self.remove_category,
            "label": self.label,
            "style": self.style,
            "double_redirect": self.double_redirect,
            "retarget": self.retarget,
            "template_5": lambda: self.template(self._rng.choice(_SMALL)),
            "template_50": lambda: self.template("Template:Storm middle"),
            "template_200": lambda: self.template("Template:Storm wide/core"),
        }

    def edit(self) -> bool:
        """Edit a page, often one of few."""
        by_id = {id(page): title for title, page in self._model.pages.items()}
        for _ in range(100):
            [page] = self._rng.choices(self._ranked, self._weights)
            if id(page) in by_id:
                self._save(by_id[id(page)], page)
                return True
        return False

    def template(self, title: str) -> bool:
        """Edit a template."""
        template = self._model.templates[title]
        template.number = self._next()
        self._wiki.edit(title, template.text())
        return True

    def create(self) -> bool:
        """Create a page: with the prefix, in a category, or both."""
        page, title = self._new_page()
        self._model.pages[title] = page
        self._save(title, page)
        return True

    def move(self, *, redirect: bool = True) -> bool:
        """Rename a page, within its part, out of the prefix or into it."""
        title = self._choose(lambda title, _: "/" not in title and not title.startswith("Talk:"))
        if title is None:
            return False
        self._names += 1
        name = f"{title.removeprefix(PREFIX)[:40]} {words_of(self._names, 3)}"
        keeps = self._rng.random() < 0.7
        to = f"{PREFIX}{name}" if title.startswith(PREFIX) == keeps else f"New {name}"
        self._wiki.move(title, to, redirect=redirect)
        pages = self._model.pages
        pages[to] = pages.pop(title)
        if redirect:
            pages[title] = Redirect(to)
        self.touched |= {title, to}
        return True

    def swap(self) -> bool:
        """Exchange the titles of two pages, as administrators do: three moves."""
        first, second = self._choose_plain(), self._choose_plain()
        if first is None or second is None or first == second:
            return False
        for old, new in ((first, "Swap area"), (second, first), ("Swap area", second)):
            self._wiki.move(old, new, redirect=False)
        pages = self._model.pages
        pages[first], pages[second] = pages[second], pages[first]
        self.touched |= {first, second}
        return True

    def delete(self) -> bool:
        """Delete a page."""
        title = self._choose_plain()
        if title is None:
            return False
        self._wiki.delete(title)
        self._model.deleted[title] = self._model.pages.pop(title)
        self.touched.add(title)
        return True

    def restore(self) -> bool:
        """Restore a deleted page."""
        found = sorted(title for title in self._model.deleted if title not in self._model.pages)
        if not found:
            return False
        title = self._rng.choice(found)
        self._wiki.undelete(title)
        self._model.pages[title] = self._model.deleted.pop(title)
        self.touched.add(title)
        return True

    def upload(self) -> bool:
        """Upload a new file and show it on a page."""
        title = self._choose_plain()
        if title is None:
            return False
        self._names += 1
        name = f"File:New picture {self._names}.png"
        self._model.images[name] = make_png(self._rng)
        self._wiki.upload(name, self._model.images[name])
        page = self._article(title)
        page.files.append((name, 120))
        self._save(title, page)
        return True

    def upload_again(self) -> bool:
        """Upload another picture under the name of a file."""
        name = self._rng.choice(sorted(self._model.images))
        self._model.images[name] = make_png(self._rng)
        self._wiki.upload(name, self._model.images[name])
        return True

    def import_page(self) -> bool:
        """Import a page with an old revision and one of last year."""
        page, title = self._new_page()
        page.number = self._next()
        self._model.pages[title] = page
        draft = Revision(1_600_000_000, f"Draft. {new_sentence(self._rng)}", "draft")
        self._wiki.import_dump([WikiPage(title, (draft, Revision(1_640_000_000, page.text())))])
        self.touched.add(title)
        return True

    def import_revision(self) -> bool:
        """Import an old revision of a page; its current text stays."""
        title = self._choose_plain()
        if title is None:
            return False
        at = 1_500_000_000 + self._rng.randrange(10**7)
        old = Revision(at, f"Found again. {new_sentence(self._rng)}", "import")
        self._wiki.import_dump([WikiPage(title, (old,))])
        self.touched.add(title)
        return True

    def add_category(self) -> bool:
        """Put a page into a category of the part."""
        title = self._choose(lambda title, page: not page.categories and "Talk:" not in title)
        if title is None:
            return False
        page = self._article(title)
        page.categories.append(self._rng.choice(list(CATEGORIES)))
        self._save(title, page)
        return True

    def remove_category(self) -> bool:
        """Take a page out of all categories."""
        title = self._choose(lambda _, page: bool(page.categories))
        if title is None:
            return False
        page = self._article(title)
        page.categories.clear()
        self._save(title, page)
        return True

    def label(self) -> bool:
        """Let a template give its users a category, or take it away."""
        template = self._model.templates[LABEL]
        template.labels = None if template.labels else "Category:Storm stones"
        return self.template(LABEL)

    def style(self) -> bool:
        """Edit the style sheet of the wiki."""
        self.style_number = self._next()
        self._wiki.edit(STYLE, style_text(self.style_number))
        return True

    def double_redirect(self) -> bool:
        """Create a redirect to a redirect."""
        found = sorted(t for t, page in self._model.pages.items() if isinstance(page, Redirect))
        if not found:
            return False
        self._names += 1
        title = f"Double {words_of(self._names, 3)}"
        redirect = Redirect(self._rng.choice(found))
        self._wiki.edit(title, redirect.text())
        self._model.pages[title] = redirect
        return True

    def retarget(self) -> bool:
        """Let a redirect point to another page."""
        found = sorted(t for t, page in self._model.pages.items() if isinstance(page, Redirect))
        target = self._choose_plain()
        if not found or target is None:
            return False
        title = self._rng.choice(found)
        redirect = Redirect(target)
        self._wiki.edit(title, redirect.text())
        self._model.pages[title] = redirect
        return True

    def _new_page(self) -> tuple[Article, str]:
        self._names += 1
        key = words_of(self._names, 3)
        page = Article(key, 0, [new_sentence(self._rng) for _ in range(3)])
        prefixed = self._rng.random() < 0.5
        if not prefixed or self._rng.random() < 0.3:
            page.categories.append(self._rng.choice(list(CATEGORIES)))
        return page, f"{PREFIX if prefixed else ''}Späte {key}"

    def _save(self, title: str, page: Article) -> None:
        page.number = self._next()
        page.sentences[self._rng.randrange(len(page.sentences))] = new_sentence(self._rng)
        self._wiki.edit(title, page.text())

    def _next(self) -> int:
        self._edits += 1
        return self._edits

    def _article(self, title: str) -> Article:
        page = self._model.pages[title]
        assert isinstance(page, Article)
        return page

    def _choose(self, fits: Callable[[str, Article], bool]) -> str | None:
        """Return the title of an article that fits, mostly of one in the part."""
        found = sorted(
            title
            for title, page in self._model.pages.items()
            if isinstance(page, Article) and fits(title, page)
        )
        members = self._model.members().intersection(found)
        if members and self._rng.random() < MEMBER_SHARE:
            found = sorted(members)
        return self._rng.choice(found) if found else None

    def _choose_plain(self) -> str | None:
        return self._choose(lambda title, _: not title.startswith("Talk:"))


_SMALL = ("Template:Storm small one", "Template:Storm small two")
