"""Pairs, replicas and suspended pages."""

from dataclasses import replace

import apsw
import pytest

from crawld.core.replica.verdict import PairEvidence, VerdictLevel
from crawld.store import visit
from crawld.store.frontier import frontier, server
from crawld.store.frontier.frontier import Discovery
from crawld.store.replica import inputs, pages, replica, twin
from crawld.store.replica import pair as replica_pair
from crawld.store.replica.pair import PairRow
from tests.unit.store.rows import NOW as AT
from tests.unit.store.rows import changed
from tests.unit.store.twins import compare, rest_agreeing

KEPT, COPY, ONE_ID, OTHER_ID = "https://a.test", "https://www.a.test", 1, 2


class File:
    def __init__(self, connection):
        self.connection = connection

    def page(self, url, *, digest=None, at=AT, visited=True):
        new = frontier.discover(self.connection, [Discovery.of(url, site_id=1, at=AT, depth=1)])
        page_id = new[0].page_id if new else self.number(url)
        if visited:
            self.visit(page_id, digest or url.encode()[:16], at)
        return page_id

    def visit(self, page_id, digest, at):
        visit.record(self.connection, changed(page_id, digest, at, cleaned_digest=digest))

    def number(self, url):
        return self.connection.execute("SELECT page_id FROM page WHERE url = ?", (url,)).get

    def states(self):
        return dict(self.connection.execute("SELECT url, state FROM page").fetchall())

    def counted(self):
        return self.connection.execute(
            "SELECT pages_discovered, pages_visited, pages_suspended FROM site"
        ).fetchone()

    def prune(self):
        replica.put_replica(
            self.connection, OTHER_ID, ONE_ID, "pruned", "why", now=AT, look_at=AT + 9
        )
        rest_agreeing(self.connection, OTHER_ID, ONE_ID)


@pytest.fixture
def file(connection):
    connection.execute("BEGIN")  # a thousand pages in one transaction
    return File(connection)


def both(file, *paths, **more):
    for path in paths:
        file.page(f"{KEPT}{path}", digest=path.encode())
    for path in paths:
        file.page(f"{COPY}{path}", digest=path.encode(), **more)


def test_pages_are_found_by_their_keys(connection, file):
    both(file, "/", "/a")
    file.prune()
    both(file, "/b")
    costs, twin_id = [], file.number(f"{KEPT}/a")
    connection.trace_v2(
        apsw.SQLITE_TRACE_PROFILE, lambda run: costs.append((run["sql"], run["stmt_status"]))
    )
    assert pages.suspended_url(connection, OTHER_ID, twin_id) == f"{COPY}/a"
    connection.trace_v2(0)
    of_pages = [cost for sql, cost in costs if "FROM page" in sql]
    assert len(of_pages) == 1
    for cost in of_pages:
        # Neither all suspended pages are scanned nor all pages of a host sorted.
        assert cost["SQLITE_STMTSTATUS_FULLSCAN_STEP"] == 0
        assert cost["SQLITE_STMTSTATUS_SORT"] == 0


def test_sample_results_hold_for_one_canonical_host(connection, file):
    both(file, "/", "/a")
    file.prune()
    replica.start_sample(connection, OTHER_ID, 4, now=AT + 50, look_at=AT + 99)
    replica.put_sample(connection, OTHER_ID, sampled=2, agreed=2, lag_s=7.0)
    [row] = replica.list_replicas(connection)
    assert (row.sampled, row.agreed, row.lag_s, row.awaited) == (2, 2, 7.0, 2)
    assert (row.sampled_at, row.look_at) == (AT + 50, AT + 99)
    replica.put_agreement(connection, OTHER_ID, twins=2, agreeing=2, differing=0, root=True)
    file.page("https://b.test/")
    pages.resume_some(connection, OTHER_ID)
    for _ in range(2):
        replica.put_replica(connection, OTHER_ID, 3, "pruned", "why", now=AT + 60, look_at=AT + 70)
        [row] = replica.list_replicas(connection)
        assert (row.canonical_id, row.since, row.look_at) == (3, AT + 60, AT + 70)
        assert (row.sampled, row.lag_s, row.sampled_at, row.awaited) == (0, None, 0.0, 0)
        assert (row.twins, row.agreeing, row.differing, row.root) == (0, 0, 0, None)


