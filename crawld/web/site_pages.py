"""The front page, the lists of pages of sites, suggestions while typing, and a random page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final
from urllib.parse import urlencode

import apsw

from crawld.core.display import count_text
from crawld.core.event import EventKind
from crawld.core.url import split_url
from crawld.store.mirror import events, lookup, titles
from crawld.store.mirror.events import ChangeEvent, EventFilter
from crawld.store.mirror.titles import TitlePosition
from crawld.web import security
from crawld.web.address import mirror_path, readable_url
from crawld.web.change_list import change_rows
from crawld.web.look import shown_look
from crawld.web.mirror import redirect
from crawld.web.pages import brief, error_page, render_page
from crawld.web.reply import Reply, header, headers, number

SITES_PER_LIST: Final = 100
PAGES_PER_LIST: Final = 200
MAX_COUNTED: Final = 10_000
"""Titles of a filter that are counted; more are "more than"."""

CHANGES_SHOWN: Final = 8

NAMES_SHOWN: Final = 3
"""Sites that a mirror without a title is named after."""


def front_page(connection: apsw.Connection, parameters: Mapping[str, str], now: float) -> Reply:
    """Return the front page: name and size of the mirror, its sites."""
    after = number(parameters.get("after"))
    sites = lookup.summaries(connection, now, after=after, limit=SITES_PER_LIST + 1)
    visits = [site.last_visit_at for site in sites if site.last_visit_at is not None]
    size = lookup.mirror_size(connection)
    return render_page(
        "index.html",
        title=shown_look().title or _derived_title(connection, size.sites),
        size=size,
        sites=sites[:SITES_PER_LIST],
        after=after,
        following=sites[SITES_PER_LIST - 1].site_id if len(sites) > SITES_PER_LIST else None,
        last_visit_at=max(visits, default=None),
        changes=change_rows(connection, _recent_changes(connection)),
        now=now,
    )


def _recent_changes(connection: apsw.Connection) -> Sequence[ChangeEvent]:
    """Return the newest changes of pages; while there are none, the newest pages."""
    wanted = EventFilter(kinds=frozenset(EventKind) - {EventKind.NEW})
    found = events.list_newest(connection, wanted, None, CHANGES_SHOWN).events
    return found or events.list_newest(connection, limit=CHANGES_SHOWN).events


def _derived_title(connection: apsw.Connection, sites: int) -> str:
    names = lookup.site_names(connection, limit=NAMES_SHOWN)
    if not names:
        return "An empty mirror"
    further = f" and {count_text(sites - len(names))} more" if sites > len(names) else ""
    return f"Mirror of {', '.join(names)}{further}"


def site_page(
    connection: apsw.Connection, name: str, parameters: Mapping[str, str], now: float
) -> Reply:
    """Return the pages of a site by title, perhaps only those that begin with some characters."""
    site = lookup.summary(connection, name, now)
    if site is None:
        return error_page(404, "No such site", "The front page lists the mirrored sites.")
    begins = " ".join(parameters.get("begins", "").split())[: titles.KEY_CHARACTERS]
    after = _position(parameters)
    pages, following = titles.list_titles(
        connection, site.site_id, begins=begins, after=after, limit=PAGES_PER_LIST
    )
    counted = None
    if begins and after == titles.START:
        counted = titles.count_titles(connection, site.site_id, begins, at_most=MAX_COUNTED + 1)
    return render_page(
        "site.html",
        site=site,
        pages=pages,
        begins=begins,
        counted=counted,
        max_counted=MAX_COUNTED,
        letters=titles.first_letters(connection, site.site_id),
        continued=after != titles.START,
        next_query=None if following is None else _query(begins, following),
        now=now,
    )


def _position(parameters: Mapping[str, str]) -> TitlePosition:
    page_id = number(parameters.get("id"))
    shared = "shared" in parameters
    key = parameters.get("after", "") if page_id and not shared else ""
    return TitlePosition(key, page_id, shared)


def _query(begins: str, position: TitlePosition) -> str:
    values: dict[str, str | int] = {"begins": begins} if begins else {}
    values |= {"shared": 1} if position.shared else {"after": position.key}
    return "?" + urlencode(values | {"id": position.page_id}, errors="replace")


def suggestions(connection: apsw.Connection, parameters: Mapping[str, str]) -> Reply:
    """Return pages whose titles begin with what is typed, as JSON for the script of the pages."""
    found = [
        {
            "title": brief(readable_url(page.title)),
            "place": split_url(page.url).host,
            "path": mirror_path(page.url),
        }
        for page in titles.suggest(connection, parameters.get("q", ""))
    ]
    lines = headers(("content-type", "application/json"), ("cache-control", "no-store"))
    body = json.dumps(found, ensure_ascii=True).encode()
    return Reply(200, body, [*lines, *security.OWN_DATA])


def random_page(connection: apsw.Connection, now: float) -> Reply:
    """Redirect to any page of the mirror."""
    url = titles.random_page(connection, _drawn(now))
    if url is None:
        return error_page(404, "No page yet", "The mirror has no copy of any page yet.")
    reply = redirect(mirror_path(url))
    reply.headers.append(header("cache-control", "no-store"))
    return reply


def _drawn(seed: float) -> Iterator[float]:
    numbers = Random(seed)
    while True:
        yield numbers.random()
