"""A file with replicas from before their pages were compared is upgraded."""

import json
from contextlib import closing

from crawld.core.replica.sections import SectionState
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import server
from crawld.store.replica import due_pages, replica, twin
from crawld.store.replica import pair as replica_pair
from tests.unit.store.replica.test_replica import COPY, KEPT, ONE_ID, OTHER_ID, File

EVIDENCE = json.dumps(
    {"names": ["one", "other"], "pages": [1, 1], "common": 1, "compared": 1, "equal": 1}
)

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


PORTS = f"""
INSERT INTO origin (origin_id, host_id, origin)
VALUES (3, {ONE_ID}, 'http://one:8080'), (4, {OTHER_ID}, 'http://other:8080'),
       (5, {OTHER_ID}, 'https://other:8080');
INSERT INTO page (page_id, site_id, host_id, origin_id, url_hash, state, depth, discovered_at, url,
                  last_visit_at)
VALUES (3, 1, {ONE_ID}, 3, 8, 'visited', 1, 1, 'http://one:8080/a', 5),
       (4, 1, {OTHER_ID}, 4, 8, 'suspended', 1, 1, 'http://other:8080/a', 5),
       (5, 1, {OTHER_ID}, 4, 9, 'suspended', 1, 1, 'http://other:8080/b', NULL),
       (6, 1, {OTHER_ID}, 5, 10, 'visited', 1, 1, 'https://other:8080/c', 5);
INSERT INTO page_twin (page_id, host_id, twin_id, verdict, visited_at, compared_at)
VALUES (2, {OTHER_ID}, 1, 'agrees', 5, 5), (4, {OTHER_ID}, 3, 'agrees', 5, 5),
       (5, {OTHER_ID}, 3, 'deferred', 0, 5), (6, {OTHER_ID}, 3, 'differs', 5, 5);
INSERT INTO replica_section VALUES ({OTHER_ID}, '/', 1, 0, 1, 2);
INSERT INTO replica_pair (one_id, other_id, judged_at, level, evidence, features, word)
VALUES ({ONE_ID}, {OTHER_ID}, 5, 'certain', '{EVIDENCE}', '{{}}', 'confirmed');
UPDATE host SET pages_suspended = 3, pages_visited = 1 WHERE host_id = {OTHER_ID};
UPDATE site SET pages_suspended = 3, pages_visited = 3;
"""


def migrate_before(path, folder, name):
    """Migrate a file up to a migration."""
    folder.mkdir()
    for each in migrate.migrations():
        if each.name < name:
            (folder / each.name).write_text(each.sql)
    migrate.migrate(path, folder=folder)


def test_replicas_stay_and_their_pages_at_rest_are_to_be_compared(path, tmp_path):
    migrate_before(path, tmp_path / "before", COMPARED)
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


def test_pages_at_other_ports_return_and_have_servers_of_their_own(path, tmp_path):
    """So far a page at a port rested under the same port of the other host."""
    migrate_before(path, tmp_path / "before", "0048_port_servers.sql")
    with closing(open_connection(path)) as connection:
        connection.execute(ROWS)
        connection.execute(PORTS)
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        file = File(connection)
        assert {url for url, state in file.states().items() if state == "suspended"} == {
            f"{COPY}/a"
        }
        assert page_counts_of(connection, "host", "host_id", OTHER_ID) == (1, 2, 1)
        assert page_counts_of(connection, "site", "site_id", 1) == (1, 4, 1)
        [row] = replica.list_replicas(connection)
        assert (row.server_id, row.canonical_id, row.suspended) == (OTHER_ID, ONE_ID, 1)
        compared = twin.compared_pages(connection, OTHER_ID, ONE_ID, 0, 9)
        assert [page.url for page in compared] == [f"{COPY}/a"]
        assert twin.section_states(connection, OTHER_ID) == {"/": SectionState(True, False, 1.0, 2)}
        numbers = dict(connection.execute(f"SELECT url, {server.of_page()} FROM page").fetchall())
        names = server.names(connection, numbers.values())
        assert {url: names[number] for url, number in numbers.items()} == {
            f"{KEPT}/a": "one",
            f"{COPY}/a": "other",
            "http://one:8080/a": "one:8080",
            "http://other:8080/a": "other:8080",
            "http://other:8080/b": "other:8080",
            "https://other:8080/c": "other:8080",
        }
        [pair] = replica_pair.list_pairs(connection)
        assert (pair.one_id, pair.other_id, pair.word) == (ONE_ID, OTHER_ID, "confirmed")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert due_pages.restless(connection, numbers["http://other:8080/a"], ONE_ID, 0, 9) == []


def page_counts_of(connection, table, key, number):
    columns = "pages_discovered, pages_visited, pages_suspended"
    return connection.execute(
        f"SELECT {columns} FROM {table} WHERE {key} = ?", (number,)
    ).fetchone()
