"""Select the stored copy of a page that the web mirror and exports show.

    pinned by the operator? ─yes─▶ that one
          │ no
    site has a settle_s? ──no──▶ the newest
          │ yes
    the newest whose text was current that long ──none was──▶ the newest

On a busy wiki four of ten gaps between edits are under an hour: a mirror that shows each edit at
once shows vandalism. A text is current from the time it appears until another text is known to have
replaced it; a text that was current long enough once is shown at once when it comes back, as by a
revert. If the exact history of the page is known (`change`), times and texts are those of its
revisions, else those of the copies and their bodies.

Gone pages keep their last good copy, marked as gone, unless their site withholds such copies: then
nothing is shown of them, at no time. So do pages that their wiki reports as deleted or moved away,
and pages that left the mirrored part of their wiki.
A purged page has no row and therefore no copy. With `at` the copy at that time is selected: later
copies and pins are ignored, but how long a text was current is judged by everything known now.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import apsw

from crawld.core.page import Outcome, PageState
from crawld.store.frontier.removal import WITHHOLD, Removal

MAX_COPIES: Final = 256
"""The most copies of a page that are searched for a settled one, from the newest."""

MAX_RECENT_COPIES: Final = 5_000
"""The most copies that `list_held_back` reads, from the newest of all pages."""

MAX_REVISIONS: Final = 1024
"""The most revisions read of a page; a text that comes back is recognized among them."""


class Reason(StrEnum):
    """Why a copy is the one shown."""

    NEWEST = "newest"
    PINNED = "pinned"
    SETTLED = "settled"
    UNSETTLED = "unsettled"


class ShownCopy(NamedTuple):
    """The copy that is shown of a page.

    Attributes:
        version_id: the copy; None if the page never had one.
        reason: why this one; `unsettled`: no text was current long enough, so it is the newest.
        newest_id: the newest copy, now or at the given time.
        gone: whether the page is gone from the web; the copy is its last good one.
        redirect_url: target of the redirect, if the page was one when last fetched; shown instead
            of the copy if possible.
        removal: what the wiki reports about the page, None if it reports it as there.
        left_at: when the page left the mirrored part of its wiki, Unix seconds; None: it did not.
        withheld: whether its site shows no copy because the original is gone, or left.
        withholds: whether its site shows no copies of pages whose originals are gone.
    """

    version_id: int | None
    reason: Reason
    newest_id: int | None
    gone: bool
    redirect_url: str | None
    removal: Removal | None = None
    left_at: float | None = None
    withheld: bool = False
    withholds: bool = False


class _Copy(NamedTuple):
    version_id: int
    visited_at: float
    body_id: int


_Text = tuple[str, float]
"""Key of a text: `digest` and its value, `body` and its id, or `hidden` and its time."""


class _TextSpan(NamedTuple):
    """A text and the time it was current."""

    text: _Text
    began_at: float
    ended_at: float


_PAGE: Final = """
SELECT state, redirect_url, pin.version_id,
       ifnull(json_extract(definition, '$.settle_s'), 0.0),
       json_extract(definition, '$.deleted_pages'),
       page.left_at, removal.kind, removal.first_at, removal.target_url
