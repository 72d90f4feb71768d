"""Small facts about the file, and the totals a status shows."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from crawld.core.page import PageState
from crawld.store import frontier


def get(connection: apsw.Connection, key: str) -> str | None:
    """Return a fact, None if it was never noted."""
    value: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return value


def put(connection: apsw.Connection, key: str, value: str) -> None:
    """Note a fact in place of the former one."""
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value",
        (key, value),
    )


@dataclass(frozen=True, slots=True)
class Totals:
    """What the whole file holds.

    Attributes:
        pages: pages in each state.
        sites: sites in service.
        hosts: known hosts.
        visits: attempts ever stored, thinned-out ones included.
        changes: visits that found a change.
        failures: visits that failed.
        wire_bytes: body bytes ever received.
        versions: number of the newest stored copy.
        file_bytes: size of the database without its log.
        free_bytes: of these, unused.
    """

    pages: dict[PageState, int]
    sites: int
    hosts: int
    visits: int
    changes: int
    failures: int
    wire_bytes: int
    versions: int
    file_bytes: int
    free_bytes: int


def totals(connection: apsw.Connection) -> Totals:
    """Return the totals; one pass over the hosts, never over pages or visits."""
    hosts = connection.execute(
        "SELECT count(*), ifnull(sum(visit_count), 0), ifnull(sum(change_count), 0),"
        " ifnull(sum(failure_count), 0), ifnull(sum(wire_bytes), 0) FROM host"
    ).get
    sites = connection.execute("SELECT count(*) FROM site WHERE definition IS NOT NULL").get
    versions = connection.execute("SELECT ifnull(max(version_id), 0) FROM version").get
    page_bytes = connection.execute("PRAGMA page_size").get
    return Totals(
        pages=frontier.counts(connection),
        sites=sites,
        hosts=hosts[0],
        visits=hosts[1],
        changes=hosts[2],
        failures=hosts[3],
        wire_bytes=hosts[4],
        versions=versions,
        file_bytes=connection.execute("PRAGMA page_count").get * page_bytes,
        free_bytes=connection.execute("PRAGMA freelist_count").get * page_bytes,
    )
