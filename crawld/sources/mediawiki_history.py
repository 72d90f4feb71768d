"""Reads page histories of a MediaWiki: the page of a title, its revisions, its log.

Revisions come newest first, up to 500 per request for one page; a request for several titles has
only the newest revision of each. A title that redirects shows the text of its target, so it has the
changes of the target. Neither ordered revision ids nor unique times are assumed. A row that is not
a revision (no id or no time) is counted and skipped.

Source: MediaWiki, API:Revisions, API:Info, API:Logevents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_rows import flag_of, rows_of, text_of, timestamp_of

MAX_REDIRECTS = 10
"""Redirects from a title to the page it shows; wikis resolve two or three."""

REVERT_TAGS = frozenset({"mw-rollback", "mw-undo", "mw-manual-revert"})
"""Tags with which a wiki marks an edit that restored an earlier text."""

RevisionKind = Literal["null", "revert"]
LogKind = Literal["deletion", "restoration", "move"]

_PROPERTIES = "ids|timestamp|size|sha1|tags"


@dataclass(frozen=True, slots=True)
class WikiRevision:
    """One revision of a page.

    Attributes:
        revision_id: the wiki's number.
        at: Unix seconds, whole.
        size_bytes: size of its text.
        digest: the first 8 bytes of the SHA-1 of its text, signed; None if it is hidden.
        kind: `revert` if the wiki marks it so, else None; see `revision_kinds`.
    """

    revision_id: int
    at: float
    size_bytes: int | None
    digest: int | None
    kind: RevisionKind | None = None


@dataclass(frozen=True, slots=True)
class PageInfo:
    """Information of a wiki about a page.

    Attributes:
        title: its title.
        number: its page id; None if there is no such page.
        is_shared: whether it is a file of a shared repository: shown, but not a page of this wiki.
        refused: why the title cannot be a page; else None.
        revisions: newest first.
        unusable: number of revisions that could not be read.
        touched_at: when its rendering last became outdated, including by a template edit.
    """

    title: str
    number: int | None
    is_shared: bool = False
    refused: str | None = None
    revisions: tuple[WikiRevision, ...] = ()
    unusable: int = 0
    touched_at: float | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of a wiki's log: a page was deleted, restored or moved.

    Attributes:
        log_id: the wiki's number.
        at: Unix seconds.
        kind: kind of action.
        target: the new title of a move.
        leaves_redirect: whether the former title of a move redirects to the new one.
    """

    log_id: int
    at: float
    kind: LogKind
    target: str | None = None
    leaves_redirect: bool = True


# --- requests -----------------------------------------------------------------------------------


def titles_query(titles: Iterable[str]) -> Parameters:
    """Return the request for the pages of some titles, with the newest revision of each."""
    return {
        "prop": "info|revisions",
        "rvprop": _PROPERTIES,
        "redirects": 1,
        "titles": "|".join(titles),
    }


def history_query(number: int, cursor: Parameters | None) -> Parameters:
    """Return the request for a page's revisions, from the newest or from the cursor on."""
    return {
        "prop": "revisions",
        "rvprop": _PROPERTIES,
        "rvlimit": "max",
        "pageids": number,
        **(cursor or {}),
    }


def log_query(title: str) -> Parameters:
    """Return the request for the log of a title."""
    return {
        "list": "logevents",
        "letitle": title,
        "leprop": "ids|type|timestamp|details",
        "lelimit": 50,
    }


# --- responses ----------------------------------------------------------------------------------


def read_titles(response: ApiResponse, titles: Iterable[str]) -> dict[str, PageInfo]:
    """Return the page of each title; titles missing in the response are left out."""
    steps = _steps(response.query)
    pages = {page.title: page for page in map(_page, rows_of(response.query, "pages"))}
    elsewhere = {text_of(row, "title") for row in rows_of(response.query, "interwiki")}
    found = {}
    for title in titles:
        end = title
        for _ in range(MAX_REDIRECTS):
            if end not in steps:
                break
            end = steps[end]
        if end in pages:
            found[title] = pages[end]
        elif end in elsewhere:
            found[title] = PageInfo(end, None, refused="another wiki's page")
    return found


def read_history(response: ApiResponse) -> PageInfo | None:
    """Return the part of a page's history in a response; None if it contains no page."""
    rows = rows_of(response.query, "pages")
    return _page(rows[0]) if len(rows) == 1 else None


