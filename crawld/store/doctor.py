"""Check the file for faults, report the space of its tables, repair what can be derived.

Derived data can be repaired: counters, indexes, a page's reference to its last copy, bodies that no
version needs, states that contradict their visits. Other faults (a damaged page, a dangling key,
deltas without a base) need a backup; the finding says so.

Each check is one query that counts wrong rows; a new invariant of the schema is one more row of
`CHECKS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from crawld.store.engine.connection import CORRUPTION_ERRORS, open_connection, store_error
from crawld.store.engine.lock import DatabaseLock
from crawld.store.frontier import packed_shared
from crawld.store.frontier.page_counts import COLUMNS

FAULTS_SHOWN: Final = 20
"""The most lines of `integrity_check` that are listed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of the file.

    Attributes:
        kind: a word for programs.
        text: a sentence for people.
        count: rows, pages or keys affected.
        repairable: whether `repair` can fix it.
    """

    kind: str
    text: str
    count: int
    repairable: bool


class TableSpace(NamedTuple):
    """The space of a table, its indexes included."""

    table: str
    rows: int
    bytes: int
    unused_bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check; `findings` is empty for a healthy file.

    Attributes:
        space: the space of each table, the largest first.
        free_bytes: unused pages of the file.
    """

    findings: tuple[Finding, ...]
    space: tuple[TableSpace, ...]
    free_bytes: int


class _Check(NamedTuple):
    kind: str
    text: str
    counting: str
    repair: str | None


_COUNTED: Final = """
SELECT site_id, host_id, state, count(*) AS pages FROM page WHERE requisite = 0
GROUP BY site_id, host_id, state
UNION ALL SELECT site_id, host_id, 'discovered', pages FROM packed_block
UNION ALL SELECT site_id, host_id, 'discovered', -entries FROM packed_void
"""

_SHARED: Final = "UNION ALL SELECT site_id, NULL, 'discovered', pages FROM temp.shared_pages"
"""The counters of hosts leave these out (`packed_shared`)."""


def _counter_check(table: str) -> _Check:
    sums = ", ".join(
        f"ifnull(sum(pages) FILTER (WHERE state = '{state.value}'), 0) AS {column}"
        for state, column in COLUMNS.items()
    )
    counted = _COUNTED + (_SHARED if table == "site" else "")
    true = f"(SELECT {table}_id AS id, {sums} FROM ({counted}) GROUP BY {table}_id) AS truth"
    differs = " OR ".join(
        f"{table}.{column} <> ifnull(truth.{column}, 0)" for column in COLUMNS.values()
    )
    columns = ", ".join(COLUMNS.values())
    values = ", ".join(f"ifnull(truth.{column}, 0)" for column in COLUMNS.values())
    joined = f"{table} LEFT JOIN {true} ON truth.id = {table}.{table}_id WHERE {differs}"
    return _Check(
        f"{table}_counters",
        f"the page counters of a {table} differ from its pages",
        f"SELECT count(*) FROM {joined}",
        f"UPDATE {table} SET ({columns}) = (SELECT {values} FROM (SELECT 1) LEFT JOIN {true}"
        f" ON truth.id = {table}.{table}_id)"
        f" WHERE {table}_id IN (SELECT {table}.{table}_id FROM {joined})",
    )


_REQUISITES: Final = "SELECT count(*) FROM page WHERE page.site_id = site.site_id AND requisite = 1"

_NEEDED: Final = """
WITH RECURSIVE needed (body_id) AS (
    SELECT body_id FROM version
    UNION
    SELECT base_id FROM needed CROSS JOIN body USING (body_id) WHERE base_id IS NOT NULL
)
SELECT body_id FROM needed
"""

# UNION, not UNION ALL, so that it ends on a cycle of deltas, whose members are never reached.
_READABLE: Final = """
WITH RECURSIVE readable (body_id) AS (
    SELECT body_id FROM body WHERE base_id IS NULL
    UNION
    SELECT delta.body_id FROM readable CROSS JOIN body AS delta ON delta.base_id = readable.body_id
)
SELECT body_id FROM readable
"""

# In this order: states first, since the counters follow from them.
CHECKS: Final = (
    _Check(
        "visited_never",
        "a page is marked visited or gone and had no visit",
        "SELECT count(*) FROM page WHERE state IN ('visited', 'gone') AND last_visit_at IS NULL",
        "UPDATE page SET state = 'discovered'"
        " WHERE state IN ('visited', 'gone') AND last_visit_at IS NULL",
    ),
    _Check(
        "discovered_visited",
        "a page is marked unvisited and had a visit",
        "SELECT count(*) FROM page WHERE state = 'discovered' AND last_visit_at IS NOT NULL",
        "UPDATE page SET state = 'visited'"
        " WHERE state = 'discovered' AND last_visit_at IS NOT NULL",
    ),
    _Check(
        "dangling_version",
        "a page refers to a last copy that does not exist",
        "SELECT count(*) FROM page WHERE version_id IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM version WHERE version.version_id = page.version_id"
        " AND version.page_id = page.page_id)",
        # without validators and digest the next visit fetches the whole page
        "UPDATE page SET etag = NULL, last_modified = NULL, digest = NULL, version_id ="
        " (SELECT version_id FROM version WHERE version.page_id = page.page_id"
        " ORDER BY visited_at DESC LIMIT 1)"
        " WHERE version_id IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM version WHERE version.version_id = page.version_id"
        " AND version.page_id = page.page_id)",
    ),
    _Check(
        "orphaned_bodies",
        "a body is needed by no version, nor by a delta of one",
        f"SELECT count(*) FROM body WHERE body_id NOT IN ({_NEEDED})",
        f"DELETE FROM body WHERE body_id NOT IN ({_NEEDED})",
    ),
    _Check(
        "unreadable_deltas",
        "a delta has no base that is stored whole",
        f"SELECT count(*) FROM body WHERE body_id NOT IN ({_READABLE})",
        None,
    ),
    _Check(
        "requisite_counters",
        "the requisite counter of a site differs from its pages",
        f"SELECT count(*) FROM site WHERE requisite_count <> ({_REQUISITES})",
        f"UPDATE site SET requisite_count = ({_REQUISITES})",
    ),
    _counter_check("site"),
    _counter_check("host"),
)


