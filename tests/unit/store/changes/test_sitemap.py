"""Files of a sitemap: when each is due, which an index adds and removes."""

import pytest

from crawld.store.changes import hint_source, sitemap
from crawld.store.changes.sitemap import ListedFile, SitemapRow
from crawld.store.frontier import host as host_rows
from tests.unit.store.rows import NOW

ROOT = "http://a.test/map.xml"


@pytest.fixture
def source(connection):
    host_id = host_rows.ensure(connection, "a.test", NOW)
    row = hint_source.ensure(connection, 1, host_id, "sitemap", ROOT, NOW)
    sitemap.ensure(connection, row.hint_source_id, ROOT, NOW)
    return row.hint_source_id


def all_files(connection, source):
    columns = ", ".join(SitemapRow._fields)
    sql = f"SELECT {columns} FROM sitemap WHERE hint_source_id = ?"
    return [SitemapRow(*row) for row in connection.execute(sql, (source,))]


def listed(connection, source, *files, at=NOW, most=100):
    root = next(each for each in all_files(connection, source) if each.url == ROOT)
    rows = [ListedFile(f"http://a.test/{name}", changed_at) for name, changed_at in files]
    return root, sitemap.add_listed(connection, root, rows, at, most=most)


def names(connection, source):
    return {each.url.rpartition("/")[2] for each in all_files(connection, source)}


def read(connection, source, name, at, next_at):
    rows = all_files(connection, source)
    (row,) = [each for each in rows if each.url.endswith(name)]
    sitemap.update(connection, row._replace(read_at=at, next_at=next_at, newest_at=at - 5.0))


def test_the_file_that_is_due_first_is_next(connection, source):
    assert sitemap.next_file(connection, source).url == ROOT
    read(connection, source, "map.xml", NOW, NOW + 100.0)
    listed(connection, source, ("one", None), at=NOW + 1.0)
    row = sitemap.next_file(connection, source)
    assert (row.url, row.parent, row.depth) == ("http://a.test/one", ROOT, 1)
    assert sitemap.next_file(connection, 99) is None


def test_a_listed_change_makes_a_file_due_at_once(connection, source):
    listed(connection, source, ("one", NOW - 50.0), ("two", NOW - 50.0), ("three", None))
    for name in ("map.xml", "one", "two", "three"):
        read(connection, source, name, NOW, NOW + 1_000.0)
    changed = (("one", NOW + 5.0), ("two", NOW - 50.0), ("three", None))
    listed(connection, source, *changed, at=NOW + 10.0)
    row = sitemap.next_file(connection, source)
    assert (row.url, row.next_at) == ("http://a.test/one", NOW + 10.0)
    read(connection, source, "one", NOW + 10.0, NOW + 1_000.0)
    assert sitemap.next_file(connection, source).next_at == NOW + 1_000.0


def test_a_file_that_is_no_longer_listed_is_deleted(connection, source):
    listed(connection, source, ("one", None), ("two", None))
    root, _ = listed(connection, source, ("two", None), at=NOW + 10.0)
    sitemap.delete_unlisted(connection, root, NOW + 10.0)
    assert names(connection, source) == {"map.xml", "two"}


def test_an_index_that_lists_itself_changes_nothing(connection, source):
    listed(connection, source, ("map.xml", NOW + 9.0))
    row = sitemap.next_file(connection, source)
    assert (row.url, row.parent, row.depth) == (ROOT, None, 0)


def test_the_number_of_files_is_limited(connection, source):
    files = [(str(number), None) for number in range(5)]
    assert listed(connection, source, *files, most=4)[1] == 2
    assert names(connection, source) == {"map.xml", "0", "1", "2"}
    assert listed(connection, source, *files[:3], most=4)[1] == 0


def test_newest_dates_are_known_once_no_file_is_due(connection, source):
    listed(connection, source, ("one", None), ("two", None))
    assert sitemap.newest_dates(connection, source, ROOT, NOW) is None
    for name in ("one", "two"):
        read(connection, source, name, NOW, NOW + 100.0)
    assert sitemap.newest_dates(connection, source, ROOT, NOW) == [NOW - 5.0, NOW - 5.0]
