"""A file with replicas from before their pages were compared is upgraded."""

from contextlib import closing

from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import site
from crawld.store.replica import due_pages, replica, twin
from tests.unit.store.replica.test_replica import AT, COPY, KEPT, ONE_ID, OTHER_ID, File

COMPARED = "0033_page_twins.sql"


def test_replicas_stay_and_their_pages_at_rest_are_to_be_compared(path, tmp_path):
    folder = tmp_path / "before"
    folder.mkdir()
    for each in migrate.migrations():
        if each.name < COMPARED:
            (folder / each.name).write_text(each.sql)
    migrate.migrate(path, folder=folder)
    with closing(open_connection(path)) as connection:
        # The pages are made by the program of today, which looks for packed ones.
        connection.execute("CREATE TEMP TABLE packed_key (host_id, url_hash, site_id, depth)")
        site.upsert(connection, "docs", "{}", source="config", at=AT)
        file = File(connection)
        for origin in (KEPT, COPY):
            file.page(f"{origin}/a", digest=b"/a")
        connection.execute(
            "INSERT INTO replica (host_id, canonical_id, status, reason, since, sampled, agreed,"
            " lag_s, look_at) VALUES (?, ?, 'pruned', 'why', 5.0, 8, 8, 0.5, 9.0)",
            (OTHER_ID, ONE_ID),
        )
        connection.execute("UPDATE page SET state = 'suspended' WHERE url = ?", (f"{COPY}/a",))
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        [row] = replica.list_replicas(connection)
        assert (row.status, row.reason, row.since, row.look_at) == ("pruned", "why", 5.0, 9.0)
        assert (row.sampled, row.agreed, row.lag_s, row.agreeing) == (8, 8, 0.5, 0)
        page_id = File(connection).number(f"{COPY}/a")
        assert due_pages.restless(connection, OTHER_ID, ONE_ID, 0, 9) == [page_id]
        assert twin.section_states(connection, OTHER_ID) == {}
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