def read_log(response: ApiResponse) -> list[LogEntry]:
    """Return the deletions, restorations and moves in a log."""
    rows = rows_of(response.query, "logevents")
    return [entry for row in rows if (entry := read_log_entry(row)) is not None]


def read_log_entry(row: Mapping[str, object]) -> LogEntry | None:
    """Return a row of the log; None if it is no deletion, restoration or move."""
    kind, at, log_id = _log_kind(row), timestamp_of(row), row.get("logid")
    if kind is None or at is None or not isinstance(log_id, int) or not 0 <= log_id < 2**63:
        return None
    found = row.get("params")
    details: Mapping[str, object] = found if isinstance(found, dict) else {}
    target = text_of(details, "target_title") or None
    return LogEntry(log_id, at, kind, target, not flag_of(details, "suppressredirect"))


def revision_kinds(revisions: Sequence[WikiRevision]) -> list[RevisionKind | None]:
    """Return the kind of each revision.

    `null`: nothing, the text is that of the revision before (a move, a protection). `revert`: it
    restored an earlier text. None: a new text, or a hidden one.

    Args:
        revisions: the revisions of one page, in any order.

    Returns:
        Same order and length as `revisions`.
    """
    found: list[RevisionKind | None] = [None] * len(revisions)
    order = sorted(range(len(revisions)), key=lambda i: (revisions[i].at, revisions[i].revision_id))
    seen: set[int] = set()
    before: int | None = None
    for index in order:
        digest = revisions[index].digest
        if digest is None:
            found[index] = revisions[index].kind
        elif digest == before:
            found[index] = "null"
        else:
            found[index] = "revert" if digest in seen else revisions[index].kind
            seen.add(digest)
        before = digest
    return found


def _steps(query: Mapping[str, object]) -> dict[str, str]:
    """Return the titles that the wiki normalized, converted or redirected."""
    steps = {}
    for key in ("normalized", "converted", "redirects"):
        for row in rows_of(query, key):
            start, end = text_of(row, "from"), text_of(row, "to")
            if start and end and start != end:
                steps[start] = end
    return steps


def _page(row: Mapping[str, object]) -> PageInfo:
    title, number = text_of(row, "title"), row.get("pageid")
    if flag_of(row, "invalid"):
        reason = text_of(row, "invalidreason") or "not a title"
        return PageInfo(title, None, refused=reason[:200])
    if flag_of(row, "special"):
        return PageInfo(title, None, refused="a special page")
    if flag_of(row, "missing") or not isinstance(number, int) or not 0 < number < 2**63:
        return PageInfo(title, None, is_shared=flag_of(row, "known"))
    rows = rows_of(row, "revisions")
    revisions = tuple(found for each in rows if (found := _revision(each)) is not None)
    return PageInfo(
        title,
        number,
        revisions=revisions,
        unusable=len(rows) - len(revisions),
        touched_at=timestamp_of(row, "touched"),
    )


def read_revision(row: Mapping[str, object]) -> WikiRevision | None:
    """Return a revision from a row with `revid`, `timestamp`, `size`, `sha1`, `tags`, or None."""
    return _revision(row)


def _revision(row: Mapping[str, object]) -> WikiRevision | None:
    revision_id, at, size = row.get("revid"), timestamp_of(row), row.get("size")
    if not isinstance(revision_id, int) or not 0 < revision_id < 2**63 or at is None:
        return None
    tags = row.get("tags")
    is_revert = isinstance(tags, list) and any(tag in tags for tag in REVERT_TAGS)
    return WikiRevision(
        revision_id,
        at,
        size if isinstance(size, int) and 0 <= size < 2**53 else None,
        _digest(row.get("sha1")),
        "revert" if is_revert else None,
    )


def _digest(sha1: object) -> int | None:
    if not isinstance(sha1, str) or len(sha1) != 40:
        return None
    try:
        return int.from_bytes(bytes.fromhex(sha1)[:8], "big", signed=True)
    except ValueError:
        return None


def _log_kind(row: Mapping[str, object]) -> LogKind | None:
    match row.get("type"), row.get("action"):
        case "delete", "delete" | "delete_redir" | "delete_redir2":
            return "deletion"
        case "delete", "restore":
            return "restoration"
        case "move", _:
            return "move"
    return None
