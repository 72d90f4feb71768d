from dataclasses import replace

import pytest

from crawld.core.page import Grace, Outcome, PageState
from crawld.store import visit as visits
from crawld.store import visit_log
from crawld.store.frontier import frontier, host, page, tombstone
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.refusal import Refusal
from crawld.store.replica import inputs
from crawld.store.versions import headers, version
from tests.unit.store.rows import NOW, answer, changed, found, unlike


@pytest.fixture
def page_id(connection):
    [new] = frontier.discover(connection, [found("a")])
    return new.page_id


def test_a_changed_page_has_a_version(connection, page_id):
    recorded = visits.record(connection, changed(page_id, b"<p>first</p>"))
    stored = page.for_visit(connection, page_id)
    assert stored.state is PageState.VISITED
    assert stored.version_id == recorded.version_id
    assert (stored.etag, stored.title, stored.change_count) == ('"a"', "A title", 1)
    assert version.read_body(connection, recorded.version_id) == b"<p>first</p>"
    kept = version.get(connection, recorded.version_id)
    assert headers.unpack(kept.response.headers)[0] == (b"Server", b"nginx")
    assert (kept.response.status, kept.response.http_version) == (200, "HTTP/1.1")


def test_equal_copies_of_two_pages_share_a_body(connection, page_id):
    [other] = frontier.discover(connection, [found("b")])
    visits.record_all(connection, [changed(page_id, b"same"), changed(other.page_id, b"same")])
    assert connection.execute("SELECT count(*) FROM body").get == 1
    assert connection.execute("SELECT count(*) FROM version").get == 2


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.CHANGED])
def test_only_a_change_replaces_the_last_good_copy(connection, page_id, outcome):
    visits.record(connection, changed(page_id, b"good"))
    before = page.for_visit(connection, page_id)
    # columns that a faulty caller might set
    bad = changed(page_id, b"404 page", NOW + 9, outcome=outcome, digest=b"x" * 16, etag=None)
    recorded = visits.record(connection, bad)
    after = page.for_visit(connection, page_id)
    assert recorded.version_id is None
    kept = ("version_id", "digest", "title", "last_change_at")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert after.last_change_at == NOW
    assert (after.last_visit_at, after.last_outcome) == (NOW + 9, outcome)
    assert version.read_body(connection, after.version_id) == b"good"


@pytest.mark.parametrize("outcome", [Outcome.GONE, Outcome.SOFT_GONE, Outcome.BLOCKED])
def test_validators_of_an_error_page_are_ignored(connection, page_id, outcome):
    visits.record(connection, changed(page_id, b"good"))
    visits.record(connection, unlike(page_id, outcome, etag='"of the error page"'))
    assert page.for_visit(connection, page_id).etag == '"a"'


def test_a_304_refreshes_the_validators_it_names(connection, page_id):
    visits.record(connection, changed(page_id, b"good"))
    visits.record(connection, unlike(page_id, Outcome.NOT_MODIFIED, etag='"b"'))
    stored = page.for_visit(connection, page_id)
    assert (stored.etag, stored.last_modified) == ('"b"', "Fri, 09 Jan 2026 10:28:16 GMT")


def test_a_change_that_may_not_be_kept_leaves_the_last_copy(connection, page_id):
    visits.record(connection, changed(page_id, b"kept"))
    visits.record(connection, changed(page_id, b"noarchive", NOW + 1, body=None))
    stored = page.for_visit(connection, page_id)
    assert version.read_body(connection, stored.version_id) == b"kept"
    assert stored.change_count == 2


def stored_headers(connection, visit_id):
    block = connection.execute(
        "SELECT coalesce(visit.headers, version.headers)"
        " FROM visit LEFT JOIN version USING (version_id) WHERE visit_id = ?",
        (visit_id,),
    ).get
    return None if block is None else headers.unpack(block)


def test_headers_are_stored_with_the_version_or_the_visit(connection, page_id):
    first = visits.record(connection, changed(page_id, b"good"))
    lines = ((b"Date", b"Sat, 21 Nov 2026 05:19:34 GMT"),)
    fresh = unlike(page_id, Outcome.NOT_MODIFIED, response=answer(304, lines))
    second = visits.record(connection, fresh)
    third = visits.record(connection, unlike(page_id, Outcome.FAILED, failure="dns"))
    assert stored_headers(connection, first.visit_id)[0][0] == b"Server"
    assert stored_headers(connection, second.visit_id) == lines
    assert stored_headers(connection, third.visit_id) is None
    assert connection.execute("SELECT count(headers) FROM visit").get == 1