FROM page CROSS JOIN site USING (site_id) LEFT JOIN pin USING (page_id)
LEFT JOIN removal USING (page_id) WHERE page_id = ?
"""

_COPIES: Final = """
SELECT version_id, visited_at, body_id FROM version WHERE page_id = ? AND visited_at <= ?
ORDER BY visited_at DESC, version_id DESC LIMIT ?
"""

_SUPERSEDED: Final = """
SELECT visited_at FROM version WHERE page_id = ? AND visited_at > ?
ORDER BY visited_at LIMIT 1
"""

_LAST_WORD: Final = """
SELECT outcome, detail FROM visit
WHERE page_id = ? AND visited_at <= ? AND outcome NOT IN ('blocked', 'failed')
ORDER BY visited_at DESC, visit_id DESC LIMIT 1
"""


def select_copy(
    connection: apsw.Connection, page_id: int, now: float, at: float | None = None
) -> ShownCopy | None:
    """Return the copy of a page that is shown, None if the page is not known or was purged.

    Args:
        at: a time in the past (Unix seconds) to show the page at; None: now.
    """
    page = connection.execute(_PAGE, (page_id,)).fetchone()
    if page is None:
        return None
    deleted_pages, left_at, *removed = page[4:]
    removal = Removal(*removed) if removed[0] is not None else None
    withholds = deleted_pages == WITHHOLD
    gone = page[0] == PageState.GONE
    if withholds and (removal or gone or left_at is not None):
        is_gone = gone or removal is not None
        return ShownCopy(None, Reason.NEWEST, None, is_gone, None, removal, left_at, withheld=True)
    shown = _select(connection, page_id, page[:4], now, at)
    if at is None:
        shown = shown._replace(removal=removal, left_at=left_at, withholds=withholds)
    return shown


def _select(
    connection: apsw.Connection,
    page_id: int,
    page: tuple[str, str | None, int | None, float],
    now: float,
    at: float | None,
) -> ShownCopy:
    """Select among the copies of a page; `page`: state, redirect, pinned copy, settle_s."""
    state, redirect_url, pinned_id, settle_s = page
    gone = state == PageState.GONE
    limit = 1 if settle_s <= 0 else MAX_COPIES
    until = math.inf if at is None else at
    copies = [_Copy(*row) for row in connection.execute(_COPIES, (page_id, until, limit))]
    newest_id = copies[0].version_id if copies else None
    if at is not None:
        leads_to = redirect_url
        gone, redirect_url = _state_at(connection, page_id, at)
        # The copies of a page that was renamed since belong to the new page.
        redirect_url = redirect_url if copies else leads_to
    elif pinned_id is not None:
        return ShownCopy(pinned_id, Reason.PINNED, newest_id, gone, None)
    if settle_s <= 0 or not copies:
        return ShownCopy(newest_id, Reason.NEWEST, newest_id, gone, redirect_url)
    stood = _TextSpans(connection, page_id, copies, now).newest_of(settle_s)
    if stood is None:
        return ShownCopy(newest_id, Reason.UNSETTLED, newest_id, gone, redirect_url)
    reason = Reason.NEWEST if stood == newest_id else Reason.SETTLED
    return ShownCopy(stood, reason, newest_id, gone, redirect_url)


def count_held(connection: apsw.Connection, site_id: int) -> int:
    """Return how many pages of a site have a copy, requisites left out; reads only an index."""
    held: int = connection.execute(
        "SELECT count(*) FROM page INDEXED BY page_held WHERE site_id = ?"
        " AND state = 'visited' AND version_id IS NOT NULL AND requisite = 0",
        (site_id,),
    ).get
    return held


def list_held_back(connection: apsw.Connection, site_id: int, now: float) -> list[int]:
    """Return the pages of a site that may show an older copy than their newest.

    They are pinned, or changed so recently that `settle_s` may hold the newest copy back.
    """
    settle_s = connection.execute(
        "SELECT ifnull(json_extract(definition, '$.settle_s'), 0.0) FROM site WHERE site_id = ?",
        (site_id,),
    ).get
    # In this order: there are few pins, and perhaps millions of pages.
    pinned = connection.execute(
        "SELECT page_id FROM pin CROSS JOIN page USING (page_id) WHERE site_id = ?", (site_id,)
    )
    found = {int(page_id) for (page_id,) in pinned}
    if settle_s:
        # version_ids are in the order of storage: the last ones are the latest.
        for page_id, of_site, requisite, visited_at in connection.execute(
            "SELECT page_id, site_id, requisite, visited_at FROM version JOIN page USING (page_id)"
            " ORDER BY version.version_id DESC LIMIT ?",
            (MAX_RECENT_COPIES,),
        ):
            if visited_at < now - settle_s:
                break
            if of_site == site_id and not requisite:
                found.add(int(page_id))
    return sorted(found)


def count_outdated(connection: apsw.Connection, page_ids: Iterable[int], now: float) -> int:
    """Count the pages that show an older copy than their newest.

    An older copy is never fresh: the freshness of the shown copies is that of the newest copies,
    less this share.
    """
    found = (select_copy(connection, page_id, now) for page_id in page_ids)
    return sum(each is not None and each.version_id != each.newest_id for each in found)


def _state_at(connection: apsw.Connection, page_id: int, at: float) -> tuple[bool, str | None]:
    """Return whether a page was gone at a time, and the target if it was a redirect."""
    outcome, detail = connection.execute(_LAST_WORD, (page_id, at)).fetchone() or (None, None)
    gone = outcome in (Outcome.GONE, Outcome.SOFT_GONE)
    return gone, detail if outcome == Outcome.MOVED else None


class _TextSpans:
    """How long the texts of a page's copies were current."""

    def __init__(
        self, connection: apsw.Connection, page_id: int, copies: Sequence[_Copy], now: float
    ) -> None:
        self._copies = copies
        known_until, revisions = _revisions(connection, page_id)
        shown = _texts_of(revisions, copies, known_until)
        self._texts = [
            ("body", copy.body_id) if text is None else text
            for copy, text in zip(copies, shown, strict=True)
        ]
        later = connection.execute(_SUPERSEDED, (page_id, copies[0].visited_at)).get
        ends = [now if later is None else later, *(copy.visited_at for copy in copies[:-1])]
        # Each copy is current until the next appears; the spans of revisions are added.
        own = [
            _TextSpan(text, copy.visited_at, end)
            for copy, text, exact, end in zip(copies, self._texts, shown, ends, strict=True)
            if exact is None
        ]
        # The last known revision was current at most until the first newer copy.
        until = min((each.began_at for each in own if each.began_at > known_until), default=now)
        self._longest = _longest_spans([*_revision_spans(revisions, until), *own])

    def newest_of(self, settle_s: float) -> int | None:
        """Return the newest copy whose text was current for `settle_s`, None if none was."""
        for copy, text in zip(self._copies, self._texts, strict=True):
            if self._longest[text] >= settle_s:
                return copy.version_id
        return None


