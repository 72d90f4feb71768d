"""Migrate the tables of a file with numbered SQL files.

`PRAGMA user_version` is the number of the last file applied, `PRAGMA application_id` marks a crawld
file. In order: the file of another program is refused; a newer one is refused (no downgrade); a
file with data is copied (`VACUUM INTO`, dated) before its first pending migration; then each SQL
file runs in one transaction together with both pragmas, so that it is applied whole or not at all.

An authorizer denies COMMIT, ROLLBACK, ATTACH and DETACH inside a file: a stray COMMIT would save
half of it. PRAGMA is allowed: `ALTER TABLE ADD COLUMN` on a STRICT table runs one itself.
`foreign_keys` is off before the transaction (inside it the pragma does nothing), and the keys are
checked before the COMMIT.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import apsw

from crawld.errors import MigrationError, NewerDatabaseError, StoreError
from crawld.store.engine.connection import APPLICATION_ID, open_connection, store_error
from crawld.store.engine.new_file import discard, partial_of, publish

FILE_NAME: Final = re.compile(r"\d{4}_[a-z0-9_]+\.sql")

DENIED: Final = frozenset({apsw.SQLITE_TRANSACTION, apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH})


@dataclass(frozen=True, slots=True)
class Migration:
    """One SQL file.

    Attributes:
        number: position in the order, from 1.
    """

    number: int
    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """Which migrations a file has.

    Attributes:
        version: number of the last migration applied, 0 for an empty file.
        newest: number of the newest migration this program knows.
        pending: names of the migrations still to apply.
    """

    version: int
    newest: int
    pending: tuple[str, ...]


def migrations(folder: Traversable | None = None) -> list[Migration]:
    """Return the migrations in order.

    Args:
        folder: where the SQL files lie; by default those of the package or of the checkout.

    Raises:
        MigrationError: the numbers do not run from 1 without a gap.
    """
    found = sorted(
        (
            Migration(int(entry.name[:4]), entry.name, entry.read_text(encoding="utf-8"))
            for entry in (folder or _folder()).iterdir()
            if FILE_NAME.fullmatch(entry.name)
        ),
        key=lambda migration: migration.number,
    )
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        names = ", ".join(migration.name for migration in found) or "none"
        raise MigrationError(
            f"the migrations are not numbered from 0001 without gaps: {names}",
            hint="install crawld again",
        )
    return found


def _folder() -> Traversable:
    """Return the migrations of the installed package, or those of the checkout."""
    packaged = importlib.resources.files("crawld") / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "migrations"


def status(path: Path, *, folder: Traversable | None = None) -> MigrationStatus:
    """Return which migrations a file has, without changing it.

    Raises:
        StoreError: the file is missing, foreign, newer or damaged.
    """
    known = migrations(folder)
    if not path.exists():
        return MigrationStatus(0, len(known), tuple(migration.name for migration in known))
    connection = open_connection(path, read_only=True)
    try:
        return _status(connection, path, known)
    except apsw.Error as error:
        raise store_error(error, path) from error
    finally:
        connection.close()


def require_current(path: Path) -> None:
    """Refuse a file whose tables this program does not know.

    Raises:
        StoreError: migrations are pending, or the file is foreign, newer or damaged.
    """
    if pending := status(path).pending:
        raise StoreError(
            f"{path} was written by an older crawld ({len(pending)} migrations pending)",
            hint=f"migrate it: crawld migrate --db {path}",
        )


def migrate(
    path: Path,
    progress: Callable[[str], None] = lambda line: None,
    *,
    folder: Traversable | None = None,
    upto: int | None = None,
) -> MigrationStatus:
    """Apply pending migrations; the caller holds the lock of the database.

    Args:
        path: the database; made if missing.
        progress: called with a line of text before each step.
        folder: where the SQL files lie.
        upto: number of the last one to apply, for a file as an older program left it; None: all.

    Returns:
        The status before.

    Raises:
        MigrationError: a file failed; the database is as it was before that file.
        StoreError: the file is foreign, newer, damaged or not writable.
    """
    known = migrations(folder)
    connection = open_connection(path)
    try:
        before = _status(connection, path, known)
        if before.pending and before.version:
            _copy(connection, path, before.version, progress)
        if not before.version:
            # A new file has no data to lose: after a power cut it is empty or half made, and the
            # rest is applied. It is synced once, when this connection closes.
            connection.execute("PRAGMA synchronous = NORMAL")
        for migration in known[before.version : upto]:
            progress(f"apply {migration.name}")
            _apply(connection, migration)
        return before
    except apsw.Error as error:
        raise store_error(error, path) from error
    finally:
        connection.close()


def _status(connection: apsw.Connection, path: Path, known: list[Migration]) -> MigrationStatus:
    version = int(connection.execute("PRAGMA user_version").get)
    if version > len(known):
        raise NewerDatabaseError(
            f"{path} was written by a newer crawld (schema {version}, this one knows {len(known)})",
            hint="run the newer crawld again; its pre-migration copy lies beside the file",
        )
    return MigrationStatus(
        version, len(known), tuple(migration.name for migration in known[version:])
    )


def _copy(
    connection: apsw.Connection, path: Path, version: int, progress: Callable[[str], None]
) -> None:
    """Write a dated copy beside the file, for the operator to delete."""
    undated = path.with_name(f"{path.name}.schema-{version:04d}")
    # A process that was killed after its copy may be followed by another within the second.
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    copy = undated.with_name(f"{undated.name}.{stamp}")
    progress(f"copy to {copy}")
    partial = partial_of(undated)
    try:
        connection.execute("VACUUM INTO ?", (str(partial),))
        publish(partial, copy)
    finally:
        discard(partial)


def _apply(connection: apsw.Connection, migration: Migration) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        _run_statements(connection, migration)
        _check_foreign_keys(connection, migration)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {migration.number}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        connection.execute("PRAGMA foreign_keys = ON")


def _run_statements(connection: apsw.Connection, migration: Migration) -> None:
    connection.authorizer = _authorize
    try:
        for line, statement in split_statements(migration.sql):
            try:
                connection.execute(statement)
            except (apsw.SQLError, apsw.AuthError, apsw.ConstraintError) as error:
                raise MigrationError(
                    f"migration {migration.name}, line {line}: {error}: {_head(statement)}",
                    hint="the database is as it was before; report this with the line above",
                ) from error
    finally:
        connection.authorizer = None


def _authorize(action: int, *_: str | None) -> int:
    return apsw.SQLITE_DENY if action in DENIED else apsw.SQLITE_OK


def split_statements(sql: str) -> Iterator[tuple[int, str]]:
    """Yield the statements of a file, each with the line it starts on.

    A statement ends with the line that completes it, so that trigger bodies stay whole.
    """
    buffer, start = "", 1
    for number, line in enumerate(sql.splitlines(keepends=True), 1):
        if not buffer and not line.split("--")[0].strip():
            continue
        start = start if buffer else number
        buffer += line
        if apsw.complete(buffer):
            yield start, buffer
            buffer = ""
    if buffer.strip():
        yield start, buffer


def _head(statement: str) -> str:
    """Return the start of a statement, on one line."""
    text = " ".join(statement.split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def _check_foreign_keys(connection: apsw.Connection, migration: Migration) -> None:
    dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
    if dangling:
        table, rowid, parent = dangling[:3]
        raise MigrationError(
            f"migration {migration.name} leaves a dangling key: "
            f"row {rowid} of {table} names no row of {parent}",
            hint="the database is as it was before; report this with the line above",
        )
