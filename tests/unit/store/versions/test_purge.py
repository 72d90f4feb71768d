import apsw
import pytest

from crawld.core.page import Outcome
from crawld.core.units import DAY_S
from crawld.store import doctor, visit
from crawld.store.frontier import frontier, requisite, tombstone
from crawld.store.frontier import page as pages
from crawld.store.versions import pin, purge, search_index
from crawld.store.versions import version as versions
from tests.unit.store.revisions import compact, contents, record_page
from tests.unit.store.rows import NOW, changed, discover_in_full, found, unlike

SECRET = b"the secret of Mx Wurzelschmidt"
COMMON = b"".join(b"<p>paragraph %d of every page</p>" % number for number in range(300))
URL = "https://example.org/secret"


@pytest.fixture(autouse=True)
def _erasing(connection):
    purge.set_secure_delete(connection, on=True)


def edits(secret, count=5):
    return [(NOW + n * DAY_S, b"%s%s edit %d" % (COMMON, secret, n)) for n in range(count)]


def held(path):
    """Return every byte of the database and its log."""
    return b"".join(
        each.read_bytes() for each in path.parent.glob(path.name + "*") if ".lock" not in each.name
    )


def merge(connection):
    """Merge the whole index; return the number of slices."""
    slices, more = 1, search_index.merge(connection, begin=True)
    while more:
        more = search_index.merge(connection, begin=False)
        slices += 1
    return slices


def test_words_of_a_purged_page_leave_the_index_in_slices(connection, path):
    page_id = record_page(connection, "secret", edits(SECRET, count=1))
    search_index.apply(connection, search_index.plan(connection))
    sql = "INSERT INTO page_text (rowid, title, text) VALUES (?, '', ?)"
    for number in range(400):
        words = " ".join(f"{number * word:x}q" for word in range(1_000))
        connection.execute(sql, (1_000 + number, words))
    search_index.delete_page(connection, page_id)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert b"wurzelschmidt" in held(path).lower()
    assert merge(connection) > 2
    assert purge.scrub(connection)
    assert b"wurzelschmidt" not in held(path).lower()


def test_a_purge_leaves_no_byte_of_a_page(connection, path):
    page_id = record_page(connection, "secret", edits(SECRET))
    other_id = record_page(connection, "other", edits(b"nothing"))
    compact(connection)
    while (work := search_index.plan(connection)) is not None:
        search_index.apply(connection, work)
    pin.put(connection, page_id, NOW + 9 * DAY_S)
    requisite.put(connection, page_id, [other_id])
    assert [hit.url for hit in search_index.find(connection, "Wurzelschmidt")] == [URL]
    connection.wal_checkpoint()
    assert b"wurzelschmidt" in held(path).lower()
    done = purge.purge(connection, URL, NOW + 10 * DAY_S, "asked by its author")
    assert (done.known, done.versions, done.bodies, done.same_at) == (True, 5, 5, ())
    merge(connection)
    assert purge.scrub(connection)
    assert b"wurzelschmidt" not in held(path).lower()
    assert URL.encode() not in held(path)
    assert search_index.find(connection, "Wurzelschmidt") == []
    assert contents(connection, other_id) == [content for _, content in edits(b"nothing")]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert doctor.examine(path).findings == ()


def test_deltas_on_a_purged_body_stay_readable(connection, path):
    page_id = record_page(connection, "secret", edits(SECRET))
    # The other page had the same content once: its first body is based on that.
    shared = edits(SECRET)[2]
    other = [(NOW, COMMON + b"before"), shared, (NOW + 9 * DAY_S, COMMON + b"after")]
    other_id = record_page(connection, "other", other)
    compact(connection)
    bodies = {version.body_id for version in versions.list_versions(connection, page_id)}
    assert len(bodies) == 5
    done = purge.purge(connection, URL, NOW)
    assert (done.bodies, done.same_at) == (4, ("https://example.org/other",))
    assert contents(connection, other_id) == [content for _, content in other]
    assert doctor.examine(path).findings == ()


def test_a_purged_page_stays_out(connection):
    record_page(connection, "secret", edits(SECRET, 1))
    assert not tombstone.exists(connection, URL)
    purge.purge(connection, URL, NOW)
    assert frontier.discover(connection, [found("secret"), found("b")])[0].url[-1] == "b"
    assert frontier.discover(connection, [found("secret", seed=True)]) == []
    assert connection.execute("SELECT count(*) FROM refusal").get == 0
    assert tombstone.delete(connection, URL)
    assert not tombstone.delete(connection, URL)
    assert len(frontier.discover(connection, [found("secret")])) == 1


def test_an_unknown_page_can_be_purged(connection):
    done = purge.purge(connection, URL, NOW)
    assert (done.known, done.versions) == (False, 0)
    assert frontier.discover(connection, [found("secret")]) == []


def test_a_visit_in_progress_restores_nothing(connection):
    page_id = record_page(connection, "secret", edits(SECRET, 1))
    purge.purge(connection, URL, NOW)
    assert visit.record(connection, changed(page_id, SECRET)).visit_id is None
    assert pages.by_url(connection, URL) is None


def test_redirects_to_a_purged_page_are_deleted(connection):
    record_page(connection, "secret", edits(SECRET, 1))
    old_id = record_page(connection, "old", edits(b"old", 1))
    moved = unlike(old_id, Outcome.MOVED, NOW + 9, redirect_url=URL, detail=URL)
    visit.record(connection, moved)
    purge.purge(connection, URL, NOW)
    assert pages.for_visit(connection, old_id).redirect_url is None
    assert connection.execute("SELECT count(*) FROM visit WHERE detail IS NOT NULL").get == 0


def test_a_purged_requisite_leaves_the_counter(connection):
    discover_in_full(connection, [found("secret", requisite=True)])
    purge.purge(connection, URL, NOW)
    assert connection.execute("SELECT requisite_count, page_count FROM site").get == (0, 0)
