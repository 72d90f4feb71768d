"""Other names of pages: URLs under which a page is known, but not stored.

A page has one URL. When the rules for canonical URLs change, it may get another, and two pages may
become one: then the former URL is kept here, so that the mirror, `why` and commands still answer
under it. On a site whose parameters have no order, every order names the same page.
"""

from __future__ import annotations

from typing import Final

import apsw

from crawld.core.url import split_url, url_hash
from crawld.core.url_parameters import with_sorted_query

_CURRENT: Final = """
SELECT page.url FROM page_name CROSS JOIN page USING (page_id)
WHERE page_name.host_id = (SELECT host_id FROM host WHERE host = ?)
AND page_name.url_hash = ? AND page_name.url = ?
"""

_IN_ORDER: Final = """
SELECT 1 FROM page CROSS JOIN site USING (site_id)
WHERE host_id = (SELECT host_id FROM host WHERE host = ?) AND url_hash = ? AND url = ?
AND json_extract(definition, '$.sort_query')
"""


def current_url(connection: apsw.Connection, url: str) -> str | None:
    """Return the URL of the page that has a canonical URL as another name; None: no page has."""
    host = split_url(url).host
    current: str | None = connection.execute(_CURRENT, (host, url_hash(url), url)).get
    if current is not None:
        return current
    in_order = with_sorted_query(url)
    if in_order == url:
        return None
    known = connection.execute(_IN_ORDER, (host, url_hash(in_order), in_order)).get
    return None if known is None else in_order


def put(connection: apsw.Connection, host_id: int, url: str, page_id: int) -> None:
    """Store a former URL of a page."""
    connection.execute(
        "INSERT INTO page_name (host_id, url_hash, url, page_id) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET page_id = excluded.page_id",
        (host_id, url_hash(url), url, page_id),
    )


def remove(connection: apsw.Connection, host_id: int, url: str) -> None:
    """Forget a name, because a page has it as its URL."""
    connection.execute(
        "DELETE FROM page_name WHERE host_id = ? AND url_hash = ? AND url = ?",
        (host_id, url_hash(url), url),
    )
