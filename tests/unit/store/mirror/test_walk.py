import pytest

from crawld.core.page import Outcome, PageState
from crawld.core.url import url_hash
from crawld.store import visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.mirror import walk
from crawld.store.versions import pin
from crawld.store.versions.body import encode
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord

ANSWER = StoredResponse(status=200, http_version="HTTP/1.1", headers=b"", content_type="text/html")


@pytest.fixture
def connection(tmp_path):
    migrate.migrate(tmp_path / "m.db")
    connection = open_connection(tmp_path / "m.db")
    connection.execute("PRAGMA synchronous = OFF")  # no test cuts the power
    site.upsert(connection, "site", '{"settle_s": 0.0}', source="config", at=1.0)
    yield connection
    connection.close()


def add(connection, *paths):
    urls = [f"http://h.example/{path}" for path in paths]
    frontier.discover(
        connection,
        [
            Discovery(
                url=url,
                url_hash=url_hash(url),
                site_id=1,
                host="h.example",
                origin="http://h.example",
                at=1.0,
            )
            for url in urls
        ],
    )


def see(connection, page_id, at, outcome=Outcome.CHANGED, body=b"x", **more):
    visit.record(
        connection,
        VisitRecord(
            page_id=page_id,
            visited_at=at,
            outcome=outcome,
            state=PageState.VISITED,
            answer=ANSWER,
            body=encode(body) if outcome is Outcome.CHANGED else None,
            **more,
        ),
    )


def outlines(connection, now=100.0):
    return [page for chunk in walk.outlines(connection, now) for page in chunk]


def test_outlines_skip_pages_with_nothing_to_show(connection):
    add(connection, "copy", "never", "moved")
    see(connection, 1, 5.0)
    see(connection, 3, 6.0, Outcome.MOVED, redirect_url="http://h.example/copy")
    assert [
        (page.page_id, page.version_id, page.redirect_url) for page in outlines(connection)
    ] == [
        (1, 1, None),
        (3, None, "http://h.example/copy"),
    ]


def test_a_pinned_copy_is_the_one_shown(connection):
    add(connection, "a")
    see(connection, 1, 5.0, body=b"one")
    see(connection, 1, 6.0, body=b"two")
    assert outlines(connection)[0].version_id == 2
    pin.put(connection, 1, 7.0, 5.0)
    assert outlines(connection)[0].version_id == 1


def test_a_text_that_has_not_settled_is_not_shown(connection):
    add(connection, "a")
    see(connection, 1, 5.0, body=b"one")
    see(connection, 1, 90.0, body=b"two")
    site.upsert(connection, "site", '{"settle_s": 50.0}', source="config", at=1.0)
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
    see(connection, 1, 5.0, body=b"one")
    see(connection, 1, 6.0, Outcome.NOT_MODIFIED)
    see(connection, 1, 7.0, body=b"two")
    connection.execute("DELETE FROM visit WHERE visited_at = 5.0")
    events = list(walk.events(connection, 1))
    assert [(event.visited_at, event.visit_id, event.version_id) for event in events] == [
        (5.0, 0, 1),
        (6.0, 2, None),
        (7.0, 3, 2),
    ]
    assert events[1].answer.status == 200
    assert [event.visited_at for event in walk.events(connection, 1, 6.5)] == [7.0]


def test_more_events_than_a_chunk_are_all_walked(connection):
    add(connection, "a")
    for number in range(walk.CHUNK + 5):
        see(connection, 1, float(number), Outcome.NOT_MODIFIED)
    assert len(list(walk.events(connection, 1))) == walk.CHUNK + 5


def test_no_snapshot_outlives_a_call(connection, tmp_path):
    add(connection, "a", "b")
    see(connection, 1, 5.0)
    reader = open_connection(tmp_path / "m.db", read_only=True)
    chunks = walk.outlines(reader, 100.0)
    next(chunks)
    assert not reader.in_transaction
    see(connection, 2, 6.0)
    frames, copied = connection.wal_checkpoint()
    assert frames == copied
    reader.close()
