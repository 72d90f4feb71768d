"""What stored copies say about other hosts."""

from contextlib import closing

import pytest

from crawld.core.replica.hosts import path_key
from crawld.daemon.jobs.replicas.copies import FIRST_COPIES, CopyFacts, read_facts
from crawld.marks import NO_MARKS
from crawld.store import visit
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, site
from tests.unit.store.rows import NOW, changed, found


@pytest.fixture
def connection(tmp_path):
    migrate.migrate(tmp_path / "mirror.db")
    with closing(open_connection(tmp_path / "mirror.db")) as opened:
        site.upsert(opened, "docs", "{}", source="config", at=NOW)
        yield opened


def keys(*names):
    return sorted(path_key(name) for name in names)


def put(connection, path, html, at=NOW):
    """Store a copy of a page of a.test."""
    new = frontier.discover(connection, [found(path, host="a.test")])
    page_id = (
        new[0].page_id
        if new
        else connection.execute("SELECT page_id FROM page WHERE url LIKE ?", (f"%/{path}",)).get
    )
    visit.record(connection, changed(page_id, html.encode(), at))


def link(name):
    return f'<a href="https://{name}/">there</a>'


def canonical(name, path):
    return f'<link rel="canonical" href="https://{name}/{path}">'


def test_links_and_canonical_links_are_read_once_per_copy(connection):
    for number in range(4):
        body = canonical("b.test", f"p{number}") + link(f"c{number}.test") + link("a.test")
        put(connection, f"p{number}", body)
    facts = read_facts(connection, 1, CopyFacts(), NO_MARKS)
    assert facts.counted() == {"b.test": 4}
    assert facts.linked.tolist() == keys("b.test", *(f"c{number}.test" for number in range(4)))
    # A new copy of one page is read; what the others said stays.
    put(connection, "p1", link("d.test"), NOW + 1)
    reads = []
    connection.set_exec_trace(lambda _, sql, __: reads.append(sql) or True)
    facts = read_facts(connection, 1, facts, NO_MARKS)
    connection.set_exec_trace(None)
    assert sum("FROM body" in sql for sql in reads) == 1
    assert facts.counted() == {"b.test": 3}
    assert path_key("d.test") in facts.linked.tolist()
    assert len(facts.read) == 4


def test_more_copies_are_read_only_of_hosts_that_name_another(connection):
    for number in range(FIRST_COPIES + 4):
        put(connection, f"p{number}", link("c.test") + str(number))
    assert len(read_facts(connection, 1, CopyFacts(), NO_MARKS).read) == FIRST_COPIES
    put(connection, "p0", canonical("b.test", "p0"), NOW + 1)
    facts = read_facts(connection, 1, CopyFacts(), NO_MARKS)
    assert len(facts.read) == FIRST_COPIES + 4
    assert facts.counted() == {"b.test": 1}


def test_a_canonical_link_to_another_path_or_to_itself_says_nothing(connection):
    put(connection, "p", canonical("b.test", "q"))
    put(connection, "q", canonical("a.test", "q"))
    assert read_facts(connection, 1, CopyFacts(), NO_MARKS).counted() == {}