def _revisions(
    connection: apsw.Connection, page_id: int
) -> tuple[float, list[tuple[float, _Text]]]:
    """Return the time until which the page's history is known, and its texts, newest first."""
    known_until = connection.execute(
        "SELECT complete_until FROM wiki_page WHERE page_id = ?", (page_id,)
    ).get
    if known_until is None:
        return -math.inf, []
    rows = connection.execute(
        "SELECT changed_at, digest FROM change WHERE page_id = ? AND source = 'revision'"
        " AND ifnull(kind, '') <> 'null' ORDER BY changed_at DESC, revision_id DESC LIMIT ?",
        (page_id, MAX_REVISIONS),
    )
    return known_until, [
        # A hidden text equals no other.
        (at, ("hidden", at) if digest is None else ("digest", digest))
        for at, digest in rows
    ]


def _texts_of(
    revisions: Sequence[tuple[float, _Text]], copies: Sequence[_Copy], known_until: float
) -> list[_Text | None]:
    """Return the text of each copy by the page's history, None where that is not known."""
    found: list[_Text | None] = []
    place = 0
    for copy in copies:
        while place < len(revisions) and revisions[place][0] > copy.visited_at:
            place += 1
        known = place < len(revisions) and copy.visited_at <= known_until
        found.append(revisions[place][1] if known else None)
    return found


def _revision_spans(revisions: Sequence[tuple[float, _Text]], until: float) -> Iterator[_TextSpan]:
    ended_at = until
    for began_at, text in revisions:
        yield _TextSpan(text, began_at, ended_at)
        ended_at = began_at


def _longest_spans(stands: Iterable[_TextSpan]) -> Mapping[_Text, float]:
    longest: dict[_Text, float] = defaultdict(float)
    for text, group in itertools.groupby(stands, key=lambda stand: stand.text):
        # Equal texts side by side count as one.
        whole = list(group)
        stood_s = max(each.ended_at for each in whole) - min(each.began_at for each in whole)
        longest[text] = max(longest[text], stood_s)
    return longest
