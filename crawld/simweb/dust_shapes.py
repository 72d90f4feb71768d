"""Sites of known shapes that show pages under many URLs, with what misleads on each.

Each shape has duplicates by causes that such sites have, and pages that differ by a parameter or a
segment that looks the same: old revisions of a wiki, filters of a shop, posts of a forum, months of
a calendar, translations, identifiers in which the case counts, comments that few pages have.

Like in `dust_site`, a page has one name, and links depend on the page alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

LINKS: Final = 14
"""Links of a page."""

_HEX: Final = "0123456789abcdef"


class ShapedSite:
    """A site of one shape; targets are paths with queries."""

    def __init__(self, seed: int, pages: int = 1_000) -> None:
        """Make a site.

        Args:
            seed: of its links.
            pages: how many things (articles, products, topics) it has.
        """
        self._seed = seed
        self._pages = pages

    def page_of(self, target: str) -> str:
        """Return the name of the page that a target shows; one name is one text."""
        path, _, query = target.partition("?")
        if path == "/":
            return "home"
        return self._page(path, dict(parse_qsl(query, keep_blank_values=True)))

    def links(self, target: str) -> list[str]:
        """Return the targets that a page links to."""
        page = self.page_of(target)
        if page == "missing":
            return []
        rng = random.Random(f"{self._seed} {page}")
        return [self._link(rng, int(self._pages * rng.random())) for _ in range(LINKS)]

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        raise NotImplementedError

    def _link(self, rng: random.Random, number: int) -> str:
        raise NotImplementedError

    def _draw(self, *key: object) -> float:
        """Return a number between 0 and 1 that depends on a key alone."""
        return random.Random(f"{self._seed} {key}").random()

    def _number(self, text: str) -> int | None:
        """Return the number of a thing; None: there is none."""
        return int(text) if text.isdigit() and len(text) < 7 and int(text) < self._pages else None


def _query(rng: random.Random, items: list[str], *, shuffled: bool = True) -> str:
    if shuffled:
        rng.shuffle(items)
    return "?" + "&".join(items) if items else ""


def _hex(rng: random.Random, length: int = 16) -> str:
    return "".join(rng.choice(_HEX) for _ in range(length))


class WikiShape(ShapedSite):
    """A wiki: skins and print views are duplicates; revisions, histories, redirect pages are not.

    The latest revision is a duplicate of its page, and one page in ten has no other.
    """

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        title = given.get("title", "")
        if path.startswith("/wiki/"):
            title = path.removeprefix("/wiki/")
        elif path != "/index.php":
            return "missing"
        number = self._number(title.removeprefix("T"))
        if number is None:
            return "missing"
        if given.get("action", "view") != "view":
            return f"{given['action']} {number}"
        if "diff" in given:
            return f"diff {number} {given['diff']}"
        if number % 11 == 0:
            if given.get("redirect") == "no":
                return f"redirect {number}"
            number += 1
        last = 1 + number % 10
        return f"page {number} {min(int(given.get('oldid', last)), last)}"

    def _link(self, rng: random.Random, number: int) -> str:
        kind = rng.random()
        if kind < 0.45:
            return f"/wiki/T{number}"
        items = [f"title=T{number}"]
        if kind < 0.65:
            items.append(rng.choice(("printable=yes", "mobileaction=toggle", "useskin=mono")))
        elif kind < 0.75:
            items.append("redirect=no")
        elif kind < 0.85:
            items.append(f"oldid={rng.randint(1, 10)}")
        elif kind < 0.9:
            items.append(f"diff={rng.randint(2, 10)}")
        elif kind < 0.95:
            items.append(rng.choice(("action=history", "action=edit", "action=view")))
        return f"/index.php{_query(rng, items, shuffled=rng.random() < 0.3)}"


class ShopShape(ShapedSite):
    """A shop: the order of filters and where a reader came from say nothing; filters do.

    Many filters find nothing, and answer the same. One product in twelve has variants.
    """

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        name, _, rest = path[1:].partition("/")
        number = self._number(rest)
        if number is None or name not in ("item", "list"):
            return "missing"
        currency = given.get("currency", "EUR")
        if name == "item":
            variant = given.get("variant", "0") if number % 12 == 0 else "0"
            return f"item {number} {variant} {currency}"
        filters = sorted((key, given[key]) for key in ("color", "size", "brand") if key in given)
        if len(filters) > 1 and self._draw(filters) < 0.5:
            return "nothing found"
        return f"list {number % 40} {filters} {given.get('page', '1')} {currency}"

    def _link(self, rng: random.Random, number: int) -> str:
        items = []
        if rng.random() < 0.1:
            items.append("currency=" + rng.choice(("USD", "EUR")))
        if rng.random() < 0.6:
            if rng.random() < 0.3:
                items.append(f"variant={rng.randint(1, 3)}")
            if rng.random() < 0.6:
                items.append(f"pos={rng.randint(1, 60)}")
            return f"/item/{number}{_query(rng, items)}"
        values = {"color": "red green blue", "size": "s m l xl", "brand": "a b c d e"}
        items += [
            f"{name}={rng.choice(every.split())}"
            for name, every in values.items()
            if rng.random() < 0.4
        ]
        if rng.random() < 0.4:
            items.append("sort=" + rng.choice(("price", "name", "new")))
        if rng.random() < 0.3:
            items.append(f"page={rng.randint(1, 3)}")
        return f"/list/{number % 40}{_query(rng, items)}"


class ForumShape(ShapedSite):
    """A forum: session ids, the number of the board, `start=0`, searched words are duplicates.

    Later parts of a topic are not; profiles show all guests the same login.
    """

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        if path == "/memberlist.php":
            return "login"
        topic = self._number(given.get("t", ""))
        if "p" in given and self._number(given["p"]) is not None:
            topic = int(given["p"]) // 5
        if path != "/viewtopic.php" or topic is None:
            return "missing"
        start = min(int(given.get("start", "0")), 15 * (topic % 3))
        return f"topic {topic} {start}"

    def _link(self, rng: random.Random, number: int) -> str:
        kind = rng.random()
        if kind < 0.1:
            return f"/memberlist.php{_query(rng, [f'u={number}'])}"
        if kind < 0.2:
            return f"/viewtopic.php?p={number}"
        items = [f"t={number}"]
        if rng.random() < 0.5:
            items.insert(0, f"f={number % 7}")
        if rng.random() < 0.3:
            items.append(f"start={rng.choice((0, 15, 30))}")
        if rng.random() < 0.4:
            items.append(f"zid={_hex(rng)}")
        if rng.random() < 0.1:
            items.append(f"hilit={rng.choice(('crawl', 'web', 'robot'))}{rng.randint(1, 9)}")
        if rng.random() < 0.1:
            items.append("view=print")
        return f"/viewtopic.php{_query(rng, items, shuffled=False)}"


class CalendarShape(ShapedSite):
    """A calendar: a month without events shows its year alone, one in ten has events."""

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        if path != "/events":
            number = self._number(path.removeprefix("/event/"))
            return "missing" if number is None else f"event {number}"
        year, month = given.get("y", "2030"), given.get("m", "")
        if month and self._draw(year, month) < 0.1:
            return f"month {year} {month}"
        return f"year {year}"

    def _link(self, rng: random.Random, number: int) -> str:
        if rng.random() < 0.4:
            items = [f"day={rng.randint(1, 28)}"] if rng.random() < 0.5 else []
            return f"/event/{number}{_query(rng, items)}"
        items = [f"y={2000 + number % 100}"]
        if rng.random() < 0.9:
            items.append(f"m={rng.randint(1, 12)}")
        if rng.random() < 0.4:
            items.append(f"view={rng.choice(('grid', 'list'))}")
        return f"/events{_query(rng, items, shuffled=False)}"


class MatrixShape(ShapedSite):
    """Parameters in the path: sessions and doors say nothing, editions do."""

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        name, *rest = path.removeprefix("/book/").split(";")
        number = self._number(name)
        if number is None:
            return "missing"
        edition = next((one for one in rest if one.startswith("edition=")), "edition=1")
        return f"book {number} {edition} {given.get('chapter', '1')}"

    def _link(self, rng: random.Random, number: int) -> str:
        parts = []
        if rng.random() < 0.3:
            parts.append(f"edition={rng.randint(1, 3)}")
        if rng.random() < 0.4:
            parts.append(f"visit={_hex(rng, 12)}")
        if rng.random() < 0.2:
            parts.append(f"door={rng.choice('abc')}")
        items = [f"chapter={rng.randint(1, 4)}"] if rng.random() < 0.3 else []
        return f"/book/{';'.join([str(number), *parts])}{_query(rng, items)}"


class LanguageShape(ShapedSite):
    """Languages: English is the default; French is translated for one page in four only."""

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        *before, name = path[1:].split("/")
        number = self._number(name)
        if number is None or len(before) > 1:
            return "missing"
        language = before[0] if before else given.get("hl", "en")
        if language == "fr" and number % 4:
            language = "en"
        return f"text {number} {language}" if language in ("en", "de", "fr") else "missing"

    def _link(self, rng: random.Random, number: int) -> str:
        language = rng.choice(("en", "de", "fr"))
        kind = rng.random()
        if kind < 0.4:
            return f"/{number}"
        return f"/{language}/{number}" if kind < 0.8 else f"/{number}?hl={language}"


class DeepShape(ShapedSite):
    """One parameter means something in some folders below one section, and nothing in others."""

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        section, _, rest = path[1:].partition("/")
        folder, _, name = rest.partition("/")
        number = self._number(name)
        if section != "docs" or number is None:
            return "missing"
        counts = folder in ("api", "changes", "tools")
        return f"{folder} {number} {given.get('v', '') if counts else ''}"

    def _link(self, rng: random.Random, number: int) -> str:
        folder = rng.choice(("api", "guide", "guide", "intro", "faq", "changes", "tools", "blog"))
        items = [f"v={rng.randint(1, 30)}"] if rng.random() < 0.6 else []
        return f"/docs/{folder}/{number}{_query(rng, items)}"


class ShortIdShape(ShapedSite):
    """Short identifiers in which the case counts, beside names in which it does not.

    Half of the identifiers are taken; the others answer with one error page.
    """

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        section, _, name = path[1:].partition("/")
        if section == "v":
            return f"video {name}" if self._draw(name) < 0.5 else "missing"
        number = self._number(name.lower().removeprefix("chapter"))
        return "missing" if section.lower() != "text" or number is None else f"text {number}"

    def _link(self, rng: random.Random, number: int) -> str:
        if rng.random() < 0.4:
            return "/v/" + "".join(rng.choice("abAB") for _ in range(6))
        name = rng.choice((f"/text/chapter{number}", f"/Text/Chapter{number}"))
        return name


class CommentShape(ShapedSite):
    """A view with comments that differs for the few pages that have any."""

    share = 0.05

    def _page(self, path: str, given: Mapping[str, str]) -> str:
        number = self._number(path.removeprefix("/story/"))
        if number is None:
            return "missing"
        has_comments = self._draw(number) < self.share
        return f"story {number}" + (" comments" if "c" in given and has_comments else "")

    def _link(self, rng: random.Random, number: int) -> str:
        items = [f"c={rng.randint(1, 50)}"] if rng.random() < 0.5 else []
        if rng.random() < 0.3:
            items.append(f"from={rng.randint(1, 90)}")
        return f"/story/{number}{_query(rng, items, shuffled=False)}"


SHAPES: Final[Mapping[str, Callable[[int, int], ShapedSite]]] = {
    "wiki": WikiShape,
    "shop": ShopShape,
    "forum": ForumShape,
    "calendar": CalendarShape,
    "matrix": MatrixShape,
    "languages": LanguageShape,
    "folders": DeepShape,
    "short-ids": ShortIdShape,
    "comments": CommentShape,
}
"""Sites by the name of their shape."""
