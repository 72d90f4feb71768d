"""Another port of a name is another server, whose pages rest and return by themselves."""

import pytest

from crawld.core.page import PageState
from crawld.store.engine.in_parts import finish
from crawld.store.frontier import dust, frontier, server, verdicts
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import Packing
from crawld.store.replica import due_pages, inputs, outlook, packed_twins, pages, preview, replica
from crawld.store.replica import pair as replica_pair
from crawld.store.replica.packed_twins import TwinBlock
from crawld.store.replica.preview import Prospect
from tests.unit.store.replica.test_replica import AT, File
from tests.unit.store.twins import rest_agreeing

NAME, PORT, THIRD = "https://a.test", "http://a.test:8080", "http://a.test:9000"


@pytest.fixture
def file(connection):
    connection.execute("BEGIN")
    made = File(connection)
    for origin in (NAME, PORT, THIRD):
        for path in ("/", "/a"):
            made.page(f"{origin}{path}", digest=path.encode())
    return made


def number(file, name):
    return server.by_name(file.connection, name).server_id


def resting(file):
    return {url for url, state in file.states().items() if state == "suspended"}


def prune(file, name, kept):
    ids = number(file, name), number(file, kept)
    replica.put_replica(file.connection, *ids, "pruned", "why", now=AT, look_at=AT + 9)
    rest_agreeing(file.connection, *ids)


def test_two_ports_at_one_address_are_one_machine(file):
    """Other names at an address may be sites of their own, and other addresses other machines."""
    for name in ("www.a.test", "b.test", "www.b.test"):
        file.page(f"https://{name}/", digest=b"/")
    for copy, kept in (
        *(("a.test:8080", "a.test"), ("www.a.test", "a.test")),
        *(("b.test", "a.test"), ("www.b.test", "b.test")),
    ):
        ids = number(file, copy), number(file, kept)
        replica.put_replica(file.connection, *ids, "pruned", "why", now=AT, look_at=AT + 9)

    def of_one_machine():
        rows = replica.list_replicas(file.connection)
        return {row.host for row in rows if row.is_one_machine}

    file.connection.execute("UPDATE host SET address = NULL")
    assert of_one_machine() == set()
    file.connection.execute("UPDATE host SET address = '192.0.2.1'")
    assert of_one_machine() == {"a.test:8080", "www.a.test", "www.b.test"}
    file.connection.execute("UPDATE host SET address = '192.0.2.2' WHERE host = 'www.b.test'")
    assert of_one_machine() == {"a.test:8080", "www.a.test"}


def test_a_server_has_the_number_of_its_host_or_one_of_its_own(file):
    connection = file.connection
    file.page("http://a.test/other")
    file.page("https://a.test:8080/other")
    file.page("https://[::1]:8443/")
    by_url = dict(connection.execute(f"SELECT url, {server.of_page()} FROM page").fetchall())
    assert by_url["http://a.test/other"] == by_url[f"{NAME}/"] == 1
    of_port = by_url[f"{PORT}/"]
    assert of_port == by_url["https://a.test:8080/other"] > server.FIRST_NUMBER
    assert len({1, of_port, by_url[f"{THIRD}/"], by_url["https://[::1]:8443/"]}) == 4
    assert server.names(connection, by_url.values()) == {
        1: "a.test",
        of_port: "a.test:8080",
        by_url[f"{THIRD}/"]: "a.test:9000",
        by_url["https://[::1]:8443/"]: "[::1]:8443",
    }
    assert server.by_name(connection, "a.test:8080") == (of_port, "a.test:8080", 1)
    assert server.by_name(connection, "a.test") == (1, "a.test", 1)
    assert server.by_name(connection, "a.test:1") is None


def test_a_host_names_its_only_server(file):
    """An intranet may have no server at a default port."""
    connection = file.connection
    file.page("http://wiki.test:8080/")
    only = server.by_name(connection, "wiki.test:8080")
    assert server.by_name(connection, "wiki.test") == only
    # A URL at the default port is of no server.
    assert server.of_url(connection, "http://wiki.test:8080/x") == only
    assert server.of_url(connection, "http://wiki.test/").server_id != only.server_id
    assert "wiki.test" not in {one.host for one in inputs.hosts(connection)}
    prune(file, "wiki.test:8080", "a.test:8080")
    [row] = replica.list_replicas(connection)
    assert not row.alone  # a.test has three
    file.page("http://one.test:8080/")
    prune(file, "wiki.test:8080", "one.test:8080")
    [row] = replica.list_replicas(connection)
    assert row.alone
    file.page("http://wiki.test:8081/")
    assert server.by_name(connection, "wiki.test").name == "wiki.test"
    [row] = replica.list_replicas(connection)
    assert not row.alone


