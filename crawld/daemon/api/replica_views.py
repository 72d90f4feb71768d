"""What makes a host a replica, and how its pages compare with the canonical host's."""

from __future__ import annotations

import apsw

from crawld.core.why.facts import ComparisonFacts, ReplicaFacts, ReplicaPages
from crawld.core.why.replica_words import replica_words
from crawld.daemon.api.schemas.replica_outlook import ReplicaOutlook
from crawld.store.replica import outlook
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import replica as replica_rows


def replica_facts(
    connection: apsw.Connection,
    server_id: int,
    url: str | None = None,
    page_id: int | None = None,
) -> ReplicaFacts | None:
    """Return what makes a host a replica, None if it is none.

    Args:
        connection: to the file.
        server_id: the server.
        url: of the server, whose copy on the canonical host is wanted.
        page_id: of the URL, whose comparison is wanted.
    """
    row = replica_rows.of_host(connection, server_id)
    if row is None:
        return None
    own = outlook.own_verdict(connection, page_id) if page_id is not None else None
    there = replica_pages.twin_url(connection, page_id) if own is not None and page_id else None
    if there is None and url is not None:
        there = replica_pages.canonical_url(connection, url)
    return ReplicaFacts(
        canonical_host=row.canonical_host,
        status=row.status,
        since=row.since,
        canonical_url=there,
        reason=row.reason,
        waits_for=row.waits_for,
        look_at=row.look_at,
        pages=ReplicaPages(*outlook.outlook(connection, row)),
        page=ComparisonFacts(*own) if own is not None else None,
    )


def replica_outlook(host: str, facts: ReplicaFacts, now: float) -> ReplicaOutlook:
    """Return why a host rests and which of its pages do not, in figures and words."""
    own = facts._asdict() | facts.pages._asdict() | {"text": replica_words(host, facts, now)}
    return ReplicaOutlook.model_validate({name: own[name] for name in ReplicaOutlook.model_fields})
