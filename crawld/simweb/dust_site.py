"""A site that shows each page under many URLs, by twelve causes, and knows which are the same.

Causes: session ids in the query and in the path, the order of parameters, junk parameters, index
pages, the slash at the end, case, print views, `?page=1`, tracking, fragments in paths, sort
orders, doubled slashes. Names of parameters and sections are drawn by the seed.

What misleads: the same parameters that are irrelevant in one section decide in another; a case and
a slash that count; pages of lists; an error page and a login page that answer for every URL.

Links depend on the page alone, not on the URL under which it is shown, so that the site is finite.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from html import escape
from typing import Final

from crawld.simweb.page_text import make_sentence
from crawld.simweb.stateless_random import draw

LINKS: Final = 14
"""Links of a page."""

DECORATED: Final = 0.8
"""Share of links that name a page by another URL than its own."""

_SENTENCES: Final = 6


@dataclass(frozen=True, slots=True)
class SiteNames:
    """Names of parameters and segments, drawn by the seed of a site."""

    session: str
    junk: str
    tracking: str
    order: str
    printed: str
    index: str
    article: str
    tags: str


def _names(seed: int) -> SiteNames:
    rng = random.Random(seed)
    return SiteNames(
        session=rng.choice(("zid", "skey", "visit", "osc")),
        junk=rng.choice(("ref", "from", "rnd", "src")),
        tracking=rng.choice(("utm_source", "campaign", "mc_cid")),
        order=rng.choice(("sort", "orderby", "o")),
        printed=rng.choice(("print", "printable", "druck")),
        index=rng.choice(("index.html", "index.php", "default.htm")),
        article=rng.choice(("article", "story", "thread")),
        tags=rng.choice(("tags", "topics")),
    )


class DustSite:
    """The site; targets are paths with queries."""

    def __init__(self, seed: int, pages: int = 2_000) -> None:
        """Make a site.

        Args:
            seed: of names, texts and links.
            pages: different pages, about.
        """
        self._seed = seed
        self.names = _names(seed)
        self._pages = pages
        self._articles = int(pages * 0.55)
        self._views = int(pages * 0.15)
        self._docs = int(pages * 0.15)
        self._tags = int(pages * 0.08)
        self._lists = int(pages * 0.01)
        self._files = int(pages * 0.03)

    # --- truth -----------------------------------------------------------------------------------

    def page_of(self, target: str) -> str:
        """Return the name of the page that a target shows; one name is one text."""
        path, _, query = target.partition("?")
        items = [item.partition("=") for item in query.split("&") if item]
        given = {name: value for name, _, value in items}
        segments = [one for one in path.split("/") if one]
        if segments and segments[0].startswith("(S("):
            segments = segments[1:]
        if not segments:
            return "home"
        if segments[0] == "files":
            return self._file(path, segments[1:])
        section = segments[0].lower()
        if section == "members":
            return "wall"
        if section == "view.php":
            known = self._is_number(given.get("id", ""), self._views)
            return f"view {given['id']} {given.get('tab', 'a')}" if known else "missing"
        rest = [one.partition("%23")[0].lower() for one in segments[1:]]
        if section == "docs":
            return self._document(rest, given)
        return self._numbered(section, rest[0], given) if len(rest) == 1 else "missing"

    def _numbered(self, section: str, number: str, given: dict[str, str]) -> str:
        names = self.names
        if section in (names.article, names.printed):
            return self._article(number, given)
        if section == names.tags and self._is_number(number, self._tags):
            return f"tag {number}"
        if section == "list" and self._is_number(number, self._lists):
            page, order = given.get("page", "1"), given.get(names.order, "name")
            return f"list {number} {page} {order}" if page in "1234" else "missing"
        return "missing"

    def _document(self, rest: list[str], given: dict[str, str]) -> str:
        known = bool(rest) and self._is_number(rest[0][1:], self._docs)
        if not known or rest[1:] not in ([], [self.names.index]):
            return "missing"
        return f"doc {rest[0]} {given.get('lang', 'en')} {given.get(self.names.junk, '')}"

    def _article(self, number: str, given: dict[str, str]) -> str:
        if not self._is_number(number, self._articles):
            return "missing"
        page = given.get("page", "1")
        return f"article {number}" + ("" if page == "1" else f" {page}")

    def _file(self, path: str, rest: list[str]) -> str:
        if len(rest) != 1 or not self._is_number(rest[0][1:], self._files):
            return "missing"
        return f"file {rest[0]}" + (" folder" if path.endswith("/") else "")

    @staticmethod
    def _is_number(text: str, below: int) -> bool:
        return text.isdigit() and len(text) < 9 and int(text) < below

    # --- content ---------------------------------------------------------------------------------

    def links(self, target: str) -> list[str]:
        """Return the targets that a page links to."""
        page = self.page_of(target)
        if page in ("missing", "wall"):
            return []
        rng = random.Random(f"{self._seed} {page}")
        return [self._link(rng) for _ in range(LINKS)]

    def html(self, target: str) -> str:
        """Return the document that a target shows; a print view has no menu."""
        page = self.page_of(target)
        key = draw(self._seed, *page.encode())
        heading = f"<h1>{escape(page)}</h1>"
        blocks = [f"<p>{make_sentence(key, at)}</p>" for at in range(_SENTENCES)]
        if page.startswith("tag"):
            random.Random(target).shuffle(blocks)
        title = escape(page)
        if f"/{self.names.printed}/" in target.lower():
            body = f"<p>Print view of this page</p>{heading}{''.join(blocks)}"
            return f"<html><head><title>{title}, print</title></head><body>{body}</body></html>"
        menu = f"<nav><p>{make_sentence(self._seed, 1)}</p></nav>"
        links = "".join(
            f'<li><a href="{escape(link)}">next</a></li>' for link in self.links(target)
        )
        body = f"{menu}{heading}{''.join(blocks)}<ul>{links}</ul>"
        return f"<html><head><title>{title}</title></head><body>{body}</body></html>"

    # --- links -----------------------------------------------------------------------------------

    def _link(self, rng: random.Random) -> str:
        names, kind = self.names, rng.random()
        if kind < 0.60:
            number = int(self._articles * rng.random() ** 1.2)
            if rng.random() < 0.06:
                return f"/{names.article}/{number}?page={rng.randint(2, 4)}"
            return self._decorated(rng, f"/{names.article}/{number}", "")
        if kind < 0.74:
            number = rng.randrange(self._views)
            return self._view(rng, number)
        if kind < 0.86:
            return self._doc(rng, rng.randrange(self._docs))
        if kind < 0.94:
            number = rng.randrange(self._tags)
            order = f"{names.order}={rng.choice(('name', 'date', 'size'))}"
            query = order if rng.random() < DECORATED / 2 else ""
            return self._decorated(rng, f"/{names.tags}/{number}", query)
        if kind < 0.96:
            order = rng.choice(("name", "date"))
            query = f"?page={rng.randint(1, 4)}&{names.order}={order}"
            return f"/list/{rng.randrange(self._lists)}{query}"
        if kind < 0.98:
            name = rng.choice("aAbB") + str(rng.randrange(self._files))
            return f"/files/{name}" + ("/" if rng.random() < 0.3 else "")
        section = "members" if rng.random() < 0.5 else "nowhere"
        query = f"?{names.session}={rng.getrandbits(48):012x}" if rng.random() < 0.5 else ""
        return f"/{section}/{rng.randrange(60)}{query}"

    def _view(self, rng: random.Random, number: int) -> str:
        items = [f"id={number}", f"tab={rng.choice('abc')}"]
        if rng.random() < 0.3:
            items.append(self._noise(rng))
        if rng.random() < 0.4:
            rng.shuffle(items)
        return f"/view.php?{'&'.join(items)}"

    def _doc(self, rng: random.Random, number: int) -> str:
        form = rng.random()
        language = f"?lang={rng.choice(('de', 'fr'))}" if rng.random() < 0.1 else ""
        if rng.random() < 0.05:
            language = f"?{self.names.junk}={rng.randrange(12)}"
        name = self.names.index if form < 0.3 else ""
        return f"/docs/d{number}/{name}{language}"

    def _noise(self, rng: random.Random) -> str:
        names = self.names
        return rng.choice(
            (
                f"{names.session}={rng.getrandbits(48):012x}",
                f"{names.junk}={rng.randrange(10_000)}",
                f"{names.tracking}={rng.choice(('mail', 'feed', 'social'))}",
            )
        )

    def _decorated(self, rng: random.Random, path: str, query: str) -> str:
        """Return another URL of a page, by one cause or two."""
        if rng.random() >= DECORATED:
            return f"{path}?{query}" if query else path
        for _ in range(1 if rng.random() < 0.9 else 2):
            path, query = self._one_cause(rng, path, query)
        return f"{path}?{query}" if query else path

    def _one_cause(self, rng: random.Random, path: str, query: str) -> tuple[str, str]:
        names, cause = self.names, rng.randrange(9)
        if cause < 3:
            noise = self._noise(rng)
            return path, f"{query}&{noise}" if query else noise
        if cause == 3 and not path.startswith("/(S("):
            return f"/(S({rng.getrandbits(96):024x})){path}", query
        if cause == 4:
            return path.replace("/", "//", 1), query
        if cause == 5 and "%23" not in path:
            return path.title().replace("(s(", "(S("), query
        if cause == 6 and "%23" not in path:
            return path.rstrip("/") + "/", query
        if cause == 7 and not path.endswith("/"):
            return f"{path}%23{rng.choice(('top', 'comments', 's2'))}", query
        article = f"/{names.article}/"
        if article in path:
            if rng.random() < 0.5:
                return path.replace(article, f"/{names.printed}/"), query
            return path, f"{query}&page=1" if query else "page=1"
        return path, query
