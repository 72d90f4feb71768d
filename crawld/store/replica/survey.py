"""For measurements: what rests now, and a file that need not outlive them."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from crawld.core.replica.agreement import PageVerdict
from crawld.core.url import server_name


def resting_pages(connection: apsw.Connection) -> list[int]:
    """Return the page_id of every suspended page."""
    rows = connection.execute(
        "SELECT page_id FROM page WHERE state = 'suspended' AND requisite = 0"
    )
    return [page_id for (page_id,) in rows]


def resting_hosts(connection: apsw.Connection) -> dict[int, str]:
    """Return the name of the server with the twin of every suspended page, by page_id."""
    rows = connection.execute(
        "SELECT own.page_id, twin.url FROM page_twin AS own JOIN page USING (page_id)"
        " JOIN page AS twin ON twin.page_id = own.twin_id"
        " WHERE page.state = 'suspended' AND page.requisite = 0"
    )
    return {page_id: server_name(url) for page_id, url in rows}


def spare_disk(connection: apsw.Connection) -> None:
    """Let the transactions of a file that is deleted soon wait for no disk."""
    connection.execute("PRAGMA synchronous = OFF")


class TwinStanding(NamedTuple):
    """What is stored of a page of a replica.

    Attributes:
        rests: whether it rests.
        is_released: whether it was resumed to be compared.
        turns: how often it began to differ.
    """

    verdict: PageVerdict
    rests: bool
    is_released: bool
    turns: int


def twin_standings(connection: apsw.Connection) -> dict[int, TwinStanding]:
    """Return what is stored of every compared page, by page_id."""
    rows = connection.execute(
        "SELECT page_id, verdict, state = 'suspended', released_at IS NOT NULL, turns"
        " FROM page_twin JOIN page USING (page_id)"
    )
    return {
        page_id: TwinStanding(PageVerdict(verdict), bool(rests), bool(released), turns)
        for page_id, verdict, rests, released, turns in rows
    }
