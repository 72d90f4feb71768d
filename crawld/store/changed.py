"""Which tables were changed: whoever looks for new rows has nothing to read while none came.

Store functions note the tables that somebody waits for (`Table`) on the connection of the writer;
`Database` counts them after the commit. A transaction that is undone may count nevertheless: a look
too many finds nothing. On other connections nothing is noted.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, TypeAlias
from weakref import WeakKeyDictionary

import apsw

Table: TypeAlias = Literal["event", "hint_source", "seen_found", "version"]

_NOTED: Final[WeakKeyDictionary[apsw.Connection, Counter[Table]]] = WeakKeyDictionary()


def begin(connection: apsw.Connection) -> None:
    """Let changes of a connection be noted from now on."""
    _NOTED[connection] = Counter()


def note(connection: apsw.Connection, table: Table) -> None:
    """Note that a row of a table was added or changed."""
    noted = _NOTED.get(connection)
    if noted is not None:
        noted[table] += 1


def take(connection: apsw.Connection) -> Counter[Table]:
    """Return how many rows were noted since the last call."""
    noted = _NOTED.get(connection)
    if not noted:
        return Counter()
    _NOTED[connection] = Counter()
    return noted