def test_shared_paths_with_an_unvisited_page_are_found(connection, file):
    both(file, "/", "/a")
    file.page(f"{KEPT}/seen-here")
    file.page(f"{COPY}/seen-here", visited=False)
    file.page(f"{COPY}/seen-there")
    file.page(f"{KEPT}/seen-there", visited=False)
    for origin in (KEPT, COPY):
        for path in ("/both-1", "/both-2"):
            file.page(f"{origin}{path}", visited=False)
        file.page(f"{origin}/own{len(origin)}", visited=False)

    def found(paths):
        met = pages.shared_unvisited(connection, ONE_ID, OTHER_ID, paths)
        return [
            connection.execute("SELECT url FROM page WHERE page_id = ?", (page.page_id,)).get
            for page in met
        ]

    shown = [f"{KEPT}/seen-there", f"{COPY}/seen-here"]
    assert found(1) == shown
    assert found(2) == [*shown, f"{KEPT}/both-1", f"{COPY}/both-1"]
    assert found(9) == [*found(2), f"{KEPT}/both-2", f"{COPY}/both-2"]
    # A page with a fixed time of its next visit keeps it.
    connection.execute("UPDATE page SET retry_at = ? WHERE url = ?", (AT + 99, f"{COPY}/seen-here"))
    on_both = [f"{origin}/{path}" for path in ("both-1", "both-2") for origin in (KEPT, COPY)]
    assert found(9) == [f"{KEPT}/seen-there", *on_both]


def test_pages_that_agree_are_suspended_and_resumed(connection, file):
    both(file, "/", "/a")
    file.page(f"{COPY}/own")
    file.page(f"{KEPT}/b")
    file.page(f"{COPY}/b")  # another text
    file.page(f"{KEPT}/c", visited=False)
    file.page(f"{COPY}/c")
    before = file.states()
    file.prune()
    resting = {url for url, state in file.states().items() if state == "suspended"}
    assert resting == {f"{COPY}{path}" for path in ("/", "/a")}
    assert file.counted() == (1, 6, 2)
    back = pages.resume_some(connection, OTHER_ID)
    assert [page.visited for page in back] == [True, True]
    assert file.states() == before
    assert pages.resume_some(connection, OTHER_ID) == []


def test_a_page_visited_since_its_comparison_does_not_rest(connection, file):
    both(file, "/", "/a", "/b")
    agreeing = compare(connection, OTHER_ID, ONE_ID)
    assert len(agreeing) == 3
    file.visit(file.number(f"{COPY}/a"), b"new", AT + 50)
    twin.release(connection, [file.number(f"{COPY}/b")], AT + 50)
    assert pages.suspend(connection, agreeing) == 1
    assert file.states()[f"{COPY}/"] == "suspended"


def test_more_pages_than_a_slice_are_resumed(connection, file):
    paths = [f"/{number}" for number in range(pages.SLICE + 20)]
    both(file, *paths)
    file.prune()
    assert file.counted() == (0, len(paths), len(paths))
    first = pages.resume_some(connection, OTHER_ID)
    assert len(first) == pages.SLICE
    assert len(pages.resume_some(connection, OTHER_ID)) == 20


def test_only_a_suspended_page_stands_in(connection, file):
    both(file, "/", "/a")
    assert pages.suspended_url(connection, OTHER_ID, file.number(f"{KEPT}/a")) is None
    file.prune()
    assert pages.suspended_url(connection, OTHER_ID, file.number(f"{KEPT}/a")) == f"{COPY}/a"
    assert pages.suspended_url(connection, OTHER_ID, file.number(f"{COPY}/a")) is None


def test_a_replica_with_reset_samples_is_due_at_once(connection, file):
    both(file, "/")
    file.prune()
    replica.put_sample(connection, OTHER_ID, sampled=8, agreed=8, lag_s=0.0)
    replica.reset_samples(connection, OTHER_ID)
    [row] = replica.list_replicas(connection)
    assert (row.sampled, row.agreed, row.lag_s) == (0, 0, None)
    assert (row.sampled_at, row.look_at) == (0.0, 0.0)


EVIDENCE = PairEvidence(
    names=("a.test", "www.a.test"), pages=(9, 9), common=9, compared=9, equal=9, probability=0.5
)
PAIR = PairRow(
    one_id=ONE_ID,
    other_id=OTHER_ID,
    judged_at=AT,
    level=VerdictLevel.CERTAIN,
    evidence=EVIDENCE,
    features={"ndist": 4.0},
)