def test_moved_gone_and_failed_visits_update_the_page(connection, page_id):
    target = "https://example.org/b"
    visits.record(connection, unlike(page_id, Outcome.MOVED, redirect_url=target))
    assert page.for_visit(connection, page_id).redirect_url == target
    failure = {"failure": "timeout", "failure_count": 2, "retry_at": NOW + 60}
    visits.record(connection, unlike(page_id, Outcome.FAILED, **failure))
    stored = page.for_visit(connection, page_id)
    assert (stored.last_failure, stored.failure_count, stored.retry_at) == ("timeout", 2, NOW + 60)
    grace = Grace(3, NOW)
    gone = unlike(page_id, Outcome.GONE, NOW + 5, state=PageState.GONE, grace=grace)
    visits.record(connection, gone)
    stored = page.for_visit(connection, page_id)
    assert (stored.state, stored.grace, stored.retry_at) == (PageState.GONE, grace, None)
    visits.record(connection, changed(page_id, b"back", NOW + 6))
    stored = page.for_visit(connection, page_id)
    assert (stored.state, stored.grace, stored.redirect_url) == (PageState.VISITED, Grace(), None)


def test_a_visit_stores_the_politeness_state_of_its_host(connection, page_id):
    back_off = {"backoff_level": 2, "backoff_at": NOW, "closed_until": NOW + 9}
    update = HostUpdate(last_fetch_at=NOW, address="192.0.2.7", **back_off)
    visits.record(connection, unlike(page_id, Outcome.BLOCKED, host=update, wire_bytes=5))
    visits.record(connection, unlike(page_id, Outcome.FAILED, failure="robots"))
    row = host.by_name(connection, "example.org")
    assert (row.last_fetch_at, row.address, row.backoff_level) == (NOW, "192.0.2.7", 2)
    counts = (row.visit_count, row.failure_count, row.wire_bytes)
    assert (row.closed_until, *counts) == (NOW + 9, 2, 1, 5)
    # no request was sent: its time and address stay, the back-off is as given
    visits.record(connection, unlike(page_id, Outcome.FAILED, host=HostUpdate()))
    row = host.by_name(connection, "example.org")
    assert (row.last_fetch_at, row.address, row.backoff_level) == (NOW, "192.0.2.7", 0)


def test_the_certificate_of_a_host_stays_until_another_comes(connection, page_id):
    def shown():
        [row] = inputs.hosts(connection)
        return row.certificate

    visits.record(connection, unlike(page_id, Outcome.FAILED, host=HostUpdate()))
    assert shown() is None
    for names in (("a.example", "example.org"), ()):
        update = HostUpdate(certificate=names)
        visits.record(connection, unlike(page_id, Outcome.FAILED, host=update))
        assert shown() == "a.example example.org"


def test_links_and_refusals_come_with_the_visit(connection, page_id):
    refusal = Refusal("example.org", "session_id", "https://example.org/?sid=1", NOW)
    links = {"discoveries": [found(name) for name in "abc"], "refusals": [refusal]}
    record = changed(page_id, b"links", **links, caps=Caps(per_site={1: 2}))
    recorded = visits.record(connection, record)
    assert [new.url for new in recorded.new_pages] == ["https://example.org/b"]
    reasons = connection.execute("SELECT reason FROM refusal ORDER BY reason").fetchall()
    assert reasons == [("session_id",), ("site_cap",)]


def test_a_visit_of_a_removed_page_stores_nothing(connection):
    recorded = visits.record(connection, changed(99, b"late"))
    assert recorded == visits.RecordResult(None, None, [])
    assert connection.execute("SELECT count(*) FROM body").get == 0


def test_counters_follow_the_states(connection, page_id):
    frontier.discover(connection, [found("b")])
    visits.record(connection, changed(page_id, b"good"))
    page.set_state(connection, page_id, PageState.SUSPENDED)
    counts = dict.fromkeys(PageState, 0) | {PageState.DISCOVERED: 1, PageState.SUSPENDED: 1}
    assert frontier.counts(connection) == counts
    totals = "SELECT visit_count, change_count, wire_bytes FROM host"
    assert connection.execute(totals).fetchall() == [(1, 1, 100)]


def test_the_log_is_followed_and_filtered(connection, page_id):
    [other] = frontier.discover(connection, [found("b", host="second.example")])
    for number in range(5):
        visits.record(connection, unlike(page_id, Outcome.UNCHANGED, NOW + number))
    visits.record(connection, changed(other.page_id, b"x", NOW + 9))
    log = visit_log.log(connection, limit=3)
    assert [row.visit_id for row in log] == [4, 5, 6]
    assert [row.visit_id for row in visit_log.log(connection, after=4)] == [5, 6]
    assert [row.url for row in visit_log.log(connection, host_id=2)] == ["https://second.example/b"]
    assert [row.visit_id for row in visit_log.log(connection, outcome=Outcome.CHANGED)] == [6]
    newest = visit_log.of_page(connection, page_id, limit=2)
    assert [row.visit_id for row in newest] == [5, 4]
    older = visit_log.of_page(connection, page_id, before=newest[-1].visited_at)
    assert [row.visit_id for row in older] == [3, 2, 1]