def examine(path: Path) -> Report:
    """Check every page and row of a file; reads only, also beside a running daemon.

    Raises:
        CorruptDatabaseError: the file is so damaged that it cannot be read at all.
        StoreError: the file is missing, foreign or not readable.
    """
    with closing(open_connection(path, read_only=True)) as connection:
        try:
            connection.execute("BEGIN")
            findings = _damage(connection)
            if not findings:
                findings = _dangling(connection) + _contradictions(connection)
                return Report(tuple(findings), _space(connection), _free_bytes(connection))
            return Report(tuple(findings), (), 0)
        except CORRUPTION_ERRORS as error:
            raise store_error(error, path) from error


def repair(path: Path, progress: Callable[[str], None] = lambda line: None) -> Report:
    """Repair derived data; the database must not be in use.

    Args:
        progress: called with a line of text before each step.

    Returns:
        The findings after the repair.

    Raises:
        DatabaseInUseError: a process has the database open.
        CorruptDatabaseError: more than its indexes is damaged.
    """
    with DatabaseLock.acquire(path):
        with closing(open_connection(path)) as connection:
            try:
                _repair(connection, progress)
            except CORRUPTION_ERRORS as error:
                raise store_error(error, path) from error
        return examine(path)


def _repair(connection: apsw.Connection, progress: Callable[[str], None]) -> None:
    if _damage(connection):
        progress("rebuild the indexes")
        connection.execute("REINDEX")
    _count_shared(connection)
    for check in CHECKS:
        count = connection.execute(check.counting).get
        if count and check.repair is not None:
            progress(f"{check.kind}: {count}")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(check.repair)
            connection.execute("COMMIT")
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _damage(connection: apsw.Connection) -> list[Finding]:
    lines = [str(line) for (line,) in connection.execute(f"PRAGMA integrity_check({FAULTS_SHOWN})")]
    if lines == ["ok"]:
        return []
    # an index can be rebuilt from its table; nothing else can
    indexes_only = all("index" in line for line in lines)
    return [Finding("damaged", line, 1, indexes_only) for line in lines]


def _dangling(connection: apsw.Connection) -> list[Finding]:
    broken: dict[tuple[str, str], int] = {}
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        broken[table, parent] = broken.get((table, parent), 0) + 1
    return [
        Finding("dangling_key", f"rows of {table} refer to a missing row of {parent}", n, False)
        for (table, parent), n in broken.items()
    ]


def _contradictions(connection: apsw.Connection) -> list[Finding]:
    return [
        Finding(check.kind, check.text, count, check.repair is not None)
        for check, count in contradictions(connection)
    ]


def contradictions(connection: apsw.Connection) -> list[tuple[_Check, int]]:
    """Return the checks that find wrong rows, and how many."""
    _count_shared(connection)
    counted = [(check, connection.execute(check.counting).get) for check in CHECKS]
    return [(check, count) for check, count in counted if count]


def _count_shared(connection: apsw.Connection) -> None:
    """Fill the temporary table of pages in shared blocks, which queries cannot read."""
    connection.execute("DROP TABLE IF EXISTS temp.shared_pages")
    connection.execute("CREATE TEMP TABLE shared_pages (site_id INTEGER, pages INTEGER)")
    pages: Counter[int] = Counter()
    for queue, count in packed_shared.all_queues(connection):
        pages[queue.site_id] += count
    connection.executemany("INSERT INTO temp.shared_pages VALUES (?, ?)", pages.items())


def _space(connection: apsw.Connection) -> tuple[TableSpace, ...]:
    rows = connection.execute(
        "SELECT tbl_name, sum(pgsize), sum(unused)"
        " FROM dbstat('main', 1) AS tree JOIN sqlite_schema AS part ON part.name = tree.name"
        " GROUP BY tbl_name ORDER BY sum(pgsize) DESC"
    )
    return tuple(
        TableSpace(table, connection.execute(f'SELECT count(*) FROM "{table}"').get, used, unused)
        for table, used, unused in rows
    )


def _free_bytes(connection: apsw.Connection) -> int:
    pages: int = connection.execute("PRAGMA freelist_count").get
    return pages * int(connection.execute("PRAGMA page_size").get)
