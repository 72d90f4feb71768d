"""Noise rules: blocks of a page, or of all pages of a host, that change by themselves.

The rules are opaque here (`core/content/volatile.py` reads them); few pages have any.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw


class Template(NamedTuple):
    """The rules of a host, and how many extra fetches were spent on learning them."""

    rules: bytes = b""
    confirmations: int = 0


def of_page(connection: apsw.Connection, page_id: int) -> bytes:
    """Return the rules of a page, empty where it has none."""
    rules: bytes | None = connection.execute(
        "SELECT rules FROM volatile WHERE page_id = ?", (page_id,)
    ).get
    return rules or b""


def put_of_page(connection: apsw.Connection, page_id: int, rules: bytes) -> None:
    """Store the rules of a page; empty ones delete the row."""
    if not rules:
        connection.execute("DELETE FROM volatile WHERE page_id = ?", (page_id,))
        return
    connection.execute(
        "INSERT INTO volatile (page_id, rules) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET rules = excluded.rules",
        (page_id, rules),
    )


def of_host(connection: apsw.Connection, host_id: int) -> Template:
    """Return the rules of a host, empty if it has none yet."""
    row = connection.execute(
        "SELECT rules, confirmations FROM template WHERE host_id = ?", (host_id,)
    ).fetchone()
    return Template(*row) if row else Template()


def rules_for(connection: apsw.Connection, page_id: int) -> tuple[bytes, ...]:
    """Return the rules that apply to a page: its own, and those of its host."""
    rows = connection.execute(
        "SELECT rules FROM volatile WHERE page_id = ?1 UNION ALL"
        " SELECT rules FROM template JOIN page USING (host_id) WHERE page_id = ?1",
        (page_id,),
    )
    return tuple(rules for (rules,) in rows)


def noise_of(connection: apsw.Connection, page_id: int) -> tuple[bytes, Template]:
    """Return the rules of a page, and those of its host."""
    host = connection.execute(
        "SELECT rules, confirmations FROM template JOIN page USING (host_id) WHERE page_id = ?",
        (page_id,),
    ).fetchone()
    return of_page(connection, page_id), Template(*host) if host else Template()


def put_of_host(connection: apsw.Connection, host_id: int, template: Template) -> None:
    """Store the rules of a host."""
    connection.execute(
        "INSERT INTO template (host_id, rules, confirmations) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET rules = excluded.rules, confirmations = excluded.confirmations",
        (host_id, *template),
    )