def test_each_server_is_searched_by_itself(file):
    connection = file.connection
    file.page(f"{PORT}/new", visited=False)
    file.page(f"{NAME}/new", visited=False)
    file.page(f"{NAME}/newer", visited=False)
    connection.execute("UPDATE page SET redirect_url = 'x' WHERE url = ?", (f"{PORT}/a",))
    found_hosts = {one.host: one for one in inputs.hosts(connection)}
    unvisited = {name: one.unvisited for name, one in found_hosts.items()}
    assert unvisited == {"a.test": 2, "a.test:8080": 1, "a.test:9000": 0}
    numbers = [one.server_id for one in inputs.hosts(connection)]
    assert numbers == sorted(numbers)
    by_number = {one.server_id: name for name, one in found_hosts.items()}
    read = [(by_number[one.server_id], one.url) for one in inputs.pages_after(connection, 0, 99)]
    assert sorted(read) == sorted(
        (origin.partition("://")[2], f"{origin}{path}")
        for origin in (NAME, PORT, THIRD)
        for path in ("/", "/a")
    )
    for name, origin in (("a.test", NAME), ("a.test:8080", PORT)):
        copies = inputs.copies(connection, number(file, name), 9)
        assert {url for url, _ in copies} == {f"{origin}/", f"{origin}/a"}
        assert inputs.count_copies(connection, number(file, name)) == 2
        assert inputs.summarize_pages(connection, number(file, name)).pages == 2
    assert inputs.summarize_pages(connection, number(file, "a.test")).https
    assert not inputs.summarize_pages(connection, number(file, "a.test:8080")).https
    [redirect] = inputs.redirects(connection)
    assert redirect.server_id == number(file, "a.test:8080")


def test_only_the_pages_of_the_server_rest(file):
    connection = file.connection
    prune(file, "a.test:8080", "a.test")
    assert resting(file) == {f"{PORT}/", f"{PORT}/a"}
    [row] = replica.list_replicas(connection)
    assert (row.host, row.canonical_host, row.slot_name) == ("a.test:8080", "a.test", "a.test")
    assert (row.suspended, row.pages, row.unvisited) == (2, 2, 0)
    assert replica.copies_of(connection, number(file, "a.test"), 9) == ["a.test:8080"]
    assert outlook.outlook(connection, row._replace(twins=2)).only_here == 0
    assert replica.of_host(connection, number(file, "a.test")) is None
    # A URL of the replica leads to its twin, one of the other port to none.
    assert pages.canonical_url(connection, f"{PORT}/a") == f"{NAME}/a"
    assert pages.canonical_url(connection, f"{THIRD}/a") is None
    assert pages.canonical_url(connection, f"{NAME}/a") is None


def test_a_server_that_rests_takes_no_other_port_along(file):
    """Neither pages at other ports rest, nor do they return with it."""
    connection = file.connection
    for origin in (PORT, THIRD):
        file.page(f"{origin}/new", visited=False)
    prune(file, "a.test:9000", "a.test:8080")
    prune(file, "a.test", "a.test:8080")
    name, port = number(file, "a.test"), number(file, "a.test:8080")
    assert resting(file) == {f"{origin}{path}" for origin in (NAME, THIRD) for path in ("/", "/a")}
    assert due_pages.uncompared(connection, name, port, 0, 9) == []
    assert due_pages.restless(connection, name, port, 0, 9) == []
    assert due_pages.unvisited(connection, name, port, 0, 9) == ([], None)
    newest = connection.execute("SELECT max(visit_id) FROM visit").get
    file.visit(file.number(f"{PORT}/a"), b"/a", AT + 5)
    assert due_pages.visited_between(connection, newest, newest + 1) == []
    row = replica.of_host(connection, name)
    assert (row.suspended, row.pages, row.unvisited) == (2, 2, 0)
    assert {page.page_id for page in pages.resume_some(connection, name)} == {
        file.number(f"{NAME}{path}") for path in ("/", "/a")
    }
    assert resting(file) == {f"{THIRD}/", f"{THIRD}/a"}
    assert file.counted() == (2, 4, 2)


