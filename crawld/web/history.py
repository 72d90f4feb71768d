"""The history of a page: the list of its versions, and the difference between two.

    /versions/https/HOST/PATH             versions, newest first
    /versions/@WHEN/https/HOST/PATH       versions before a time
    /diff/OLD..NEW/https/HOST/PATH        difference without noise
    /diff/OLD..NEW/raw/https/HOST/PATH    difference with noise
    /diff?url=…&old=…&new=…               redirects there; target of the form in the list

Noise is content that changes by itself; the daemon has learned the rules for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import apsw

from crawld.core.content.analysis import read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.page_diff import diff_pages
from crawld.core.content.tree_memory import comparison_bytes
from crawld.core.content.words import Hunk
from crawld.marks import NO_MARKS, Marks
from crawld.store.changes import volatile
from crawld.store.frontier import removal
from crawld.store.mirror.lookup import PageLookup
from crawld.store.mirror.titles import TitleCleaner
from crawld.store.versions import version
from crawld.store.versions.version import VersionRow
from crawld.web.address import MirrorAddress, mirror_path, parse_address
from crawld.web.large_pages import INLINE_BYTES
from crawld.web.mirror import find_page, redirect
from crawld.web.pages import (
    error_page,
    missing_page,
    not_an_address,
    render_page,
    withheld_page,
)
from crawld.web.reply import Postponed, Reply

COPIES_PER_LIST: Final = 200
MAX_DIFF_CHARACTERS: Final = 2_000_000
"""Characters of a difference that are shown; browsers are slow with more."""

PIECE_CHARACTERS: Final = 20
"""What the markup of a piece counts."""

_DIFF = re.compile(r"/([0-9]{1,18})\.\.([0-9]{1,18})(/raw)?(/.*)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,18}")


def list_copies(connection: apsw.Connection, target: str) -> Reply:
    """Return the list of versions of a page; `target` is the rest after `/versions`."""
    address = parse_address(target)
    page = find_page(connection, address.url) if address is not None else None
    if address is None or page is None:
        return _not_found(address)
    page = _titled(connection, page)
    before = math.inf if address.selector.at is None else address.selector.at
    rows = version.list_versions(connection, page.page_id, before=before, limit=COPIES_PER_LIST + 1)
    listed = rows[:COPIES_PER_LIST]
    return render_page(
        "versions.html",
        page=page,
        pairs=list(zip(listed, [*rows[1:], None], strict=False)),
        later=before < math.inf,
        older_at=listed[-1].visited_at if len(rows) > COPIES_PER_LIST else None,
    )


def show_diff(
    connection: apsw.Connection,
    target: str,
    *,
    may_postpone: bool = False,
    marks: Marks = NO_MARKS,
) -> Reply | Postponed:
    """Return the difference of two versions of a page; `target` is the rest after `/diff`."""
    match = _DIFF.fullmatch(target)
    address = parse_address(match[4]) if match else None
    page = find_page(connection, address.url) if address is not None else None
    if match is None or address is None or page is None:
        return _not_found(address)
    if removal.is_withheld(connection, page.page_id):
        return withheld_page(address, None)
    old, new = (version.get(connection, int(match[i])) for i in (1, 2))
    if old is None or new is None or {old.page_id, new.page_id} != {page.page_id}:
        return error_page(404, "No such version", "The page has no version with this number.")
    size_bytes = old.size_bytes + new.size_bytes
    if may_postpone and size_bytes > INLINE_BYTES:
        return Postponed(memory_bytes=comparison_bytes(old.size_bytes, new.size_bytes))
    raw = match[3] is not None
    rules = () if raw else volatile.rules_for(connection, page.page_id)
    with marks.under(page.url):
        found = diff_pages(_blocks(connection, old), _blocks(connection, new), rules)
    return render_page(
        "diff.html",
        page=_titled(connection, page),
        old=old,
        new=new,
        raw=raw,
        found=found,
        hunks=_shown(found.hunks),
        earlier=version.last_before(connection, old),
        later=version.next_after(connection, new),
    )


def _shown(hunks: Sequence[Hunk]) -> list[Hunk]:
    """Return the first hunks, as many as a page can show."""
    shown: list[Hunk] = []
    left = MAX_DIFF_CHARACTERS
    for hunk in hunks:
        pieces = []
        for piece in hunk.pieces:
            pieces.append(replace(piece, text=piece.text[:left]))
            left -= len(piece.text) + PIECE_CHARACTERS
            if left <= 0:
                break
        shown.append(replace(hunk, pieces=tuple(pieces)))
        if left <= 0:
            break
    return shown


def redirect_to_diff(connection: apsw.Connection, parameters: Mapping[str, str]) -> Reply:
    """Return the redirect to the difference that the form selects, older version first."""
    address = parse_address(mirror_path(parameters.get("url", "")))
    numbers = [parameters.get(name, "") for name in ("old", "new")]
    chosen = [
        row
        for number in numbers
        if _NUMBER.fullmatch(number) and (row := version.get(connection, int(number)))
    ]
    if address is None or len(chosen) < len(numbers):
        return error_page(404, "No such version", "Select two versions of a page.")
    # IDs are not in order of time: versions imported from an archive get higher IDs than newer
    # ones.
    old, new = sorted(chosen, key=lambda row: (row.visited_at, row.version_id))
    return redirect(f"/diff/{old.version_id}..{new.version_id}{mirror_path(address.url)}")


def _blocks(connection: apsw.Connection, row: VersionRow) -> Blocks:
    copy = version.read_copy(connection, row.version_id)
    return read_blocks(*copy) if copy else read_blocks(b"")


def _titled(connection: apsw.Connection, page: PageLookup) -> PageLookup:
    """Return a page whose title lacks the name of its site."""
    return page._replace(title=TitleCleaner(connection).clean_of(page.page_id, page.title))


def _not_found(address: MirrorAddress | None) -> Reply:
    return not_an_address() if address is None else missing_page(address)
