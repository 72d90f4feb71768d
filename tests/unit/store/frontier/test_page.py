"""Rows of sites, hosts and pages."""

import pytest

from crawld.core.page import Failure, PageState
from crawld.core.robots import RobotsVerdict
from crawld.store import visit as visits
from crawld.store.frontier import frontier, host, load, page, site
from crawld.store.frontier.host import OriginRobots
from tests.unit.store.rows import NOW, changed, found


def test_a_site_keeps_its_number_through_every_change(connection):
    assert site.upsert(connection, "docs", '{"a":1}', source="socket", at=NOW + 5) == 1
    row = site.by_name(connection, "docs")
    assert (row.definition, row.source, row.added_at) == ('{"a":1}', "socket", NOW)
    assert row.paused is False
    assert site.set_paused(connection, "docs", True)
    assert site.by_name(connection, "docs").paused is True
    assert site.retire(connection, "docs")
    assert not site.retire(connection, "docs")
    assert site.list_sites(connection) == []
    assert [row.name for row in site.list_sites(connection, retired=True)] == ["docs"]
    assert site.upsert(connection, "docs", "{}", source="config", at=NOW) == 1
    assert site.by_name(connection, "none") is None
    assert not site.set_paused(connection, "none", True)


def test_hosts_are_listed_by_name(connection):
    frontier.discover(connection, [found("a", host=f"h{n}.example") for n in (2, 0, 1)])
    listed = [row.host for row in host.list_hosts(connection, limit=2)]
    assert listed == ["h0.example", "h1.example"]
    assert [row.host for row in host.list_hosts(connection, after="h1.example")] == ["h2.example"]
    assert host.set_paused(connection, "h1.example", True)
    row = host.by_name(connection, "h1.example")
    assert row == host.get(connection, row.host_id)
    assert (row.paused, row.page_count) == (True, 1)
    assert host.by_name(connection, "none") is None
    assert host.get(connection, 99) is None
    assert not host.set_paused(connection, "none", True)


@pytest.mark.parametrize(
    "robots",
    [
        OriginRobots(RobotsVerdict.RULES, b"User-agent: *\n\xff", 200, NOW, 7.5),
        OriginRobots(RobotsVerdict.OPEN, None, 404, NOW),
        OriginRobots(RobotsVerdict.CLOSED, None, None, NOW),
    ],
)
def test_robots_belong_to_the_origin(connection, robots):
    frontier.discover(connection, [found("a")])
    assert host.origin_robots(connection, "https://example.org") is None
    assert host.record_robots(connection, "https://example.org", robots)
    assert host.origin_robots(connection, "https://example.org") == robots
    assert load.load_hosts(connection, 9).hosts[0].crawl_delay_s == robots.crawl_delay_s
    assert not host.record_robots(connection, "https://unknown.example", robots)
    assert host.list_origins(connection, 1) == [(1, "https://example.org")]


def test_excluded_pages_are_readmitted_to_their_former_states(connection):
    one, two, three = frontier.discover(connection, [found(n) for n in "abc"])
    visits.record(connection, changed(two.page_id, b"x"))
    for new in (one, two):
        assert page.set_state(connection, new.page_id, PageState.EXCLUDED, Failure.ROBOTS)
    assert page.set_state(connection, three.page_id, PageState.EXCLUDED, "by hand")
    back = page.readmit(connection, "https://example.org")
    assert [(each.page_id, each.last_visit_at) for each in back] == [(1, None), (2, NOW)]
    counted = frontier.counts(connection)
    assert (counted[PageState.DISCOVERED], counted[PageState.VISITED]) == (1, 1)
    assert page.for_visit(connection, three.page_id).state is PageState.EXCLUDED
    assert page.readmit(connection, "https://unknown.example") == []
    assert not page.set_state(connection, 99, PageState.GONE)


def test_a_page_is_found_by_its_url(connection):
    frontier.discover(connection, [found("a")])
    url = "https://example.org/a"
    assert page.by_url(connection, url).page_id == 1
    assert page.by_url(connection, url + "x") is None
    assert page.by_url(connection, "https://none.example/a") is None
    assert page.for_visit(connection, 99) is None


@pytest.mark.parametrize("filters", [{}, {"host_id": 1}, {"site_id": 1, "host_id": 1}])
def test_a_paged_list_is_complete(connection, filters):
    frontier.discover(connection, [found(f"p{n}") for n in range(23)])
    after, seen = 0, []
    while rows := page.list_pages(connection, after=after, limit=5, **filters):
        seen += [row.page_id for row in rows]
        after = rows[-1].page_id
    assert sorted(seen) == list(range(1, 24))


def test_a_list_of_pages_is_filtered(connection):
    new = frontier.discover(connection, [found("a"), found("b"), found("c", host="h.example")])
    visits.record(connection, changed(new[0].page_id, b"x"))
    [row] = page.list_pages(connection, state=PageState.VISITED)
    assert row.url == "https://example.org/a"
    assert [r.url for r in page.list_pages(connection, host_id=2)] == ["https://h.example/c"]
    assert page.list_pages(connection, site_id=9) == []
