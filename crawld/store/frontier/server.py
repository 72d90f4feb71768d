"""Servers: a host at the default ports of http and https, or at another port.

A host name has one row, one politeness and one budget whatever its ports, but what answers at
another port may be another site, or a copy of one. So replicas are servers. The number of a server
is that of its host, or, at another port, that of a row of `port_server`, which is no host's: they
begin at `FIRST_NUMBER`. Both fit into 31 bits.

The functions that return SQL take the number of a server as an expression: `?1`, or a column with
the name of its table.
"""

from __future__ import annotations

import array
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.url import other_port, server_name

FIRST_NUMBER: Final = 2**30
"""Above all numbers of hosts; below 2**31, since a pair of numbers is one 64-bit key."""


class Server(NamedTuple):
    """A server, with its host; the name has the port if it is no default one."""

    server_id: int
    name: str
    host_id: int


def ensure(connection: apsw.Connection, host_id: int, origin: str) -> int | None:
    """Return the row of the port of an origin, which is added if it is new.

    Returns:
        None for a default port: the server has the number of its host.
    """
    url = f"{origin}/"
    if other_port(url) is None:
        return None
    name = server_name(url)
    known = connection.execute("SELECT server_id FROM port_server WHERE name = ?", (name,)).get
    if known is not None:
        return int(known)
    connection.execute(
        "INSERT INTO port_server (server_id, host_id, name)"
        " SELECT ifnull(max(server_id), ?) + 1, ?, ? FROM port_server",
        (FIRST_NUMBER, host_id, name),
    )
    return connection.last_insert_rowid()


_BY_NAME: Final = """
SELECT server_id, name, host_id FROM port_server WHERE name = ?1
UNION ALL SELECT host_id, host, host_id FROM host WHERE host = ?1
"""

_AT_PORTS: Final = """
SELECT server_id, name, host_id FROM port_server
WHERE host_id = ?1 AND NOT EXISTS (SELECT 1 FROM origin WHERE host_id = ?1 AND server_id IS NULL)
LIMIT 2
"""


def of_url(connection: apsw.Connection, url: str) -> Server | None:
    """Return the server of a canonical URL, None if it is not known."""
    return _by_own_name(connection, server_name(url))


def _by_own_name(connection: apsw.Connection, name: str) -> Server | None:
    row: Any = connection.execute(_BY_NAME, (name,)).fetchone()
    return Server(*row) if row else None


def by_name(connection: apsw.Connection, name: str) -> Server | None:
    """Return the server that an operator names, None if it is not known.

    The name of a host means its only server, too, if that is at another port.
    """
    found = _by_own_name(connection, name)
    if found is None:
        return None
    others: list[Any] = connection.execute(_AT_PORTS, (found.server_id,)).fetchall()
    return Server(*others[0]) if len(others) == 1 else found


def names(connection: apsw.Connection, server_ids: Collection[int]) -> dict[int, str]:
    """Return the names of some servers, fetched or not."""
    if not server_ids:
        return {}
    wanted = array.array("q", sorted(server_ids))
    found: dict[int, str] = {}
    for table, key, name in (("host", "host_id", "host"), ("port_server", "server_id", "name")):
        rows: Any = connection.execute(
            f"SELECT {key}, {name} FROM carray(?) AS wanted CROSS JOIN {table}"
            f" ON {table}.{key} = wanted.value",
            (apsw.carray(wanted),),
        )
        found.update(rows)
    return found


def is_alone(host_id: str) -> str:
    """Return the SQL condition that a host has one server."""
    ports = f"FROM port_server WHERE port_server.host_id = {host_id}"
    one = f"(SELECT count(*) {ports}) = 1 AND NOT EXISTS ({_default_of(host_id)})"
    return f"(NOT EXISTS (SELECT 1 {ports}) OR {one})"


def has_default(host_id: str) -> str:
    """Return the SQL condition that a host with a visited page answers at a default port."""
    # Most hosts have no other port, which a small index says; rows of origins have a robots.txt.
    ports = f"SELECT 1 FROM port_server WHERE port_server.host_id = {host_id}"
    return f"(NOT EXISTS ({ports}) OR EXISTS ({_default_of(host_id)}))"


def _default_of(host_id: str) -> str:
    return f"SELECT 1 FROM origin WHERE origin.host_id = {host_id} AND server_id IS NULL"


def of_page(page: str = "page") -> str:
    """Return SQL of the server that a page is on."""
    return (
        "ifnull((SELECT server_id FROM origin INDEXED BY origin_server WHERE server_id IS NOT NULL"
        f" AND origin.origin_id = {page}.origin_id), {page}.host_id)"
    )


def host_of(server: str) -> str:
    """Return SQL of the host_id of a server."""
    row = f"SELECT host_id FROM port_server WHERE port_server.server_id = {server}"
    return f"ifnull(({row}), {server})"


def has_page(server: str, page: str = "page") -> str:
    """Return the SQL condition that a page is on a server; the indexes by host are used."""
    return f"{page}.host_id = {host_of(server)} AND {of_page(page)} = {server}"
