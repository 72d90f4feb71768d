"""Counters of pages by state, on the rows of site and host.

Counting a million page rows takes a second; reading these columns takes none. Rule: code that adds
a page or changes `page.state` or `page.site_id` calls `count_moves` in the same transaction.
Requisites are not counted here (`site.requisite_count`), nor on hosts pages in shared blocks
(`packed_shared`). `doctor` compares the counters with the pages and repairs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from crawld.core.page import PageState
from crawld.store.engine.in_parts import PART_ROWS, InParts, finish

STATES: Final = tuple(PageState)

COLUMNS: Final = {state: f"pages_{state.value}" for state in STATES}

SET: Final = ", ".join(f"{column} = {column} + ?" for column in COLUMNS.values())
"""Assignments that add a step to each counter of a row, in the order of `STATES`."""

_ADD_SITE: Final = f"UPDATE site SET {SET} WHERE site_id = ?"
_ADD_HOST: Final = f"UPDATE host SET {SET} WHERE host_id = ?"

Move = tuple[int, int, PageState | None, PageState | None]
"""site_id, host_id, state before (None: a new page), state after (None: left the site)."""


def steps_of(before: PageState | None, after: PageState | None) -> list[int]:
    """Return the step of each counter for a page that changes its state; see `Move`."""
    steps = [0] * len(STATES)
    for state, step in ((before, -1), (after, 1)):
        if state is not None:
            steps[STATES.index(state)] += step
    return steps


def count_on_site(connection: apsw.Connection, site_id: int, steps: Sequence[int]) -> None:
    """Update the counters of a site alone; those of the host are in the statement of its visit."""
    connection.execute(_ADD_SITE, (*steps, site_id))


def count_discovered(
    connection: apsw.Connection, sites: Iterable[tuple[int, int]], hosts: Iterable[tuple[int, int]]
) -> None:
    """Add numbers of never-visited pages to the counters of sites and hosts, each by its id."""
    for table, counts in (("site", sites), ("host", hosts)):
        connection.executemany(
            f"UPDATE {table} SET pages_discovered = pages_discovered + ?2 WHERE {table}_id = ?1",
            counts,
        )


def count_visit(
    connection: apsw.Connection, move: tuple[int, int, PageState, PageState], *, here: bool
) -> list[int]:
    """Update the counters for a visited page; return the steps that its host's row still gets.

    Args:
        move: site_id, host_id, state before and after.
        here: whether the row of that host is updated for the visit anyway.
    """
    site_id, _, before, after = move
    if before is after:
        return []
    if not here:
        count_moves(connection, [move])
        return []
    steps = steps_of(before, after)
    count_on_site(connection, site_id, steps)
    return steps


def count_moves(connection: apsw.Connection, moves: Iterable[Move]) -> None:
    """Update the counters for pages that were added or changed their state or site."""
    finish(count_moves_in_parts(connection, moves))


def count_moves_in_parts(connection: apsw.Connection, moves: Iterable[Move]) -> InParts[None]:
    """Do the same as `count_moves`, in parts."""
    sites: dict[int, list[int]] = defaultdict(lambda: [0] * len(STATES))
    hosts: dict[int, list[int]] = defaultdict(lambda: [0] * len(STATES))
    for site_id, host_id, before, after in moves:
        if before is after:
            continue
        for state, step in ((before, -1), (after, 1)):
            if state is not None:
                position = STATES.index(state)
                sites[site_id][position] += step
                hosts[host_id][position] += step
    for site_id, steps in sites.items():
        connection.execute(_ADD_SITE, (*steps, site_id))
    for done, (host_id, steps) in enumerate(hosts.items(), 1):
        connection.execute(_ADD_HOST, (*steps, host_id))
        if done % PART_ROWS == 0:
            yield None
