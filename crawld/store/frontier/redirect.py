"""Transfer history after a permanent redirect, and detect mass disappearance of pages.

After a transfer the old page stays as a redirect. Nothing is transferred if the new page has copies
of its own: then two pages have become one, and each keeps its history.
"""

from __future__ import annotations

from typing import Final

import apsw

from crawld.core.units import DAY_S
from crawld.core.url import split_url, url_hash

_TARGET: Final = """
SELECT page_id FROM page WHERE host_id = (SELECT host_id FROM host WHERE host = ?1)
AND url_hash = ?2 AND url = ?3 AND site_id = (SELECT site_id FROM page WHERE page_id = ?4)
AND page_id <> ?4 AND version_id IS NULL AND requisite = 0
"""

# Without the validators, which are valid for the old URL only.
_GIVE: Final = """
UPDATE page SET
    (digest, version_id, last_change_at, change_count, title, cleaned_digest, sketch, form) =
    (SELECT digest, version_id, last_change_at, change_count, title, cleaned_digest, sketch, form
     FROM page WHERE page_id = ?1)
WHERE page_id = ?2
"""

_LEAVE: Final = """
UPDATE page SET digest = NULL, version_id = NULL, etag = NULL, last_modified = NULL,
    cleaned_digest = NULL, sketch = NULL
WHERE page_id = ?
"""

_KEPT_ONE_A_PAGE: Final = ("model", "volatile", "pin", "quarantine", "requisite_use")


def transfer_history(
    connection: apsw.Connection, page_id: int, target: str, moved_at: float
) -> bool:
    """Transfer the history of a page to the page at its new canonical URL.

    Args:
        page_id: the page that moved.
        target: its new URL; a page of the same site without copies takes the history.
        moved_at: time of the visit that found the redirect; that visit stays with the old page.

    Returns:
        Whether there was such a page, and a history to transfer.
    """
    held = connection.execute("SELECT version_id FROM page WHERE page_id = ?", (page_id,)).get
    if held is None:
        return False
    new_id = connection.execute(
        _TARGET, (split_url(target).host, url_hash(target), target, page_id)
    ).get
    if new_id is None:
        return False
    connection.execute("UPDATE version SET page_id = ? WHERE page_id = ?", (new_id, page_id))
    connection.execute(
        "UPDATE visit SET page_id = ? WHERE page_id = ? AND visited_at < ?",
        (new_id, page_id, moved_at),
    )
    for table in _KEPT_ONE_A_PAGE:
        connection.execute(
            f"UPDATE OR IGNORE {table} SET page_id = ? WHERE page_id = ?", (new_id, page_id)
        )
    connection.execute(_GIVE, (page_id, new_id))
    connection.execute(_LEAVE, (page_id,))
    return True


_DELETED: Final = """
SELECT kind FROM change WHERE page_id = ?1 AND source = 'log'
AND kind IN ('deletion', 'restoration', 'move') AND changed_at >= ?2
ORDER BY changed_at DESC, revision_id DESC LIMIT 1
"""

_MISSING: Final = """
SELECT 1 FROM probe WHERE page_id = ? AND revision_id IS NULL AND probed_at >= ?
"""

LOG_SLACK_S: Final = 2.0
"""Times of a log are whole seconds, rounded down, by the wiki's clock."""


def is_deleted_from_wiki(connection: apsw.Connection, page_id: int, since: float) -> bool:
    """Return whether the wiki of a page says that the page is gone.

    Its log says so by a deletion, or a move without a redirect, that no restoration follows; a
    probe by a title without a page.

    Args:
        since: time of its last copy, Unix seconds.
    """
    last = connection.execute(_DELETED, (page_id, since - LOG_SLACK_S)).get
    if last is not None:
        return bool(last != "restoration")
    return connection.execute(_MISSING, (page_id, since)).get is not None


_VANISHED: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM page WHERE host_id = ? AND gone_count > 0 AND gone_since > ? LIMIT ?
)
"""

VANISH_WINDOW_S: Final = 30 * DAY_S
"""Pages that disappear within this time of each other count as one event."""

VANISH_MIN_PAGES: Final = 10
"""The least number of pages that counts as a mass disappearance."""


def count_vanished(connection: apsw.Connection, host_id: int, now: float, at_most: int) -> int:
    """Return how many pages of a host disappeared within `VANISH_WINDOW_S`, up to a number."""
    return int(connection.execute(_VANISHED, (host_id, now - VANISH_WINDOW_S, at_most)).get)


def count_known(connection: apsw.Connection, host_id: int) -> int:
    """Return how many pages of a host have, or had, a copy."""
    return int(
        connection.execute(
            "SELECT pages_visited + pages_gone FROM host WHERE host_id = ?", (host_id,)
        ).get
    )


def is_mass_vanish(connection: apsw.Connection, host_id: int, now: float, max_share: float) -> bool:
    """Return whether so many pages of a host disappeared within a month that a fault is likely.

    Args:
        max_share: share of the pages with a copy that may go within `VANISH_WINDOW_S`.
    """
    many = max(VANISH_MIN_PAGES, int(max_share * count_known(connection, host_id)) + 1)
    return count_vanished(connection, host_id, now, many) == many


def set_vanishing(connection: apsw.Connection, host_id: int, at: float | None) -> None:
    """Store the time since which many pages of a host disappear; None: they do not."""
    connection.execute(
        "UPDATE host SET vanishing_since = iif(?1 IS NULL, NULL, coalesce(vanishing_since, ?1))"
        " WHERE host_id = ?2",
        (at, host_id),
    )
