import pytest

from crawld.core.page import Grace, Outcome, PageState
from crawld.store import doctor, visit, visit_log
from crawld.store.changes import change, wiki_probe
from crawld.store.changes.change import Change
from crawld.store.changes.wiki_probe import ProbeResult
from crawld.store.frontier import load, redirect
from crawld.store.frontier import page as pages
from crawld.store.mirror.selection import select_copy
from crawld.store.versions import version as versions
from tests.unit.store.revisions import contents, record_page
from tests.unit.store.rows import NOW, changed, found, unlike

DAY_S = 86_400.0
NEW = "https://example.org/new"


def moves(page_id, at=NOW + 9, **more):
    more = {"renamed": True, **more}
    return unlike(page_id, Outcome.MOVED, at, redirect_url=NEW, detail=NEW, **more)


@pytest.fixture
def old(connection):
    return record_page(connection, "old", [(NOW, b"one"), (NOW + 1, b"two")])


def test_a_permanent_redirect_transfers_the_history(connection, path, old):
    recorded = visit.record(connection, moves(old, discoveries=[found("new")]))
    [new] = [page.page_id for page in recorded.new_pages]
    assert contents(connection, new) == [b"one", b"two"]
    assert versions.list_versions(connection, old) == []
    assert select_copy(connection, old, NOW + 10).redirect_url == NEW
    assert select_copy(connection, new, NOW + 10, NOW).version_id is not None
    # At a time before the move, the old page redirects to the one with its history.
    assert select_copy(connection, old, NOW + 10, NOW).redirect_url == NEW
    visit.record(connection, changed(new, b"three", NOW + 20))
    assert contents(connection, new) == [b"one", b"two", b"three"]
    row = pages.for_visit(connection, old)
    assert (row.digest, row.etag, row.version_id) == (None, None, None)
    assert [each.page_id for each in visit_log.of_page(connection, old)] == [old]
    assert len(visit_log.of_page(connection, new)) == 3
    assert doctor.examine(path).findings == ()


def test_a_target_with_copies_keeps_its_own_history(connection, old):
    new = record_page(connection, "new", [(NOW, b"other")])
    visit.record(connection, moves(old))
    assert contents(connection, old) == [b"one", b"two"]
    assert contents(connection, new) == [b"other"]


def test_a_temporary_redirect_transfers_nothing(connection, old):
    visit.record(connection, moves(old, renamed=False, discoveries=[found("new")]))
    assert contents(connection, old) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("log", "deleted"),
    [
        ([], False),
        ([(NOW + 5, "deletion")], True),
        ([(NOW + 5, "deletion"), (NOW + 6, "restoration")], False),
        ([(NOW - 5, "deletion")], False),
        ([(NOW - 0.5, "deletion")], True),
        ([(NOW + 5, "move")], True),
        ([(NOW + 5, "move"), (NOW + 6, "restoration")], False),
    ],
)
def test_a_deletion_in_the_log_of_a_wiki_is_found(connection, old, log, deleted):
    rows = [Change(at, n, source="log", kind=kind) for n, (at, kind) in enumerate(log)]
    change.insert(connection, old, rows)
    assert redirect.is_deleted_from_wiki(connection, old, NOW + 1) is deleted


@pytest.mark.parametrize(
    ("revision_id", "probed_at", "deleted"),
    [(None, NOW + 5, True), (7, NOW + 5, False), (None, NOW - 5, False)],
)
def test_a_title_without_a_page_counts_as_deleted(connection, old, revision_id, probed_at, deleted):
    wiki_probe.put(connection, [ProbeResult(old, revision_id, None, probed_at)])
    assert redirect.is_deleted_from_wiki(connection, old, NOW + 1) is deleted


def vanish(connection, count):
    """Make some of the 40 pages of a host gone within a week."""
    ids = [record_page(connection, f"{n}", [(NOW, b"%d" % n)]) for n in range(40)]
    for page_id in ids[:count]:
        gone = unlike(page_id, Outcome.GONE, NOW + DAY_S, grace=Grace(1, NOW + DAY_S))
        visit.record(connection, gone)
    return ids


@pytest.mark.parametrize(
    ("count", "share", "mass"), [(9, 0.0, False), (12, 0.2, True), (12, 0.3, False)]
)
def test_a_mass_disappearance_is_detected(connection, count, share, mass):
    vanish(connection, count)
    assert redirect.is_mass_vanish(connection, 1, NOW + 2 * DAY_S, share) is mass
    assert not redirect.is_mass_vanish(connection, 1, NOW + 99 * DAY_S, share)


def test_a_vanishing_host_is_stored_and_cleared(connection):
    ids = vanish(connection, 1)
    held = unlike(ids[0], Outcome.GONE, NOW + 5, vanishing=True, grace=Grace(3, NOW))
    visit.record(connection, held)
    visit.record(connection, unlike(ids[0], Outcome.GONE, NOW + 9, vanishing=True))
    assert [host.vanishing_since for host in load.load_hosts(connection, 9).hosts] == [NOW + 5]
    assert pages.for_visit(connection, ids[0]).state is PageState.VISITED
    visit.record(connection, unlike(ids[0], Outcome.GONE, NOW + 19, vanishing=False))
    assert [host.vanishing_since for host in load.load_hosts(connection, 9).hosts] == [None]