def test_a_first_twin_at_another_port_is_none(file):
    connection = file.connection
    prune(file, "a.test:8080", "a.test")
    file.page(f"{PORT}/b", digest=b"b")
    before = connection.execute("SELECT max(visit_id) FROM visit").get
    file.page(f"{THIRD}/b", digest=b"b")
    assert due_pages.first_twins_between(connection, before, before + 9) == []
    file.page(f"{NAME}/b", digest=b"b")
    met = due_pages.first_twins_between(connection, before, before + 9)
    assert met == [(number(file, "a.test:8080"), file.number(f"{PORT}/b"))]


def test_a_page_at_another_port_stands_for_no_page(file):
    """A replica is asked for the pages of its canonical server only."""
    connection = file.connection
    file.page("https://www.a.test/a", digest=b"/a")
    prune(file, "www.a.test", "a.test")
    own = number(file, "www.a.test")
    kept, other = file.number(f"{NAME}/a"), file.number(f"{PORT}/a")
    assert pages.suspended_url(connection, own, kept) == "https://www.a.test/a"
    assert pages.suspended_url(connection, own, other) is None


def test_a_dry_run_looks_at_the_pages_of_the_server(file):
    file.page(f"{PORT}/own")
    ids = number(file, "a.test:8080"), number(file, "a.test")
    met, _ = preview.preview(file.connection, *ids, pages.BEFORE_FIRST)
    assert {page.url: page.prospect for page in met} == {
        f"{PORT}/": Prospect.RESTS,
        f"{PORT}/a": Prospect.RESTS,
        f"{PORT}/own": Prospect.ONLY_HERE,
    }


def test_unvisited_pages_of_both_servers_are_asked_for(file):
    file.page(f"{PORT}/b")
    for origin in (NAME, THIRD):
        file.page(f"{origin}/b", visited=False)
    ids = number(file, "a.test"), number(file, "a.test:8080")
    met = pages.shared_unvisited(file.connection, *ids, 9)
    assert [(one.server_id, one.page_id) for one in met] == [
        (number(file, "a.test"), file.number(f"{NAME}/b"))
    ]


def test_packed_pages_of_the_server_become_rows(file):
    connection = file.connection
    packed = Caps(packing=Packing(file_pages=0))
    for origin in (NAME, PORT, THIRD):
        file.page(f"{origin}/b")
        link = Discovery.of(f"{origin}/c", site_id=1, at=AT, depth=1)
        frontier.discover(connection, [link], packed)
    file.page("https://a.test/c")
    own = number(file, "a.test:8080")
    verdicts.settle_all(connection, packed)
    packed_twins.draw(connection, own)
    made, last = 0, 0
    while block_id := packed_twins.next_block(connection, own, last):
        last = block_id
        block = TwinBlock(block_id, "a.test:8080", number(file, "a.test"))
        made += finish(packed_twins.unpack_in_parts(connection, block))
    assert made == 1
    new = {url for url, state in file.states().items() if state == PageState.DISCOVERED}
    assert new == {f"{PORT}/c"}


def test_the_operator_speaks_of_a_port(file):
    connection = file.connection
    ids = number(file, "a.test"), number(file, "a.test:8080")
    replica_pair.put_words(connection, [ids], "confirmed", AT)
    [answer] = replica_pair.list_answers(connection)
    assert answer.names == ("a.test", "a.test:8080")
    [pair] = replica_pair.list_pairs(connection, ids[1])
    assert pair.evidence.names == answer.names
    prune(file, "a.test:8080", "a.test")
    for server_id in (*ids, ids[0]):
        replica.prefer(connection, server_id)
        chosen = [one.server_id for one in inputs.hosts(connection) if one.preferred]
        assert chosen == [server_id]


def test_urls_of_one_page_are_not_looked_for_at_a_port_that_rests(file):
    prune(file, "a.test:8080", "a.test")
    assert {one.origin for one in dust.list_origins(file.connection, 1)} == {NAME, THIRD}
