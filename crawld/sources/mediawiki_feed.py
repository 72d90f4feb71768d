"""Reads the revisions in a MediaWiki's recent changes: histories need no request for each page.

A row has the revision before it, so a history that ends there is complete again. Rows of deleted
pages disappear, and imports, merges, moves and restorations change histories without rows of
their own: the log names them.

Source: MediaWiki, API:RecentChanges, API:Logevents.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_history import WikiRevision, read_revision
from crawld.sources.mediawiki_rows import rows_of, text_of

_LOGS = frozenset({"delete", "import", "merge", "move"})
"""Log types whose entries change a history."""


class FedRevision(NamedTuple):
    """A new revision of a page.

    Attributes:
        number: the wiki's page id.
        before_id: the revision before it, 0 if it created the page.
    """

    number: int
    before_id: int
    revision: WikiRevision


class RevisionFeed(NamedTuple):
    """The revisions of a response, oldest first, and titles whose histories must be read again."""

    revisions: Sequence[FedRevision]
    changed_titles: frozenset[str]


def read_feed(response: ApiResponse, known_logs: Collection[int] = ()) -> RevisionFeed:
    """Return what a response to a `changes_query` says about histories.

    Args:
        known_logs: entries of the log that were read before.
    """
    found, titles = [], set()
    for row in rows_of(response.query, "recentchanges"):
        number, before_id, sha1 = row.get("pageid"), row.get("old_revid"), row.get("sha1")
        revision = read_revision({**row, "size": row.get("newlen")})
        known = isinstance(number, int) and isinstance(before_id, int)
        # Without a digest the text is hidden, or the wiki does not send digests.
        if row.get("type") in ("edit", "new") and known and isinstance(sha1, str) and revision:
            found.append(FedRevision(int(str(number)), int(str(before_id)), revision))
    for row in rows_of(response.query, "logevents"):
        if text_of(row, "type") in _LOGS and row.get("logid") not in known_logs:
            titles.add(text_of(row, "title"))
            details = row.get("params")
            if isinstance(details, dict):
                titles |= {text_of(details, "target_title"), text_of(details, "dest_title")}
    found.sort(key=lambda each: (each.revision.at, each.revision.revision_id))
    return RevisionFeed(found, frozenset(titles - {""}))
