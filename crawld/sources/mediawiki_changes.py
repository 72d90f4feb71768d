"""Reads changes on a MediaWiki: recent changes, the log, pages that use a changed template.

Recent changes and the log are requested together, from `OVERLAP_S` before the last row seen,
because a wiki commits rows out of order. Row ids show which rows are new.

1. Deleting a page removes its rows from the recent changes; the log has the deletion.
2. Rows are kept for 30 to 90 days. If the row seen last is missing, the oldest row kept shows
   whether it was deleted or is too old; if it is too old, there is a gap.
3. The wiki has its own clock, which may be changed: rows with future times do not move the cursor
   beyond the wiki's `curtimestamp`, and a clock that was set back causes a gap.
4. Times are whole seconds, rounded down: a change may be at any time within its second.
5. Row ids of recent changes are in the order in which the wiki commits them; of the three moves of
   a swap, the second may come first. Ids of the log are in the order of the actions.

Source: MediaWiki, API:RecentChanges, API:Logevents, API:Info, API:Embeddedin.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Literal, NamedTuple

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_history import LogEntry, read_log_entry
from crawld.sources.mediawiki_rows import flag_of, rows_of, text_of, timestamp_of

OVERLAP_S = 30.0
"""Recent changes are requested from this long before the last one: wikis commit out of order. Who
enters a category is written by a job of the wiki, with the time of the edit: 13 s late on a small
wiki that also renders the users of a template."""

MAX_SEEN = 5_000
"""Limit of the row ids kept; a wiki with 500 edits per second has more in the overlap."""

VERSIONS = 10
"""Versions of a file that are compared; a file that has more since an upload affects its users."""

SAME_REPORT_S = 3.0
"""A version is so much older than the report of its upload at most, by two clocks."""

_SHAPE = ("width", "height", "mime")

_LOGS = frozenset({"delete", "move", "import", "merge", "upload"})
"""Log types whose entries change the page that a title shows."""

ChangeKind = Literal["edit", "new", "log", "category"]


class TitleChange(NamedTuple):
    """A change of the page that a title shows.

    Attributes:
        title: the title.
        space: its namespace number.
        at: Unix seconds on the wiki's clock.
        number: the wiki's page id, None if the row has none.
        entry: the log entry that reports a deletion, restoration or move; None for other changes.
        kind: `edit`, `new` (a page was created), `log`, or `category`: the title is a category
            that a page entered or left.
        is_redirect: whether the page is a redirect.
        member: of a `category`, the wiki's id of that page.
        is_rewritten: whether revisions of the past were imported, or merged into another page.
        revision_id: of an edit, the revision that it made.
    """

    title: str
    space: int
    at: float
    number: int | None = None
    entry: LogEntry | None = None
    kind: ChangeKind = "edit"
    is_redirect: bool = False
    member: int | None = None
    is_rewritten: bool = False
    revision_id: int | None = None


@dataclass(frozen=True, slots=True)
class ChangesCursor:
    """Where to continue reading recent changes; stored as JSON.

    Attributes:
        at: time of the newest row seen, on the wiki's clock; 0 before the first response.
        edits: ids of the recent changes seen since `at` less the overlap.
        logs: ids of the log entries seen since then.
        continuation: the API's `continue` object inside a long response, None between responses.
        unverified_at: time of the rows seen last, if the response lacked them, so that the oldest
            row kept must show whether there is a gap; else 0.
        tells_categories: whether the wiki has ever reported who enters a category; many do not.
    """

    at: float = 0.0
    edits: frozenset[int] = frozenset()
    logs: frozenset[int] = frozenset()
    continuation: Parameters | None = None
    unverified_at: float = 0.0
    tells_categories: bool = False

    def to_json(self) -> str:
        """Return the stored form."""
        stored = {
            "at": self.at,
            "edits": sorted(self.edits),
            "logs": sorted(self.logs),
            "part": self.continuation,
            "doubt": self.unverified_at,
            "categories": self.tells_categories,
        }
        return json.dumps(stored)

    @classmethod
    def from_json(cls, text: str | None) -> ChangesCursor:
        """Return the cursor from its stored form; a broken one starts from the beginning."""
        try:
            stored = json.loads(text or "{}")
            return cls(
                float(stored["at"]),
                frozenset(stored["edits"]),
                frozenset(stored["logs"]),
                stored["part"],
                float(stored["doubt"]),
                bool(stored["categories"]),
            )
        except (ValueError, KeyError, TypeError):
            return cls()


@dataclass(frozen=True, slots=True)
class RecentChanges:
    """The content of a response about recent changes.

    Attributes:
        changed: title changes, in the order of time; within a second as in the log and the rows.
        cursor: where to continue.
        gap: whether changes may be missing, so that all pages must be probed.
        unusable: number of rows that could not be read.
    """

    changed: Sequence[TitleChange]
    cursor: ChangesCursor
    gap: bool = False
    unusable: int = 0


# --- recent changes -------------------------------------------------------------------------------


def changes_query(cursor: ChangesCursor, now: float) -> Parameters:
    """Return the request for the changes since the last response, or since `now` if none."""
    start = _timestamp((cursor.at or now) - OVERLAP_S)
    return {
        "curtimestamp": 1,
        "list": "recentchanges|logevents",
        "rcprop": "ids|title|timestamp|loginfo|sizes|sha1|tags|redirect",
        "rctype": "edit|new|log|categorize",
        "rcdir": "newer",
        "rcstart": start,
        "rclimit": "max",
        "leprop": "ids|title|type|timestamp|details",
        "ledir": "newer",
        "lestart": start,
        "lelimit": "max",
        **(cursor.continuation or {}),
    }


def oldest_query() -> Parameters:
    """Return the request for the oldest recent change that the wiki keeps."""
    return {
        "curtimestamp": 1,
        "list": "recentchanges",
        "rcprop": "ids|timestamp",
        "rcdir": "newer",
        "rclimit": 1,
    }


def read_changes(response: ApiResponse, cursor: ChangesCursor, now: float) -> RecentChanges:
    """Return the new changes in the response to a `changes_query` with this cursor.

    `now` (Unix seconds) counts only if the wiki does not send its own time.
    """
    wiki_now = response.served_at if response.served_at is not None else now
    rows = _Rows(cursor)
    for row in rows_of(response.query, "recentchanges"):
        rows.edit(row)
    for row in rows_of(response.query, "logevents"):
        rows.log(row)
    at = min(max(rows.newest, cursor.at), wiki_now)
    clock_set_back = cursor.at > wiki_now + OVERLAP_S
    first = cursor.continuation is None
    lost = first and bool(cursor.edits) and not rows.met
    edits = {number: seen for number, seen in rows.edits.items() if number not in cursor.edits}
    changed = rows.changed()
    return RecentChanges(
        changed,
        ChangesCursor(
            wiki_now if clock_set_back or not at else at,
            rows.kept(edits if lost else rows.edits, at),
            rows.kept(rows.logs, at),
            response.cursor,
            0.0 if clock_set_back else cursor.at if lost else cursor.unverified_at,
            cursor.tells_categories or any(each.kind == "category" for each in changed),
        ),
        gap=clock_set_back,
        unusable=rows.unusable,
    )


def read_oldest(response: ApiResponse, cursor: ChangesCursor) -> RecentChanges:
    """Return whether the oldest row kept is as old as the rows seen last."""
    times = [timestamp_of(row) for row in rows_of(response.query, "recentchanges")]
    oldest = min((at for at in times if at is not None), default=None)
    settled = replace(cursor, continuation=None, unverified_at=0.0)
    return RecentChanges((), settled, gap=oldest is None or oldest > cursor.unverified_at)


class _Report(NamedTuple):
    """What one row reports; `log_number` is None for an edit."""

    at: float
    log_number: int | None
    changes: Sequence[TitleChange]


class _Rows:
    """Collects the rows of one response."""

    def __init__(self, cursor: ChangesCursor) -> None:
        self._reports: list[_Report] = []
        self.edits: dict[int, float] = dict.fromkeys(cursor.edits, cursor.at)
        self.logs: dict[int, float] = dict.fromkeys(cursor.logs, cursor.at)
        self.newest = 0.0
        self.met = False
        self.unusable = 0

    def changed(self) -> list[TitleChange]:
        """Return what the rows report, in the order of time."""
        reports = sorted(self._reports, key=attrgetter("at"))
        logged = [each for each in reports if each.log_number is not None]
        # Entries of the log change places among each other, not with the edits between them.
        in_order = iter(sorted(logged, key=attrgetter("at", "log_number")))
        reports = [each if each.log_number is None else next(in_order) for each in reports]
        return [change for report in reports for change in report.changes if change.title]

    def edit(self, row: Mapping[str, object]) -> None:
        """Add a row of the recent changes."""
        change, at = row.get("rcid"), timestamp_of(row)
        if not isinstance(change, int) or at is None:
            self.unusable += 1
            return
        known = change in self.edits
        self.edits[change] = at
        if known:
            self.met = True
            return
        self.newest = max(self.newest, at)
        if row.get("type") == "log":
            self._logged(row, "logtype", "logaction", "logparams", at)
        else:
            self._edited(row, at)

    def _edited(self, row: Mapping[str, object], at: float) -> None:
        title, space, number = text_of(row, "title"), _space(row.get("ns")), row.get("pageid")
        if row.get("type") == "categorize":
            # It has the title of the category, but the id of the page that enters or leaves it.
            change = TitleChange(title, space, at, kind="category", member=_page_id(number))
            self._reports.append(_Report(at, None, (change,)))
            return
        kind: ChangeKind = "new" if row.get("type") == "new" else "edit"
        is_redirect = flag_of(row, "redirect")
        change = TitleChange(
            *(title, space, at, _page_id(number)),
            kind=kind,
            is_redirect=is_redirect,
            revision_id=_page_id(row.get("revid")),
        )
        self._reports.append(_Report(at, None, (change,)))

    def log(self, row: Mapping[str, object]) -> None:
        """Add an entry of the log; most are also among the recent changes."""
        number, at = row.get("logid"), timestamp_of(row)
        if not isinstance(number, int) or at is None:
            self.unusable += 1
        elif number not in self.logs:
            self.logs[number] = at
            self.newest = max(self.newest, at)
            self._logged(row, "type", "action", "params", at)
        else:
            self.logs[number] = at

    def _logged(
        self, row: Mapping[str, object], kind: str, action: str, details: str, at: float
    ) -> None:
        if text_of(row, kind) not in _LOGS:
            return
        log_number = row.get("logid")
        if isinstance(log_number, int):
            if kind == "logtype" and log_number in self.logs:
                return
            self.logs[log_number] = at
        fields = {"type": row.get(kind), "action": row.get(action), "params": row.get(details)}
        entry = read_log_entry({**row, **fields})
        number = _page_id(row.get("pageid"))
        rewrites = row.get(kind) in ("import", "merge")
        title, space = text_of(row, "title"), row.get("ns")
        changes = [
            TitleChange(title, _space(space), at, number, entry, "log", is_rewritten=rewrites)
        ]
        more = row.get(details)
        if isinstance(more, dict):
            target = more.get("target_title", more.get("dest_title"))
            space = more.get("target_ns", more.get("dest_ns"))
            if isinstance(target, str):
                changes.append(
                    TitleChange(target, _space(space), at, kind="log", is_rewritten=rewrites)
                )
        self._reports.append(
            _Report(at, log_number if isinstance(log_number, int) else None, changes)
        )

    def kept(self, numbers: Mapping[int, float], at: float) -> frozenset[int]:
        """Return the row ids that the next response may repeat."""
        recent = [number for number, seen in numbers.items() if seen >= at - 2 * OVERLAP_S]
        return frozenset(sorted(recent)[-MAX_SEEN:])


def _space(number: object) -> int:
    return number if isinstance(number, int) else 0


def _page_id(number: object) -> int | None:
    return number if isinstance(number, int) and 0 < number < 2**63 else None


def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(max(at, 0.0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- users of templates ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PendingTemplates:
    """Changed templates whose users are not known yet, and pages affected so far; stored as JSON.

    Attributes:
        templates: titles and times of change, in the order in which their users are listed.
        pages: (page_id, first_at, last_at) of pages with their span of change; no request needed.
        continuation: the API's `continue` object for the first template.
        requests: requests spent on the first template.
    """

    templates: tuple[tuple[str, float], ...] = ()
    pages: tuple[tuple[int, float, float], ...] = ()
    continuation: Parameters | None = None
    requests: int = 0

    def with_edited(
        self, edited: Mapping[str, float], uses: Mapping[str, int], limit: int
    ) -> tuple[tuple[str, float], ...]:
        """Return the templates with those edited since, at most `limit`, the most used first.

        One that is edited while its users are listed is listed again afterwards: some of those
        that were listed may have been visited before this edit.

        Args:
            uses: number of pages by title, as far as it is known.
        """
        begun = self.templates[:1] if self.continuation is not None else ()
        waiting = {**dict(self.templates[len(begun) :]), **edited}
        most_used = sorted(waiting.items(), key=lambda each: -uses.get(each[0], 0))
        return (*begun, *most_used)[:limit]

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps([self.templates, self.pages, self.continuation, self.requests])

    @classmethod
    def from_json(cls, text: str | None) -> PendingTemplates:
        """Return the value from its stored form; a broken one is empty."""
        try:
            templates, pages, part, requests = json.loads(text or "")
            return cls(
                tuple((str(title), float(at)) for title, at in templates),
                tuple((int(page), float(first), float(last)) for page, first, last in pages),
                part,
                int(requests),
            )
        except (ValueError, TypeError):
            return cls()


def template_users_query(
    title: str, continuation: Parameters | None, *, is_file: bool = False
) -> Parameters:
    """Return the request for the pages that include a template, or show a file.

    The first for a file also asks for its last versions.
    """
    query: Parameters = {"list": "embeddedin", "eititle": title, "eilimit": "max"}
    if is_file:
        query = {"list": "imageusage", "iutitle": title, "iulimit": "max"}
        if continuation is None:
            query |= {"prop": "imageinfo", "titles": title, "iilimit": VERSIONS}
            query |= {"iiprop": "timestamp|size|mime"}
    return {**query, **(continuation or {})}


def keeps_shape(response: ApiResponse, reported_at: float, since: float) -> bool:
    """Whether a file was uploaded whose versions look alike on pages: its users stay the same.

    A page has the size of a picture in its text. Of a file with one version, all users change, and
    of one that was deleted, restored or moved.

    Args:
        reported_at: time of the last report about the file, Unix seconds.
        since: from when on the users may show each version, Unix seconds.
    """
    pages = rows_of(response.query, "pages")
    versions = [row for page in pages for row in rows_of(page, "imageinfo")]
    times = [timestamp_of(row) or math.inf for row in versions]
    if not times or times[0] < reported_at - SAME_REPORT_S:
        return False
    needed = sum(at >= since for at in times) + 1
    shapes = {tuple(row.get(key) for key in _SHAPE) for row in versions[:needed]}
    return len(versions) >= needed and len(shapes) == 1 and None not in shapes.pop()


def read_template_users(response: ApiResponse) -> list[str]:
    """Return the titles of the pages that include a template, or show a file."""
    rows = [row for key in ("embeddedin", "imageusage") for row in rows_of(response.query, key)]
    return [title for row in rows if (title := text_of(row, "title"))]


@dataclass(frozen=True, slots=True)
class ProbeProgress:
    """Progress of a round of probes; stored as JSON.

    Attributes:
        after: id of the last page probed; 0: a new round begins.
        began_at: when the round began, Unix seconds.
        urgent: whether the round repairs a gap and therefore waits less.
        titles: most titles per request.
    """

    after: int = 0
    began_at: float = 0.0
    urgent: bool = False
    titles: int = 50

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps([self.after, self.began_at, self.urgent, self.titles])

    @classmethod
    def from_json(cls, text: str | None) -> ProbeProgress:
        """Return the progress from its stored form; a broken one starts an urgent round."""
        try:
            after, began_at, urgent, titles = json.loads(text or "")
            return cls(int(after), float(began_at), bool(urgent), max(int(titles), 1))
        except (ValueError, TypeError):
            return cls(urgent=True)
