"""The full-text index of newest copies."""

import pytest

from crawld.store import visit
from crawld.store.frontier import frontier
from crawld.store.versions import purge, search_index
from tests.unit.store.rows import NOW, changed, found


def record(connection, name, text, at=NOW, title="A title"):
    pages = frontier.discover(connection, [found(name)])
    page_id = pages[0].page_id if pages else int(name)
    visit.record(connection, changed(page_id, text.encode(), at=at, title=title))
    return page_id


def catch_up(connection, limit=2):
    while (work := search_index.plan(connection, limit=limit)) is not None:
        search_index.apply(connection, work)


def titles(connection, query):
    return [hit.title for hit in search_index.find(connection, query)]


def test_new_copies_replace_old_ones(connection):
    for number in range(5):
        record(connection, f"{number + 1}", f"<p>word{number} common", title=f"T{number}")
    assert search_index.count_pending(connection) == 5
    catch_up(connection)
    assert search_index.count_pending(connection) == 0
    assert search_index.plan(connection) is None
    assert titles(connection, "word3") == ["T3"]
    assert len(search_index.find(connection, "common", limit=3)) == 3
    record(connection, "4", "<p>other", at=NOW + 1, title="T3")
    catch_up(connection)
    assert titles(connection, "word3") == []
    assert titles(connection, "other") == ["T3"]


def test_a_slice_is_one_segment_whatever_its_order(connection):
    for number in range(12):
        record(connection, f"{number + 1}", f"<p>before{number}")
    with connection:
        catch_up(connection, limit=12)
    before = segments(connection)
    for page_id in (5, 2, 9, 1, 12, 3, 8):
        record(connection, f"{page_id}", f"<p>after{page_id}", at=NOW + 1)
    with connection:
        catch_up(connection, limit=12)
    assert len(before) == 1
    assert len(segments(connection) - before) == 1
    assert len(search_index.find(connection, "after9")) == 1
    assert search_index.find(connection, "before8") == []


def segments(connection):
    return {row[0] for row in connection.execute("SELECT segid FROM page_text_idx")}


def test_reused_version_ids_are_examined_again(connection):
    record(connection, "1", "<p>stays")
    doomed = record(connection, "2", "<p>goes")
    catch_up(connection)
    purge.delete_page(connection, doomed)
    # The next copy gets the version_id of the removed one.
    record(connection, "3", "<p>follows", title="New")
    assert search_index.count_pending(connection) == 1
    catch_up(connection)
    assert titles(connection, "follows") == ["New"]


def test_words_in_titles_rank_higher(connection):
    record(connection, "1", "<p>apple pear " + "plum " * 50, title="Fruit")
    record(connection, "2", "<p>" + "stone " * 50, title="Apple")
    catch_up(connection)
    assert titles(connection, "apple") == ["Apple", "Fruit"]
    assert titles(connection, "title:apple") == ["Apple"]


@pytest.mark.parametrize(
    ("query", "hit"),
    [
        ("crawler", True),
        ("CRAWLER", True),
        ("crawl*", True),
        ("crawl", False),
        ('"web crawler"', True),
        ('"crawler web"', False),
        ("crawler -web", False),
        ("crawler -stone", True),
        ("uber", True),
        ("数据", True),
        ("据数", False),
        ("", False),
        ("-crawler", False),
    ],
)
def test_queries(connection, query, hit):
    record(connection, "1", "<p>A web crawler, über SQLite数据库")
    catch_up(connection)
    assert bool(search_index.find(connection, query)) is hit


def test_a_deleted_page_is_not_found(connection):
    page_id = record(connection, "1", "<p>secret")
    catch_up(connection)
    search_index.delete_page(connection, page_id)
    assert search_index.find(connection, "secret") == []
    search_index.delete_page(connection, page_id)


def test_a_page_deleted_while_it_was_read_is_not_indexed(connection):
    page_id = record(connection, "1", "<p>secret")
    work = search_index.plan(connection)
    connection.execute("UPDATE page SET version_id = NULL WHERE page_id = ?", (page_id,))
    search_index.apply(connection, work)
    assert search_index.find(connection, "secret") == []


def test_copies_that_are_not_indexed_are_examined_once(connection):
    page_id = record(connection, "1", "<p>old")
    visit.record(connection, changed(page_id, b"<p>new", at=NOW + 1, title="New"))
    work = search_index.plan(connection, limit=1)
    assert work == search_index.IndexSlice((), 1)
    search_index.apply(connection, work)
    assert search_index.count_pending(connection) == 1


def test_a_rebuild_indexes_everything_again(connection):
    record(connection, "1", "<p>word")
    catch_up(connection)
    search_index.rebuild(connection)
    assert search_index.find(connection, "word") == []
    catch_up(connection)
    assert len(search_index.find(connection, "word")) == 1
