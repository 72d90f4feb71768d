"""What a MediaWiki says has changed: recent changes, its log, revisions of many pages at once.

Recent changes and the log are asked for in one request, from a little before the last row seen: a
wiki commits rows out of order. Which rows are new is told by their numbers.

1. Deleting a page removes its rows from the recent changes; the log says what became of it.
2. Rows are kept for a time (30 to 90 days). Where the row that was seen last is missing, the oldest
   row kept says whether it was deleted or is too old: then there is a gap.
3. The wiki's clock is its own. It may be set: rows of the future do not move the cursor ahead of
   the wiki's own `curtimestamp`, and a clock set back is a gap.
4. Instants are whole seconds, cut: a change lies anywhere in its second.

Source: MediaWiki, API:RecentChanges, API:Logevents, API:Info, API:Embeddedin, Manual:Namespace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_rows import rows_of, text_of, timestamp_of

OVERLAP_S = 10.0
"""Recent changes are asked for from so long before the last one: wikis commit out of order."""

MAX_SEEN = 5_000
"""Numbers of rows remembered; a wiki of 500 edits a second would have more in the overlap."""

TEMPLATE_SPACES = frozenset({10, 828})
"""Namespaces whose pages others include: templates and modules."""

_LOGS = frozenset({"delete", "move", "import", "merge", "upload"})
"""Logs whose entries change what a title shows."""


class TitleChange(NamedTuple):
    """A title that shows something else since an instant.

    Attributes:
        title: the title. space: its namespace.
        at: Unix seconds by the wiki's clock.
        number: the wiki's number of the page, None where the row names none.
    """

    title: str
    space: int
    at: float
    number: int | None = None


@dataclass(frozen=True, slots=True)
class ChangesCursor:
    """Where recent changes go on; stored as JSON.

    Attributes:
        at: instant of the newest row seen, by the wiki's clock; 0 before the first answer.
        edits, logs: numbers of the rows seen since `at` less the overlap.
        continuation: the API's `continue` object inside a long response, None between responses.
        unverified_at: time of the rows seen last, if they were missing from the response: the
            oldest row kept must show whether there is a gap; 0: they were there.
    """

    at: float = 0.0
    edits: frozenset[int] = frozenset()
    logs: frozenset[int] = frozenset()
    continuation: Parameters | None = None
    unverified_at: float = 0.0

    def to_json(self) -> str:
        """Return the stored form."""
        stored = {
            "at": self.at,
            "edits": sorted(self.edits),
            "logs": sorted(self.logs),
            "part": self.continuation,
            "doubt": self.unverified_at,
        }
        return json.dumps(stored)

    @classmethod
    def from_json(cls, text: str | None) -> ChangesCursor:
        """Return the cursor of a stored form; one that cannot be read starts anew."""
        try:
            stored = json.loads(text or "{}")
            return cls(
                float(stored["at"]),
                frozenset(stored["edits"]),
                frozenset(stored["logs"]),
                stored["part"],
                float(stored["doubt"]),
            )
        except (ValueError, KeyError, TypeError):
            return cls()


@dataclass(frozen=True, slots=True)
class RecentChanges:
    """What an answer said.

    Attributes:
        changed: titles, in the order of the rows.
        cursor: where to go on.
        gap: changes may have been left out: what is held must be compared in another way.
        unusable: rows that were left out.
    """

    changed: Sequence[TitleChange]
    cursor: ChangesCursor
    gap: bool = False
    unusable: int = 0


# --- recent changes -------------------------------------------------------------------------------


def changes_query(cursor: ChangesCursor, now: float) -> Parameters:
    """Return the request for what has changed since the last.

    Args:
        cursor: where it goes on.
        now: Unix seconds; where nothing was seen yet, it starts here.
    """
    start = _written((cursor.at or now) - OVERLAP_S)
    return {
        "action": "query",
        "curtimestamp": 1,
        "list": "recentchanges|logevents",
        "rcprop": "ids|title|timestamp|loginfo",
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
    """Return the request for the oldest of the recent changes that is kept."""
    return {
        "action": "query",
        "curtimestamp": 1,
        "list": "recentchanges",
        "rcprop": "ids|timestamp",
        "rcdir": "newer",
        "rclimit": 1,
    }


def read_changes(answer: ApiResponse, cursor: ChangesCursor, now: float) -> RecentChanges:
    """Return what is new in an answer.

    Args:
        answer: of `changes_query`.
        cursor: the one that was asked with.
        now: instant of the answer; the wiki's own clock goes before it.
    """
    told_now = answer.served_at if answer.served_at is not None else now
    rows = _Rows(cursor)
    for row in rows_of(answer.query, "recentchanges"):
        rows.edit(row)
    for row in rows_of(answer.query, "logevents"):
        rows.log(row)
    at = min(max(rows.newest, cursor.at), told_now)
    set_back = cursor.at > told_now + OVERLAP_S
    first = cursor.continuation is None
    lost = first and bool(cursor.edits) and not rows.met
    edits = {number: seen for number, seen in rows.edits.items() if number not in cursor.edits}
    return RecentChanges(
        rows.changed,
        ChangesCursor(
            told_now if set_back or not at else at,
            rows.kept(edits if lost else rows.edits, at),
            rows.kept(rows.logs, at),
            answer.cursor,
            0.0 if set_back else cursor.at if lost else cursor.unverified_at,
        ),
        gap=set_back,
        unusable=rows.unusable,
    )


def read_oldest(answer: ApiResponse, cursor: ChangesCursor) -> RecentChanges:
    """Return whether recent changes reach back to what was seen, by the oldest row kept."""
    instants = [timestamp_of(row) for row in rows_of(answer.query, "recentchanges")]
    oldest = min((at for at in instants if at is not None), default=None)
    settled = ChangesCursor(cursor.at, cursor.edits, cursor.logs)
    return RecentChanges((), settled, gap=oldest is None or oldest > cursor.unverified_at)


class _Rows:
    """The rows of one answer, taken apart."""

    def __init__(self, cursor: ChangesCursor) -> None:
        self.changed: list[TitleChange] = []
        self.edits: dict[int, float] = dict.fromkeys(cursor.edits, cursor.at)
        self.logs: dict[int, float] = dict.fromkeys(cursor.logs, cursor.at)
        self.newest = 0.0
        self.met = False
        self.unusable = 0

    def edit(self, row: Mapping[str, object]) -> None:
        """Take a row of the recent changes."""
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
            self._logged(row, "logtype", "logparams", at)
        else:
            # A categorisation names the category and the number of the page that entered it.
            number = None if row.get("type") == "categorize" else row.get("pageid")
            self._add(text_of(row, "title"), row.get("ns"), at, number)

    def log(self, row: Mapping[str, object]) -> None:
        """Take an entry of the log; most stand among the recent changes too."""
        number, at = row.get("logid"), timestamp_of(row)
        if not isinstance(number, int) or at is None:
            self.unusable += 1
        elif number not in self.logs:
            self.logs[number] = at
            self.newest = max(self.newest, at)
            self._logged(row, "type", "params", at)
        else:
            self.logs[number] = at

    def _logged(self, row: Mapping[str, object], kind: str, details: str, at: float) -> None:
        if text_of(row, kind) not in _LOGS:
            return
        log_number = row.get("logid")
        if isinstance(log_number, int):
            if kind == "logtype" and log_number in self.logs:
                return
            self.logs[log_number] = at
        self._add(text_of(row, "title"), row.get("ns"), at, row.get("pageid"))
        more = row.get(details)
        if isinstance(more, dict):
            target = more.get("target_title", more.get("dest_title"))
            space = more.get("target_ns", more.get("dest_ns"))
            if isinstance(target, str):
                self._add(target, space, at, None)

    def _add(self, title: str, space: object, at: float, number: object) -> None:
        if title:
            known = number if isinstance(number, int) and 0 < number < 2**63 else None
            self.changed.append(
                TitleChange(title, space if isinstance(space, int) else 0, at, known)
            )

    def kept(self, numbers: Mapping[int, float], at: float) -> frozenset[int]:
        """Return the numbers that the next answer may name again."""
        recent = [number for number, seen in numbers.items() if seen >= at - 2 * OVERLAP_S]
        return frozenset(sorted(recent)[-MAX_SEEN:])


def _written(at: float) -> str:
    return datetime.fromtimestamp(max(at, 0.0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- who includes a template ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PendingTemplates:
    """Templates whose users are to be asked for, and pages known to be touched; stored as JSON.

    Attributes:
        templates: titles and instants of their changes, the oldest first.
        pages: page_id and span of the change (first_at, last_at), to be told without a request.
        part: where the answer for the first template goes on. asked: requests spent on it.
    """

    templates: tuple[tuple[str, float], ...] = ()
    pages: tuple[tuple[int, float, float], ...] = ()
    continuation: Parameters | None = None
    requests: int = 0

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps([self.templates, self.pages, self.continuation, self.requests])

    @classmethod
    def from_json(cls, text: str | None) -> PendingTemplates:
        """Return what a stored form says; one that cannot be read is empty."""
        try:
            templates, pages, part, asked = json.loads(text or "")
            return cls(
                tuple((str(title), float(at)) for title, at in templates),
                tuple((int(page), float(first), float(last)) for page, first, last in pages),
                part,
                int(asked),
            )
        except (ValueError, TypeError):
            return cls()


def template_users_query(title: str, continuation: Parameters | None) -> Parameters:
    """Return the request for the pages that include a template."""
    return {
        "action": "query",
        "list": "embeddedin",
        "eititle": title,
        "eilimit": "max",
        **(continuation or {}),
    }


def read_template_users(answer: ApiResponse) -> list[str]:
    """Return the titles of the pages that include a template."""
    return [
        title for row in rows_of(answer.query, "embeddedin") if (title := text_of(row, "title"))
    ]


@dataclass(frozen=True, slots=True)
class ProbeProgress:
    """How far a round of probes is; stored as JSON.

    Attributes:
        after: number of the last page probed, 0: a new round begins.
        began_at: when the round began, Unix seconds.
        urgent: the round makes good a gap: it does not wait as long as others.
        titles: how many titles one request may name.
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
        """Return what a stored form says; one that cannot be read is the start of a round."""
        try:
            after, began_at, urgent, titles = json.loads(text or "")
            return cls(int(after), float(began_at), bool(urgent), max(int(titles), 1))
        except (ValueError, TypeError):
            return cls(urgent=True)
