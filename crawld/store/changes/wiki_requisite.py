"""Requisites of a wiki that an upload or an edit of its styles makes stale.

A requisite is an image, style or script. Hints name titles, so requisites are found by their URLs:
an image by the name of its file, styles and scripts by the wiki's loader.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import apsw

from crawld.core.url import split_url

LOADER: Final = "load.php"
"""The script that serves styles and scripts of a MediaWiki."""

_REQUISITES: Final = """
SELECT page_id, host_id, site_id, url FROM page
WHERE retry_at IS NOT NULL AND retry_at > ? AND requisite = 1
AND site_id IN (SELECT value FROM json_each(?))
"""


class StaleRequisite(NamedTuple):
    """A requisite to fetch again, with its host and site."""

    page_id: int
    host_id: int
    site_id: int


def find_stale(
    connection: apsw.Connection,
    site_ids: Sequence[int],
    now: float,
    *,
    files: Collection[str],
    styles: bool,
) -> list[StaleRequisite]:
    """Return the requisites of sites that show a file, or come from the loader.

    Those that are due anyway are left out. It reads the URLs of all requisites of the sites.

    Args:
        files: names of files with underscores: `Flag_of_Chad.svg`; in a URL the name is the last
            part of the path, or the one before it for a thumbnail.
        styles: whether styles or scripts changed.
    """
    found = []
    wanted = (now, json.dumps(site_ids))
    for page_id, host_id, site_id, url in connection.execute(_REQUISITES, wanted):
        path = split_url(url).target.partition("?")[0]
        parts = path.rsplit("/", 2)[1:]
        if any(unquote(part) in files for part in parts) or (styles and parts[-1] == LOADER):
            found.append(StaleRequisite(page_id, host_id, site_id))
    return found


def make_due(connection: apsw.Connection, stale: Collection[StaleRequisite], at: float) -> None:
    """Make requisites due, so that a restart does not forget them."""
    connection.execute(
        "UPDATE page SET retry_at = ? WHERE requisite = 1 AND retry_at IS NOT NULL"
        " AND page_id IN (SELECT value FROM json_each(?))",
        (at, json.dumps([each.page_id for each in stale])),
    )
