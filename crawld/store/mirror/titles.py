"""Pages of the mirror in the order of their titles: lists of sites, suggestions, a random page.

Every read here is bounded by what it returns, whatever the size of the mirror: it seeks in the
index `page_title` or in one that is named. Pages without a title are listed by their URL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.titles import common_end, without_end
from crawld.store.frontier.removal import IS_WITHHELD

KEY_CHARACTERS: Final = 80
"""Characters of a title that the index holds."""

SAMPLED_TITLES: Final = 24
"""Titles of a host that are read to find the name of its site in them."""

MAX_SUGGESTED_SITES: Final = 1_000
"""Sites that are searched for a suggestion."""

SPARE_SUGGESTIONS: Final = 24
"""Further titles of a site that are examined, since some pages may be withheld."""

MAX_EXAMINED: Final = 5_000
"""Shared pages examined for one list, if most of them do not match."""

MAX_LETTERS: Final = 60
"""First characters of titles that are listed."""

_KEY: Final = f"substr(ifnull(nullif(title, ''), url), 1, {KEY_CHARACTERS}) COLLATE NOCASE"
_TITLE: Final = "substr(ifnull(nullif(title, ''), url), 1, 400)"
_HAS_COPY: Final = "version_id IS NOT NULL AND requisite = 0"
_COLUMNS: Final = f"page_id, host_id, url, {_TITLE}, state, last_visit_at, {_KEY}"
_LAST: Final = "\U0010ffff"


class TitledPage(NamedTuple):
    """A page in a list.

    Attributes:
        title: without the name of its site; the URL if the page has no title.
        key: what it is sorted by.
        shared: whether it is kept under another site.
    """

    page_id: int
    host_id: int
    url: str
    title: str
    gone: bool
    last_visit_at: float | None
    key: str
    shared: bool = False


class TitlePosition(NamedTuple):
    """The page after which a list continues; `shared`: in the pages of other sites."""

    key: str = ""
    page_id: int = 0
    shared: bool = False


START: Final = TitlePosition()


def list_titles(
    connection: apsw.Connection,
    site_id: int,
    *,
    begins: str = "",
    after: TitlePosition = START,
    limit: int = 100,
) -> tuple[list[TitledPage], TitlePosition | None]:
    """Return pages of a site by title, then those that it shares with other sites by page_id.

    Args:
        begins: only titles that begin so; letters of ASCII match in both cases.
        after: where to continue.

    Returns:
        The pages, and where the list continues; None: it ends here.
    """
    found: list[TitledPage] = []
    position = after
    if not after.shared:
        found = [_page(row) for row in _own(connection, site_id, begins, after, limit)]
        if len(found) == limit:
            return _clean(connection, found), TitlePosition(found[-1].key, found[-1].page_id)
        position = TitlePosition(shared=True)
    more, following = _shared(connection, site_id, begins, position.page_id, limit - len(found))
    return _clean(connection, found + more), following


def _own(
    connection: apsw.Connection, site_id: int, begins: str, after: TitlePosition, limit: int
) -> list[tuple[Any, ...]]:
    select = f"SELECT {_COLUMNS} FROM page INDEXED BY page_title WHERE site_id = ?1 AND {_HAS_COPY}"
    rows: list[tuple[Any, ...]] = []
    # Many pages may have one title, so that the two halves of the comparison are two seeks.
    if after.page_id:
        rows = connection.execute(
            f"{select} AND {_KEY} = ?2 AND page_id > ?3 ORDER BY page_id LIMIT ?4",
            (site_id, after.key, after.page_id, limit),
        ).fetchall()
    above, key = (f"{_KEY} > ?2", after.key) if after.page_id else (f"{_KEY} >= ?2", begins)
    rows += connection.execute(
        f"{select} AND {above} AND {_KEY} <= ?3 ORDER BY {_KEY}, page_id LIMIT ?4",
        (site_id, key, begins + _LAST, limit - len(rows)),
    ).fetchall()
    return rows


def _shared(
    connection: apsw.Connection, site_id: int, begins: str, after: int, limit: int
) -> tuple[list[TitledPage], TitlePosition | None]:
    found: list[TitledPage] = []
    rows = connection.execute(
        f"SELECT {_COLUMNS}, {_HAS_COPY} AND {_KEY} BETWEEN ?2 AND ?3"
        " FROM page_share CROSS JOIN page USING (page_id)"
        " WHERE page_share.site_id = ?1 AND page_share.page_id > ?4"
        " ORDER BY page_share.page_id LIMIT ?5",
        (site_id, begins, begins + _LAST, after, MAX_EXAMINED),
    )
    examined, last = 0, after
    for *row, matches in rows:
        if len(found) == limit:
            return found, TitlePosition(page_id=last, shared=True)
        examined, last = examined + 1, row[0]
        if matches:
            found.append(_page(row)._replace(shared=True))
    return found, TitlePosition(page_id=last, shared=True) if examined == MAX_EXAMINED else None


def first_letters(connection: apsw.Connection, site_id: int) -> list[str]:
    """Return the characters with which titles of a site begin, in order, the first of them."""
    letters: list[str] = []
    key = ""
    while len(letters) < MAX_LETTERS:
        found = connection.execute(
            f"SELECT {_KEY} FROM page INDEXED BY page_title WHERE site_id = ? AND {_HAS_COPY}"
            f" AND {_KEY} >= ? ORDER BY {_KEY} LIMIT 1",
            (site_id, key),
        ).get
        if not found:
            break
        letters.append(found[0].upper() if found[0].isascii() else found[0])
        key = found[0] + _LAST
    return letters


def count_titles(connection: apsw.Connection, site_id: int, begins: str, *, at_most: int) -> int:
    """Return how many pages of a site, without shared ones, have a title that begins so."""
    count: int = connection.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM page INDEXED BY page_title WHERE site_id = ?1"
        f" AND {_HAS_COPY} AND {_KEY} BETWEEN ?2 AND ?3 LIMIT ?4)",
        (site_id, begins, begins + _LAST, at_most),
    ).get
    return count


def suggest(connection: apsw.Connection, typed: str, *, limit: int = 8) -> list[TitledPage]:
    """Return pages whose titles begin with what a reader typed, by title.

    Letters of ASCII match in both cases; others do where the title begins with a capital.
    """
    typed = " ".join(typed.split())[:KEY_CHARACTERS]
    if not typed:
        return []
    variants = (typed, typed[0].upper() + typed[1:], typed.title())
    found: dict[int, str] = {}
    for begins in {_folded(each): each for each in variants}.values():
        for (site_id,) in connection.execute(
            "SELECT site_id FROM site WHERE page_count > 0 ORDER BY site_id LIMIT ?",
            (MAX_SUGGESTED_SITES,),
        ):
            found |= connection.execute(
                f"SELECT page_id, {_KEY} FROM page INDEXED BY page_title"
                f" WHERE site_id = ? AND {_HAS_COPY} AND {_KEY} BETWEEN ? AND ?"
                f" ORDER BY {_KEY}, page_id LIMIT ?",
                (site_id, begins, begins + _LAST, SPARE_SUGGESTIONS + limit),
            )
    pages: list[TitledPage] = []
    for page_id in sorted(found, key=lambda page_id: (_folded(found[page_id]), page_id)):
        *row, withheld = connection.execute(
            f"SELECT {_COLUMNS}, {IS_WITHHELD} FROM page WHERE page_id = ?", (page_id,)
        ).get
        if not withheld:
            pages.append(_page(row))
        if len(pages) == limit:
            break
    return _clean(connection, pages)


def _folded(text: str) -> str:
    """Return a text as the index compares it."""
    return text.translate(_FOLD)


_FOLD: Final = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def title_end(connection: apsw.Connection, host_id: int) -> str:
    """Return the end that most titles of a host share, the name of its site; empty: none."""
    rows = connection.execute(
        "SELECT substr(title, -400) FROM page INDEXED BY page_revisit WHERE host_id = ?"
        " AND state IN ('visited', 'gone') AND retry_at IS NULL AND title IS NOT NULL"
        " LIMIT ?",
        (host_id, SAMPLED_TITLES),
    )
    return common_end([title for (title,) in rows])


class TitleCleaner:
    """Removes the name of a site from titles; reads each host's titles once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._ends: dict[int, str] = {}

    def clean(self, host_id: int, title: str) -> str:
        """Return a title of a page of a host without the name of its site."""
        if host_id not in self._ends:
            self._ends[host_id] = title_end(self._connection, host_id)
        return without_end(title, self._ends[host_id])

    def clean_of(self, page_id: int, title: str | None) -> str | None:
        """Return the same for a page, None if it has no title."""
        host_id = self._connection.execute(
            "SELECT host_id FROM page WHERE page_id = ?", (page_id,)
        ).get
        return title if title is None or host_id is None else self.clean(host_id, title)


