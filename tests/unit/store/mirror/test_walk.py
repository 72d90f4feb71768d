from contextlib import closing

from crawld.core.page import Outcome
from crawld.store import visit
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from crawld.store.mirror import walk
from crawld.store.versions import pin
from tests.unit.store.rows import answer, changed, found, unlike


def add(connection, *names):
    frontier.discover(connection, [found(name) for name in names])


def see(connection, page_id, at, content=b"x"):
    visit.record(connection, changed(page_id, content, at))


def see_unchanged(connection, page_id, at):
    visit.record(connection, unlike(page_id, Outcome.NOT_MODIFIED, at, response=answer()))


def outlines(connection, now=100.0):
    return [page for chunk in walk.outlines(connection, now) for page in chunk]


def test_outlines_skip_pages_with_nothing_to_show(connection):
    add(connection, "copy", "never", "moved")
    see(connection, 1, 5.0)
    target = "https://example.org/copy"
    visit.record(connection, unlike(3, Outcome.MOVED, 6.0, redirect_url=target))
    shown = [(page.page_id, page.version_id, page.redirect_url) for page in outlines(connection)]
    assert shown == [(1, 1, None), (3, None, target)]


def test_a_pinned_copy_is_the_one_shown(connection):
    add(connection, "a")
    see(connection, 1, 5.0, b"one")
    see(connection, 1, 6.0, b"two")
    assert outlines(connection)[0].version_id == 2
    pin.put(connection, 1, 7.0, 5.0)
    assert outlines(connection)[0].version_id == 1


def test_a_text_that_has_not_settled_is_not_shown(connection):
    add(connection, "a")
    see(connection, 1, 5.0, b"one")
    see(connection, 1, 90.0, b"two")
    site.upsert(connection, "docs", '{"settle_s": 50.0}', source="config", at=1.0)
    assert outlines(connection)[0].version_id == 1
    assert outlines(connection, now=200.0)[0].version_id == 2


def test_more_pages_than_a_chunk_are_all_walked(connection):
    add(connection, *range(walk.CHUNK * 2 + 1))
    for page_id in (1, walk.CHUNK, walk.CHUNK + 1, walk.CHUNK * 2 + 1):
        see(connection, page_id, 5.0)
    assert len(outlines(connection)) == 4
    assert [len(chunk) for chunk in walk.pages_visited_since(connection, 0.0)] == [2, 1, 1]


def test_events_are_visits_and_copies_without_a_visit_in_order_of_time(connection):
    add(connection, "a")
    see(connection, 1, 5.0, b"one")
    see_unchanged(connection, 1, 6.0)
    see(connection, 1, 7.0, b"two")
    connection.execute("DELETE FROM visit WHERE visited_at = 5.0")
    events = list(walk.events(connection, 1))
    keys = [(event.visited_at, event.visit_id, event.version_id) for event in events]
    assert keys == [(5.0, 0, 1), (6.0, 2, None), (7.0, 3, 2)]
    assert events[1].response.status == 200
    assert [event.visited_at for event in walk.events(connection, 1, 6.5)] == [7.0]


def test_more_events_than_a_chunk_are_all_walked(connection):
    add(connection, "a")
    for number in range(walk.CHUNK + 5):
        see_unchanged(connection, 1, float(number))
    assert len(list(walk.events(connection, 1))) == walk.CHUNK + 5


def test_no_snapshot_outlives_a_call(connection, path):
    add(connection, "a", "b")
    see(connection, 1, 5.0)
    with closing(open_connection(path, read_only=True)) as reader:
        chunks = walk.outlines(reader, 100.0)
        next(chunks)
        assert not reader.in_transaction
        see(connection, 2, 6.0)
        frames, copied = connection.wal_checkpoint()
    assert frames == copied