def test_the_operators_decision_outlives_verdicts(connection, file):
    both(file, "/")
    replica_pair.put_pairs(connection, [PAIR])
    assert replica_pair.put_words(connection, [(OTHER_ID, ONE_ID)], "rejected", AT) == 1
    assert replica_pair.put_words(connection, [(ONE_ID, OTHER_ID)], "rejected", AT) == 0
    later = replace(PAIR, judged_at=AT + 1, level=VerdictLevel.LIKELY)
    replica_pair.put_pairs(connection, [later])
    replica_pair.forget_pairs(connection, [(ONE_ID, OTHER_ID)])
    assert replica_pair.list_pairs(connection) == [replace(later, word="rejected")]
    assert replica_pair.list_pairs(connection, OTHER_ID)
    assert not replica_pair.list_pairs(connection, 77)
    assert replica_pair.put_words(connection, [(ONE_ID, OTHER_ID)], None, AT) == 1
    replica_pair.forget_pairs(connection, [(ONE_ID, OTHER_ID)])
    assert replica_pair.list_pairs(connection) == []


def test_a_pair_that_was_never_judged_can_be_decided(connection, file):
    both(file, "/")
    assert replica_pair.pairs_among(connection, {ONE_ID, OTHER_ID}) == []
    assert replica_pair.put_words(connection, [(OTHER_ID, ONE_ID)], "confirmed", AT) == 1
    [pair] = replica_pair.list_pairs(connection, decided=True)
    assert (pair.one_id, pair.other_id, pair.word) == (ONE_ID, OTHER_ID, "confirmed")
    assert pair.evidence.compared == 0
    assert replica_pair.pairs_among(connection, {ONE_ID, OTHER_ID}) == [(ONE_ID, OTHER_ID)]
    assert replica_pair.pairs_among(connection, {ONE_ID, 77}) == []
    assert replica_pair.names(connection, [(ONE_ID, OTHER_ID)]) == [pair.evidence.names]


def test_pairs_without_a_decision_are_left_out_of_the_short_list(connection, file):
    both(file, "/")
    replica_pair.put_pairs(connection, [PAIR])
    assert replica_pair.list_pairs(connection, decided=True) == []
    assert replica_pair.count_pairs(connection) == 1
    replica.put_replica(connection, OTHER_ID, ONE_ID, "held", "", now=AT, look_at=AT)
    assert replica_pair.list_pairs(connection, decided=True) == [PAIR]


def test_declared_replicas_of_certain_pairs_are_found(connection, file):
    both(file, "/")
    replica_pair.put_pairs(connection, [PAIR])
    assert replica_pair.certain_replicas(connection) == set()
    file.prune()
    assert replica_pair.certain_replicas(connection) == {OTHER_ID}
    replica.put_replica(connection, ONE_ID, OTHER_ID, "partly", "", now=AT, look_at=AT)
    assert replica_pair.certain_replicas(connection) == {OTHER_ID}
    replica_pair.put_pairs(connection, [replace(PAIR, level=VerdictLevel.LIKELY)])
    assert replica_pair.certain_replicas(connection) == set()


def test_one_host_of_a_group_is_preferred(connection, file):
    both(file, "/")
    file.prune()
    for host_id in (ONE_ID, OTHER_ID):
        replica.prefer(connection, host_id)
        assert [row.server_id for row in inputs.hosts(connection) if row.preferred] == [host_id]


def test_names_of_hosts_that_were_never_fetched(connection, file):
    both(file, "/")
    assert server.names(connection, {ONE_ID, OTHER_ID, 999}) == {
        ONE_ID: "a.test", OTHER_ID: "www.a.test"
    }  # fmt: skip
    assert server.names(connection, set()) == {}


def test_pages_are_read_once_and_again_after_changes(connection, file):
    both(file, "/", "/a")
    file.page(f"{COPY}/waits", visited=False)
    first = inputs.pages_after(connection, 0, 100)
    urls = [f"{origin}{path}" for origin in (KEPT, COPY) for path in ("/", "/a")]
    assert [page.url for page in first] == urls
    assert first[0].cleaned_digest == b"/"
    cursors = inputs.cursors(connection)
    assert inputs.pages_between(connection, cursors, cursors) == []
    file.visit(first[1].page_id, b"changed", AT + 5)
    after = inputs.cursors(connection)
    [page] = inputs.pages_between(connection, cursors, after)
    assert (page.url, page.cleaned_digest) == (f"{KEPT}/a", b"changed")