def test_versions_are_listed_newest_first(connection, page_id):
    for number in range(4):
        visits.record(connection, changed(page_id, b"v%d" % number, NOW + number))
    newest = version.list_versions(connection, page_id, limit=3)
    assert [row.visited_at for row in newest] == [NOW + 3, NOW + 2, NOW + 1]
    [oldest] = version.list_versions(connection, page_id, before=NOW + 1)
    assert version.read_body(connection, oldest.version_id) == b"v0"
    assert version.read_body(connection, 99) is None
    assert version.get(connection, 99) is None


def test_a_visit_with_many_links_has_parts_in_proportion(connection, page_id):
    def parts(count):
        hosts = [found("x", host=f"h{count}-{number}.test") for number in range(count)]
        refused = [
            Refusal(f"r{count}-{n}.test", "host", "http://r.test/", NOW) for n in range(count)
        ]
        record = unlike(
            page_id, Outcome.NOT_MODIFIED, NOW + count, discoveries=hosts, refusals=refused
        )
        steps = sum(1 for _ in visits.record_in_parts(connection, record))
        assert (
            connection.execute("SELECT count(*) FROM host WHERE host LIKE ?", (f"h{count}-%",)).get
            == count
        )
        return steps

    assert parts(20) == 0
    assert parts(640) == 43  # of refusals only 96 hosts have rows
    assert parts(1280) == 83


def test_a_link_named_twice_far_apart_is_one_page(connection, page_id):
    twice = [found("same"), *(found(str(number)) for number in range(100)), found("same")]
    record = unlike(page_id, Outcome.NOT_MODIFIED, NOW + 1, discoveries=twice)
    assert len(visits.record(connection, record).new_pages) == 101


@pytest.fixture
def statements(connection):
    """The statements executed since, one after the other."""
    seen = []

    def note(_cursor, sql, _bindings):
        seen.append(" ".join(sql.split()))
        return True

    connection.set_exec_trace(note)
    yield seen
    connection.set_exec_trace(None)


def test_a_visit_executes_few_statements(connection, statements):
    """Each costs 10 µs, half a per cent of a visit; one more needs a reason."""
    [new] = frontier.discover(connection, [found("a")])
    links = [found("a"), found("c")]
    visits.record(connection, changed(new.page_id, b"first", discoveries=links))
    statements.clear()
    more = {"discoveries": links, "requisites": [found("c")], "difference": 0.5}
    later = changed(new.page_id, b"second", NOW + 9, **more)
    visits.record(connection, later)
    # The page; the digest; body, version, page, visit, event, host; known requisites, known links,
    # which requisites.
    assert len(statements) == 11, statements
    statements.clear()
    visits.record(connection, unlike(new.page_id, Outcome.NOT_MODIFIED, NOW + 10))
    assert len(statements) == 4, statements


def test_a_page_that_needs_nothing_has_no_row_for_it_unless_it_needed_something(connection):
    rows = "SELECT hex(requisites) FROM requisite_use"
    [new] = frontier.discover(connection, [found("a")])
    visits.record(connection, changed(new.page_id, b"first", requisites=[]))
    assert connection.execute(rows).get is None
    # A copy that may not be kept needs its requisites too.
    needs = changed(new.page_id, b"second", NOW + 1, requisites=[found("a")], body=None)
    visits.record(connection, needs)
    assert connection.execute(rows).get == new.page_id.to_bytes(8, "little").hex()
    visits.record(connection, changed(new.page_id, b"third", NOW + 2, requisites=[]))
    assert connection.execute(rows).get == ""


def test_a_first_visit_counts_its_page_in_the_statement_of_its_host(connection, statements):
    [new] = frontier.discover(connection, [found("a")])
    statements.clear()
    visits.record(connection, changed(new.page_id, b"first"))
    assert [sql.split(" SET ")[0] for sql in statements if sql.startswith("UPDATE")] == [
        "UPDATE page",
        "UPDATE site",
        "UPDATE host",
    ]
    assert connection.execute("SELECT pages_discovered, pages_visited FROM host").get == (0, 1)
    assert connection.execute("SELECT visit_count, wire_bytes FROM host").get == (1, 100)
    statements.clear()
    # The counters of its pages belong to the host of the page, the visit to that of the replica.
    other_id = host.ensure(connection, "copy.example.org", NOW)
    gone = unlike(new.page_id, Outcome.GONE, NOW + 1, state=PageState.GONE)
    visits.record(connection, replace(gone, fetched_host_id=other_id))
    counted = "SELECT host, visit_count, pages_visited, pages_gone FROM host ORDER BY host_id"
    assert connection.execute(counted).fetchall() == [
        ("example.org", 1, 0, 1),
        ("copy.example.org", 1, 0, 0),
    ]


def test_a_tombstone_is_noticed_by_the_visit_that_links_to_it(connection, page_id):
    tombstone.put(connection, found("c").url, NOW, None)
    links = [found("b"), found("c")]
    recorded = visits.record(connection, changed(page_id, b"first", discoveries=links))
    assert [new.url for new in recorded.new_pages] == [found("b").url]
