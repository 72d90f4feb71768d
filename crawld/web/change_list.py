"""The page of changes: what visits and wikis told, newest first, with filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import apsw

from crawld.core.event import EventKind
from crawld.store.mirror import events, lookup
from crawld.store.mirror.events import ChangeEvent
from crawld.store.mirror.titles import TitleCleaner
from crawld.store.versions import search_index
from crawld.web.change_filter import ChangeFilterError, read_filter
from crawld.web.feed_format import shown_time
from crawld.web.feeds import ATOM_PATH, CHANGES_PATH, JSON_PATH, difference_path, size_of_change
from crawld.web.pages import error_page, render_page
from crawld.web.reply import Reply

CHANGES_PER_LIST: Final = 100

SITES_OFFERED: Final = 200
"""Sites that a list offers; of more a name is typed."""

KINDS: Final = (
    ("", "All changes"),
    ("changed,moved,gone,back", "All but new pages"),
    *((kind.value, f"Only {kind.value}") for kind in EventKind),
)

SIZES: Final = (
    ("", "Any size"),
    ("1", "1 % or more"),
    ("5", "5 % or more"),
    ("25", "25 % or more"),
)


def change_rows(
    connection: apsw.Connection, changes: Sequence[ChangeEvent]
) -> list[tuple[ChangeEvent, str | None, str]]:
    """Return changes as a list shows them: without the name of the site, difference, size."""
    cleaner = TitleCleaner(connection)
    return [
        (
            each._replace(at=shown_time(each.at), title=cleaner.clean_of(each.page_id, each.title)),
            difference_path(each),
            size_of_change(each),
        )
        for each in changes
    ]


def changes_page(connection: apsw.Connection, parameters: Mapping[str, str], now: float) -> Reply:
    """Return the changes that a filter selects."""
    try:
        asked = read_filter(parameters)
    except ChangeFilterError as error:
        return error_page(400, "No such changes", str(error))
    wanted = asked.wanted
    found = events.list_newest(connection, wanted, asked.before, CHANGES_PER_LIST)
    sites = lookup.site_names(connection, limit=SITES_OFFERED + 1)
    shown = dict.fromkeys(("site", "url", "kind", "size", "q"), "") | dict(asked.parameters)
    options: tuple[tuple[str, str], ...] = KINDS
    if shown["kind"] not in dict(KINDS):
        options = (*KINDS, (shown["kind"], shown["kind"].replace(",", ", ")))
    sizes: tuple[tuple[str, str], ...] = SIZES
    if shown["size"] not in dict(SIZES):
        sizes = (*SIZES, (shown["size"], f"{shown['size']} % or more"))
    return render_page(
        "changes.html",
        rows=change_rows(connection, found.events),
        shown=shown,
        kinds=options,
        sizes=sizes,
        sites=sites if len(sites) <= SITES_OFFERED else [],
        is_filtered=bool(asked.parameters),
        is_continued=asked.before is not None,
        first_path=CHANGES_PATH + asked.query(),
        next_path=None if found.ended else CHANGES_PATH + asked.query(found.last_id),
        atom_path=ATOM_PATH + asked.query(),
        json_path=JSON_PATH + asked.query(),
        waiting=search_index.count_pending(connection) if wanted.query else 0,
        now=now,
    )
