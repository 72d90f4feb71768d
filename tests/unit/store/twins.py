"""Pages of a replica that are compared by their digests, as the job does with their texts."""

from crawld.core.replica.agreement import PageVerdict
from crawld.store.frontier import server
from crawld.store.replica import pages, twin, twin_facts
from crawld.store.replica.twin import TwinRow


def compare(connection, server_id, canonical_id, *, at=None):
    """Compare the visited pages of a replica; return the page_ids of those that agree."""
    sql = f"SELECT page_id FROM page WHERE {server.has_page('?1')}"
    rows = connection.execute(sql, (server_id,)).fetchall()
    facts = twin_facts.twin_facts(connection, [page_id for (page_id,) in rows], canonical_id)
    compared = []
    for one in facts:
        equal = one.page.digest == one.twin.digest
        visited_at = one.page.last_visit_at
        compared.append(
            TwinRow(
                one.page.page_id,
                server_id,
                one.twin.page_id,
                PageVerdict.AGREES if equal else PageVerdict.DIFFERS,
                one.page.digest,
                visited_at,
                visited_at if at is None else at,
            )
        )
    twin.put(connection, compared)
    return [row.page_id for row in compared if row.verdict is PageVerdict.AGREES]


def rest_agreeing(connection, server_id, canonical_id):
    """Compare the visited pages of a replica, and suspend those that agree."""
    pages.suspend(connection, compare(connection, server_id, canonical_id))