def random_page(connection: apsw.Connection, draw: Iterator[float]) -> str | None:
    """Return the URL of a page with a copy, any of them; None: there is none.

    Args:
        draw: numbers in [0, 1).
    """
    sites: list[tuple[Any, ...]] = connection.execute(
        "SELECT site_id, pages_visited FROM site WHERE pages_visited > 0"
    ).fetchall()
    while sites:
        place = next(draw) * sum(n for _, n in sites)
        chosen = len(sites) - 1
        for k, (_, n) in enumerate(sites):
            place -= n
            if place < 0:
                chosen = k
                break
        site_id, _ = sites.pop(chosen)
        if (url := _random_of_site(connection, site_id, draw)) is not None:
            return url
    return None


_HELD: Final = (
    "FROM page INDEXED BY page_held WHERE state = 'visited' AND version_id IS NOT NULL"
    " AND requisite = 0 AND site_id = ?1"
)
_MAX_HOSTS: Final = 200
_MAX_WITHHELD: Final = 200


def _random_of_site(connection: apsw.Connection, site_id: int, draw: Iterator[float]) -> str | None:
    hosts: list[int] = []
    while len(hosts) < _MAX_HOSTS:
        following: int | None = connection.execute(
            f"SELECT min(host_id) {_HELD} AND host_id > ?2", (site_id, hosts[-1] if hosts else -1)
        ).get
        if following is None:
            break
        hosts.append(following)
    if not hosts:
        return None
    host_id = hosts[int(next(draw) * len(hosts))]
    of_host = f"{_HELD} AND host_id = ?2"
    low: int = connection.execute(f"SELECT min(page_id) {of_host}", (site_id, host_id)).get
    high: int = connection.execute(f"SELECT max(page_id) {of_host}", (site_id, host_id)).get
    from_id = low + int(next(draw) * (high - low + 1))
    for order in (f"page_id >= {from_id} ORDER BY page_id", f"page_id < {from_id}"):
        rows = connection.execute(
            f"SELECT url, {IS_WITHHELD} {of_host} AND {order} LIMIT {_MAX_WITHHELD}",
            (site_id, host_id),
        )
        for url, withheld in rows:
            if not withheld:
                return str(url)
    return None


def _page(row: Any) -> TitledPage:  # noqa: ANN401 (a row of SQLite)
    page_id, host_id, url, title, state, last_visit_at, key = row
    return TitledPage(page_id, host_id, url, title, state == PageState.GONE, last_visit_at, key)


def _clean(connection: apsw.Connection, pages: list[TitledPage]) -> list[TitledPage]:
    cleaner = TitleCleaner(connection)
    return [page._replace(title=cleaner.clean(page.host_id, page.title)) for page in pages]
