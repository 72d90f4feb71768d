"""A file with replicas from before their pages were compared is upgraded."""

from contextlib import closing

from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.replica import due_pages, replica, twin
from tests.unit.store.replica.test_replica import COPY, KEPT, ONE_ID, OTHER_ID, File

COMPARED = "0033_page_twins.sql"

# Statements of that time: those of today name columns that the file has not yet.
ROWS = f"""
INSERT INTO site (site_id, name, definition, source, added_at)
VALUES (1, 'docs', '{{}}', 'config', 1);
INSERT INTO host (host_id, host, added_at) VALUES ({ONE_ID}, 'one', 1), ({OTHER_ID}, 'other', 1);
INSERT INTO origin (origin_id, host_id, origin)
VALUES (1, {ONE_ID}, '{KEPT}'), (2, {OTHER_ID}, '{COPY}');
INSERT INTO page (page_id, site_id, host_id, origin_id, url_hash, state, depth, discovered_at, url)
VALUES (1, 1, {ONE_ID}, 1, 7, 'visited', 1, 1, '{KEPT}/a'),
       (2, 1, {OTHER_ID}, 2, 7, 'suspended', 1, 1, '{COPY}/a');
INSERT INTO replica (host_id, canonical_id, status, reason, since, sampled, agreed, lag_s, look_at)
VALUES ({OTHER_ID}, {ONE_ID}, 'pruned', 'why', 5, 8, 8, 0.5, 9);
"""


def test_replicas_stay_and_their_pages_at_rest_are_to_be_compared(path, tmp_path):
    folder = tmp_path / "before"
    folder.mkdir()
    for each in migrate.migrations():
        if each.name < COMPARED:
            (folder / each.name).write_text(each.sql)
    migrate.migrate(path, folder=folder)
    with closing(open_connection(path)) as connection:
        connection.execute(ROWS)
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        [row] = replica.list_replicas(connection)
        assert (row.status, row.reason, row.since, row.look_at) == ("pruned", "why", 5.0, 9.0)
        assert (row.sampled, row.agreed, row.lag_s, row.agreeing) == (8, 8, 0.5, 0)
        page_id = File(connection).number(f"{COPY}/a")
        assert due_pages.restless(connection, OTHER_ID, ONE_ID, 0, 9) == [page_id]
        assert twin.section_states(connection, OTHER_ID) == {}
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
