"""Write a mirror of many articles into a database, by the store's own functions.

Every page is different: there are a few dozen articles; each page adds its number, and its links
point to pages of the mirror. One link in three is kept: 70 in 28 KB, as many as in documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import apsw
import trio

from crawld.bench.stored_visit import page_response
from crawld.core.page import Outcome, PageState
from crawld.simweb.article import make_article
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions.body import encode
from crawld.store.visit import VisitRecord

_ARTICLES = 40
_BATCH = 2000
_LINK = re.compile(r'href="/wiki/[^"]*"')
_ARTICLE_BYTES = 24_000
_NOTE = (
    "<!DOCTYPE html><title>Note</title><meta charset=utf-8><p>"
    + '<a href="/wiki/A">one</a> and <a href="/wiki/B">another</a>, ' * 6
    + "some words more to make a note of a kilobyte or so, as small pages are. " * 8
)
EPOCH_AT = 1.78e9


@dataclass(frozen=True)
class ArticleMirror:
    """Content of the mirror.

    Attributes:
        pages: number of pages, all visited once.
        page_bytes: approximate page size; below 24,000 all pages are notes of about a kilobyte.
        origin: scheme, host and port of all pages.
    """

    pages: int
    page_bytes: int
    origin: str = "http://mirror.example"

    def url(self, number: int) -> str:
        """Return the URL of a page; page 0 is the front page."""
        return f"{self.origin}{self.path(number)}"

    def path(self, number: int) -> str:
        """Return the path of a page."""
        return f"/wiki/Page_{number}" if number else "/"

    def body(self, number: int, edition: int = 0) -> bytes:
        """Return the HTML of a page after `edition` changes."""
        before, *parts = self._articles[number % _ARTICLES]
        text = [before]
        for position, part in enumerate(parts):
            target = (number * 7 + position * 31) % self.pages
            text.append('class="no-link"' if position % 3 else f'href="{self.path(target)}"')
            text.append(part)
        head, sign, rest = "".join(text).partition("<p>")
        return f"{head}<p>Page {number}, edition {edition}. {rest if sign else ''}".encode()

    @cached_property
    def _articles(self) -> list[list[str]]:
        if self.page_bytes < _ARTICLE_BYTES:
            return [_LINK.split(_NOTE)] * _ARTICLES
        texts = (make_article(seed, self.page_bytes).decode() for seed in range(_ARTICLES))
        return [_LINK.split(text) for text in texts]


def write_mirror(path: Path, mirror: ArticleMirror) -> None:
    """Write the mirror into a new database."""
    trio.run(_fill, path, mirror)


def store_changes(path: Path, mirror: ArticleMirror, numbers: Iterable[int]) -> None:
    """Store a second edition of some pages."""
    trio.run(_change, path, mirror, list(numbers))


async def _fill(path: Path, mirror: ArticleMirror) -> None:
    async with await Database.open(path) as database:
        site_id = await database.write(site.upsert, "mirror", "{}", source="config", at=EPOCH_AT)
        for start in range(0, mirror.pages, _BATCH):
            numbers = range(start, min(start + _BATCH, mirror.pages))
            await database.write(_discover, mirror, site_id, numbers)
            await database.write(_visit, mirror, numbers, 0)


async def _change(path: Path, mirror: ArticleMirror, numbers: list[int]) -> None:
    async with await Database.open(path) as database:
        await database.write(_visit, mirror, numbers, 1)


def _discover(
    connection: apsw.Connection, mirror: ArticleMirror, site_id: int, numbers: Iterable[int]
) -> None:
    found = [
        Discovery.of(mirror.url(number), site_id=site_id, at=EPOCH_AT, seed=number == 0)
        for number in numbers
    ]
    frontier.discover(connection, found)


def _visit(
    connection: apsw.Connection, mirror: ArticleMirror, numbers: Iterable[int], edition: int
) -> None:
    """Store a visit of each page; page ids follow the page numbers."""
    for number in numbers:
        body = mirror.body(number, edition)
        headers = [(b"Content-Type", b"text/html; charset=utf-8"), (b"ETag", b'"%d"' % edition)]
        visit.record(
            connection,
            VisitRecord(
                page_id=number + 1,
                visited_at=EPOCH_AT + 86_400 * edition + number,
                outcome=Outcome.CHANGED,
                state=PageState.VISITED,
                response=page_response(headers),
                address="192.0.2.1",
                duration_s=0.05,
                wire_bytes=len(body),
                body_bytes=len(body),
                digest=blake2b(body, digest_size=16).digest(),
                body=encode(body),
                title=f"Page {number}",
            ),
        )
