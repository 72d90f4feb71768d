"""Pages of a replica whose twin is on another host than the canonical one."""

import pytest

from crawld.core.replica.agreement import PageVerdict
from crawld.store.replica import alternates, due_pages, pages, replica, twin, twin_facts
from crawld.store.replica.twin import TwinRow
from tests.unit.store.replica.test_replica import AT, COPY, KEPT, ONE_ID, OTHER_ID, File, both

THIRD, THIRD_ID = "https://web3.a.test", 3


@pytest.fixture
def file(connection):
    connection.execute("BEGIN")
    made = File(connection)
    both(made, "/", "/a")
    for path in ("/", "/a"):
        made.page(f"{THIRD}{path}", digest=path.encode())
    for copy in (OTHER_ID, THIRD_ID):
        replica.put_replica(connection, copy, ONE_ID, "partly", "why", now=AT, look_at=AT + 9)
    return made


def put(file, verdict, *, of=THIRD, to=COPY, at=AT, instead_of=ONE_ID):
    """Store that a page of a replica was compared with that of another host."""
    number = {COPY: OTHER_ID, THIRD: THIRD_ID}[of]
    there = (file.number(f"{of}/a"), number, file.number(f"{to}/a"))
    twin.put(file.connection, [TwinRow(*there, verdict, b"text", at, at, instead_of=instead_of)])
    return there[0]


def known(file):
    [found] = twin.compared_pages(file.connection, THIRD_ID, ONE_ID, 0, 9)
    return found


def test_alternates_are_stored_with_their_replica(connection, file):
    assert [row.alternate_ids for row in replica.list_replicas(connection)] == [(), ()]
    alternates.put(connection, THIRD_ID, [9, OTHER_ID])
    assert replica.of_host(connection, THIRD_ID).alternate_ids == (OTHER_ID, 9)
    alternates.put(connection, THIRD_ID, [OTHER_ID])
    assert replica.of_host(connection, THIRD_ID).alternate_ids == (OTHER_ID,)
    replica.drop_replica(connection, THIRD_ID)
    assert connection.execute("SELECT count(*) FROM replica_alternate").get == 0


def test_a_page_may_rest_under_an_alternate_only_as_long_as_it_is_one(connection, file):
    put(file, PageVerdict.DIFFERS, of=COPY, to=KEPT, instead_of=None)
    page_id = put(file, PageVerdict.AGREES)
    assert not known(file).twin_shown
    alternates.put(connection, THIRD_ID, [OTHER_ID])
    assert (known(file).twin_shown, known(file).elsewhere) == (True, True)
    assert pages.suspend(connection, [page_id]) == 1
    assert due_pages.restless(connection, THIRD_ID, ONE_ID, 0, 9) == []
    assert pages.twin_url(connection, page_id) == f"{COPY}/a"
    alternates.put(connection, THIRD_ID, [])
    assert due_pages.restless(connection, THIRD_ID, ONE_ID, 0, 9) == [page_id]


def test_no_page_rests_under_one_that_rests(connection, file):
    alternates.put(connection, THIRD_ID, [OTHER_ID])
    page_id, there = put(file, PageVerdict.AGREES), file.number(f"{COPY}/a")
    put(file, PageVerdict.AGREES, of=COPY, to=KEPT, instead_of=None)
    assert pages.suspend(connection, [there, page_id]) == 1
    assert file.states()[f"{THIRD}/a"] == "visited"
    connection.execute("UPDATE page SET state = 'suspended' WHERE page_id = ?", (page_id,))
    assert pages.orphans(connection, [there]) == [(page_id, "web3.a.test")]
    assert pages.orphans(connection, [page_id]) == []


@pytest.mark.parametrize(
    ("history", "is_crawled"),
    [
        ([], True),
        ([PageVerdict.DIFFERS], True),
        ([PageVerdict.DIFFERS, PageVerdict.UNKNOWN], True),
        ([PageVerdict.AGREES], False),
        ([PageVerdict.AGREES, PageVerdict.UNKNOWN], False),
    ],
)
def test_only_pages_that_go_on_being_crawled_are_twins_of_others(file, history, is_crawled):
    for verdict in history:
        put(file, verdict, of=COPY, to=KEPT, instead_of=None)
    page_ids = [file.number(f"{THIRD}/a")]
    found = twin_facts.alternate_facts(file.connection, page_ids, OTHER_ID)
    assert bool(found) is is_crawled


def test_pages_that_cannot_agree_are_compared_only_if_they_did(file):
    page_id = file.page(f"{THIRD}/a", digest=b"quite another text")
    assert twin_facts.alternate_facts(file.connection, [page_id], OTHER_ID) == []
    [found] = twin_facts.alternate_facts(file.connection, [page_id], OTHER_ID, unlike_too={page_id})
    assert (found.page.page_id, found.twin.url) == (page_id, f"{COPY}/a")


def test_a_page_that_leaves_the_canonical_host_began_to_differ_from_it(file):
    put(file, PageVerdict.AGREES, to=KEPT, instead_of=None)
    put(file, PageVerdict.AGREES, at=AT + 5)
    assert (known(file).agreed, known(file).turns, known(file).turned_at) == (1, 1, AT + 5)
    put(file, PageVerdict.AGREES, at=AT + 6)
    assert (known(file).agreed, known(file).turns, known(file).turned_at) == (2, 1, AT + 5)


def test_a_page_that_never_agreed_there_did_not_begin_to_differ(file):
    put(file, PageVerdict.DIFFERS, to=KEPT, instead_of=None)
    put(file, PageVerdict.AGREES, at=AT + 5)
    assert (known(file).agreed, known(file).turns) == (1, 0)
