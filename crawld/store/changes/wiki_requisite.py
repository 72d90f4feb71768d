"""Requisites of a wiki that an upload or an edit of its styles makes stale.

A requisite is an image, style or script. Hints name titles, so requisites are found by their URLs:
an image by the name of its file, styles and scripts by the modules of the wiki's loader.

Pages of a wiki are the source of few modules; the others come with its software.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import apsw

from crawld.core.url import split_url

LOADER: Final = "load.php"
"""The script that serves styles and scripts of a MediaWiki."""

_MODULES_OF_PAGES: Final = ("site", "user", "noscript", "ext.gadget", "startup")
"""Beginnings of the names of modules that an edit of a page changes; `startup` has the versions of
all modules. Source: MediaWiki, ResourceLoader/Default modules."""

_REQUISITES: Final = """
SELECT page_id, host_id, site_id, url FROM page
WHERE requisite = 1 AND site_id IN (SELECT value FROM json_each(?))
"""


UNHURRIED_S: Final = 3_600.0
"""What no reader misses soon is due since so long ago: a start takes it for a usual refetch."""

_WIDTH: Final = "px-"
_MAX_WIDTH_DIGITS: Final = 5


class StaleRequisite(NamedTuple):
    """A requisite to fetch again, with its host and site.

    Attributes:
        is_dense: whether only dense screens show it: a page shows another one in its place.
    """

    page_id: int
    host_id: int
    site_id: int
    is_dense: bool = False


def find_stale(
    connection: apsw.Connection,
    site_ids: Sequence[int],
    *,
    files: Collection[str],
    styles: bool,
) -> list[StaleRequisite]:
    """Return the requisites of sites that show a file, or have styles of pages.

    Those whose visit is under way are among them: it may have come too early. It reads the URLs of
    all requisites of the sites.

    Args:
        files: names of files with underscores: `Flag_of_Chad.svg`; in a URL the name is the last
            part of the path, or the one before it for a thumbnail.
        styles: whether styles or scripts changed.
    """
    found: list[tuple[StaleRequisite, str, int]] = []
    wanted = (json.dumps(site_ids),)
    for page_id, host_id, site_id, url in connection.execute(_REQUISITES, wanted):
        path, _, query = split_url(url).target.partition("?")
        parts = path.rsplit("/", 2)[1:]
        styled = styles and parts[-1] == LOADER and _has_page_modules(query)
        if any(unquote(part) in files for part in parts) or styled:
            folder, _, last = path.rpartition("/")
            found.append((StaleRequisite(page_id, host_id, site_id), folder, _width_of(last)))
    widths = {(folder, width) for _, folder, width in found}
    return [
        each._replace(is_dense=any((folder, base) in widths for base in _bases(width)))
        for each, folder, width in found
    ]


def _width_of(name: str) -> int:
    """Return the width of a thumbnail, pixels, by its name: `220px-Flag_of_Chad.svg.png`; else 0.

    That of a page of a document is in its middle: `page3-220px-Book.pdf.jpg`.
    """
    digits = name.partition(_WIDTH)[0].rpartition("-")[2]
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _MAX_WIDTH_DIGITS
    return int(digits) if is_number and _WIDTH in name else 0


def _bases(width: int) -> set[int]:
    """Return the widths of which that of a thumbnail may be 1.5 times, rounded up, or 2 times."""
    return {width * 2 // 3, width // 2} - {0, width}


def _has_page_modules(query: str) -> bool:
    """Whether a query to the loader names a module that pages of the wiki are the source of.

    One that names no module may have any.
    """
    values = [value for name, value in parse_qsl(query) if name == "modules"]
    names = [name for value in values for name in value.split("|")]
    return not names or any(name.startswith(_MODULES_OF_PAGES) for name in names)


def make_due(connection: apsw.Connection, stale: Collection[StaleRequisite], at: float) -> None:
    """Make requisites due, so that a restart does not forget them; those that are due stay so."""
    for is_dense, since in ((False, at), (True, at - UNHURRIED_S)):
        numbers = [each.page_id for each in stale if each.is_dense == is_dense]
        connection.execute(
            "UPDATE page SET retry_at = ?1 WHERE requisite = 1 AND retry_at > ?1"
            " AND page_id IN (SELECT value FROM json_each(?2))",
            (since, json.dumps(numbers)),
        )
