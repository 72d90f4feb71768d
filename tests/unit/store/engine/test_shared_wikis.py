"""Migration 0019: the wikis of several sites on one origin become one."""

from contextlib import closing

import pytest

from crawld.store.changes import hint_source, wiki, wiki_member
from crawld.store.changes.wiki_member import Part
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection

BEFORE = 18

ROWS = """
INSERT INTO site (site_id, name, source, added_at) VALUES
    (1, 'a', 'config', 0), (2, 'b', 'config', 0);
INSERT INTO host (host_id, host, added_at) VALUES (1, 'w.test', 0);
INSERT INTO origin (origin_id, host_id, origin) VALUES
    (1, 1, 'https://w.test'), (2, 1, 'http://w.test');
INSERT INTO page (page_id, site_id, host_id, origin_id, url_hash, state, depth, discovered_at, url)
VALUES (1, 1, 1, 1, 11, 'visited', 0, 0, 'https://w.test/wiki/A'),
       (2, 2, 1, 1, 22, 'visited', 0, 0, 'https://w.test/wiki/B');
INSERT INTO wiki (wiki_id, site_id, origin_id, looked_at, api_url, facts, facts_at,
    registered_until, request_count, change_count)
VALUES (1, 1, 1, 5, 'https://w.test/api.php', NULL, NULL, 7, 3, 4),
       (2, 2, 1, 6, 'https://w.test/api.php', '{}', 8, 9, 5, 6),
       (3, 1, 2, 6, NULL, NULL, NULL, 0, 0, 0);
INSERT INTO wiki_page (page_id, wiki_id, title, state) VALUES
    (1, 1, 'A', 'complete'), (2, 2, 'B', 'open');
INSERT INTO wiki_member (wiki_id, title, named_at) VALUES (1, 'A', 5), (2, 'A', 6), (2, 'B', 6);
INSERT INTO hint_source (hint_source_id, site_id, host_id, kind, url, found_at, cursor, told_until)
VALUES (1, 1, 1, 'recent_changes', 'https://w.test/api.php', 1, 'new', 90),
       (2, 2, 1, 'recent_changes', 'https://w.test/api.php', 1, 'old', 80),
       (3, 1, 1, 'probe', 'https://w.test/api.php', 1, 'first', NULL),
       (4, 2, 1, 'sitemap', 'https://w.test/sitemap.xml', 1, 'map', 50);
INSERT INTO hint (page_id, hint_source_id, first_at, last_at, heard_at, told)
VALUES (1, 1, 85, 85, 86, 1), (2, 2, 79, 79, 80, 1), (2, 4, 1, 2, 3, 1);
INSERT INTO untold (hint_source_id, page_id, visited_at) VALUES (1, 1, 3), (2, 2, 4);
"""


@pytest.fixture
def migrated(path, tmp_path):
    """A file with two sites of one wiki, written before the migration and migrated."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    for each in migrate.migrations()[:BEFORE]:
        (folder / each.name).write_text(each.sql)
    migrate.migrate(path, folder=folder)
    with closing(open_connection(path)) as connection:
        connection.execute(ROWS)
    migrate.migrate(path)
    with closing(open_connection(path)) as connection:
        yield connection


def test_the_wikis_of_one_origin_become_one_with_all_their_sites(migrated):
    merged, other = sorted(wiki.list_wikis(migrated), key=lambda row: row.origin_id)
    assert (merged.origin, merged.facts, merged.request_count) == ("https://w.test", "{}", 8)
    assert merged.sites == ((1, 7.0), (2, 9.0))
    assert (other.origin, other.api_url, other.site_ids) == ("http://w.test", None, (1,))
    pages = migrated.execute("SELECT page_id, state FROM wiki_page WHERE wiki_id = ?", (merged[0],))
    assert set(pages) == {(1, "complete"), (2, "open")}
    titles = [
        wiki_member.list_titles(migrated, Part(site_id, merged.wiki_id)) for site_id in (1, 2)
    ]
    assert titles == [["A"], ["A", "B"]]


def test_the_oldest_cursor_and_all_hints_are_kept(migrated):
    sources = {row.kind: row for row in hint_source.list_sources(migrated)}
    assert len(sources) == len(hint_source.list_sources(migrated)) == 3
    changes = sources["recent_changes"]
    assert (changes.cursor, changes.site_ids) == ("old", (1, 2))
    assert (sources["probe"].cursor, sources["probe"].site_ids) == ("first", (1, 2))
    assert (sources["sitemap"].cursor, sources["sitemap"].site_ids) == ("map", (2,))
    hints = set(migrated.execute("SELECT page_id, hint_source_id FROM hint"))
    number = changes.hint_source_id
    assert hints == {(1, number), (2, number), (2, sources["sitemap"].hint_source_id)}
    again = hint_source.ensure_of_wiki(
        migrated, changes.wiki_id, changes.host_id, "recent_changes", "https://w.test/api.php", 1.0
    )
    assert again == changes
