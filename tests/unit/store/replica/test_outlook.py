"""What becomes of each page of a replica: counts, and what resting would mean."""

import pytest

from crawld.core.replica.agreement import PageVerdict
from crawld.store.replica import outlook, pages, preview, replica, twin
from crawld.store.replica.outlook import Outlook
from crawld.store.replica.preview import Prospect
from crawld.store.replica.twin import TwinRow
from tests.unit.store.replica.test_replica import AT, COPY, KEPT, ONE_ID, OTHER_ID, File, both


@pytest.fixture
def file(connection):
    connection.execute("BEGIN")
    made = File(connection)
    both(made, "/", "/a", "/b", "/c", "/d", "/e")
    made.page(f"{COPY}/a", digest=b"other")
    made.page(f"{COPY}/only")
    made.page(f"{KEPT}/f", digest=b"f")
    made.page(f"{COPY}/f", visited=False)
    return made


def judge(file, path, verdict, visit_at=None):
    page_id, twin_id = file.number(f"{COPY}{path}"), file.number(f"{KEPT}{path}")
    row = TwinRow(page_id, OTHER_ID, twin_id, verdict, None, AT, AT, visit_at=visit_at)
    twin.put(file.connection, [row])
    return page_id


def prospects(file):
    found, after = preview.preview(file.connection, OTHER_ID, ONE_ID, pages.BEFORE_FIRST)
    assert after is None
    return {each.url.removeprefix(COPY): (each.prospect, each.suspended) for each in found}


def test_pages_that_were_never_compared_are_judged_by_their_stored_texts(file):
    same = dict.fromkeys(("/", "/b", "/c", "/d", "/e"), (Prospect.RESTS, False))
    assert prospects(file) == same | {
        "/a": (Prospect.DIFFERS, False),
        "/only": (Prospect.ONLY_HERE, False),
        "/f": (Prospect.UNVISITED, False),
    }


def test_comparisons_count_before_stored_texts(file):
    judge(file, "/a", PageVerdict.AGREES)
    judge(file, "/b", PageVerdict.DIFFERS)
    judge(file, "/c", PageVerdict.REPEATED)
    judge(file, "/d", PageVerdict.UNKNOWN)
    pages.suspend(file.connection, [file.number(f"{COPY}/a")])
    found = prospects(file)
    assert found["/a"] == (Prospect.RESTS, True)
    assert found["/b"] == (Prospect.DIFFERS, False)
    assert found["/c"] == (Prospect.REPEATED, False)
    assert found["/d"] == (Prospect.RESTS, False)


def test_a_long_list_is_read_in_slices(file, monkeypatch):
    monkeypatch.setattr(preview, "SLICE", 3)
    seen, after = [], pages.BEFORE_FIRST
    while after is not None:
        found, after = preview.preview(file.connection, OTHER_ID, ONE_ID, after)
        assert len(found) <= 3
        seen += [each.url for each in found]
    assert len(seen) == len(set(seen)) == 8


def test_the_outlook_counts_each_page_once(file):
    connection = file.connection
    replica.put_replica(connection, OTHER_ID, ONE_ID, "pruned", "why", now=AT, look_at=AT)
    agrees = judge(file, "/", PageVerdict.AGREES)
    judge(file, "/a", PageVerdict.DIFFERS)
    judge(file, "/b", PageVerdict.REPEATED)
    judge(file, "/c", PageVerdict.UNKNOWN)
    deferred = judge(file, "/f", PageVerdict.DEFERRED, visit_at=AT + 5)
    pages.suspend(connection, [agrees, deferred])
    replica.put_agreement(connection, OTHER_ID, twins=7, agreeing=1, differing=2, root=True)
    row = replica.of_host(connection, OTHER_ID)
    assert outlook.outlook(connection, row) == Outlook(
        resting=2, deferred=1, differing=1, repeated=1, only_here=1, undecided=3
    )
    assert outlook.own_verdict(connection, deferred) == (PageVerdict.DEFERRED, AT, AT + 5)
    assert outlook.own_verdict(connection, file.number(f"{COPY}/only")) is None
    assert replica.copies_of(connection, ONE_ID, 5) == ["www.a.test"]
