import numpy as np
import pytest

from crawld.core.page import Grace, Outcome, PageState
from crawld.core.units import DAY_S
from crawld.store import doctor, visit
from crawld.store.frontier import page as pages
from crawld.store.frontier import requisite, site
from crawld.store.versions import pin, quota
from tests.unit.steps import sql_steps
from tests.unit.store.revisions import compact, contents, record_page
from tests.unit.store.rows import NOW, changed, discover_in_full, found, unlike

RANDOM = np.random.default_rng(7)


def noise():
    return RANDOM.bytes(2000)


@pytest.fixture
def mirror(connection):
    """A page with four copies, a gone page, an image that is used and one that is not."""
    busy = record_page(connection, "busy", [(NOW + n * DAY_S, noise()) for n in range(4)])
    lost = record_page(connection, "lost", [(NOW, noise())])
    gone = unlike(lost, Outcome.GONE, NOW + 9, state=PageState.GONE, grace=Grace(3, NOW))
    visit.record(connection, gone)
    _, ids = discover_in_full(
        connection, [found("shown.png", requisite=True), found("needless.png", requisite=True)]
    )
    for page_id in ids:
        visit.record(connection, changed(page_id, noise(), NOW))
    requisite.put(connection, busy, ids[:1])
    return {"busy": busy, "lost": lost, "shown": ids[0], "needless": ids[1]}


def held(connection, site_id=None):
    usage = quota.usages(connection).get(site_id) or quota.unused(site_id)
    return {each.kind: each.copies for each in usage.holdings}


def test_usage_reports_evictable_copies(connection, mirror):
    assert held(connection) == {"superseded": 3, "needless": 1, "gone": 1}
    assert held(connection, 1) == held(connection)
    assert held(connection, 2) == {"superseded": 0, "needless": 0, "gone": 0}
    standing = quota.usages(connection)[1]
    assert standing.used_bytes == 7 * 2000
    assert [each.stored_bytes for each in standing.holdings] == [6000, 2000, 2000]


def test_the_report_of_many_sites_reads_each_copy_a_fixed_number_of_times(connection, mirror):
    def grow(until):
        for number in range(len(quota.usages(connection)), until):
            site_id = site.upsert(connection, f"s{number}", "{}", source="config", at=NOW)
            _, [page_id] = discover_in_full(connection, [found(f"{number}", site_id=site_id)])
            visit.record(connection, changed(page_id, noise(), NOW))
        return sql_steps(connection, quota.usages)

    few, many = grow(20), grow(80)
    assert len(quota.usages(connection)) == 80
    assert many < 4.5 * few


def test_the_oldest_copies_are_evicted_and_no_more_than_needed(connection, path, mirror):
    before = contents(connection, mirror["busy"])
    assert quota.evict(connection, "superseded", 3000) == ("superseded", 2, 4000)
    assert contents(connection, mirror["busy"]) == before[2:]
    assert quota.used_bytes(connection, 1) == 5 * 2000
    assert doctor.examine(path).findings == ()


def test_last_copies_of_live_pages_are_not_evicted(connection, path, mirror):
    compact(connection)
    for kind in quota.EVICTION_ORDER:
        while quota.evict(connection, kind, 10**9).copies:
            pass
    assert held(connection) == dict.fromkeys(quota.EVICTION_ORDER, 0)
    assert len(contents(connection, mirror["busy"])) == 1
    assert len(contents(connection, mirror["shown"])) == 1
    assert contents(connection, mirror["lost"]) == []
    assert pages.for_visit(connection, mirror["needless"]) is None
    assert connection.execute("SELECT requisite_count FROM site").get == 1
    assert doctor.examine(path).findings == ()


def test_a_pinned_copy_is_not_evicted(connection, mirror):
    first = contents(connection, mirror["busy"])[0]
    pin.put(connection, mirror["busy"], NOW, NOW)
    pin.put(connection, mirror["lost"], NOW, NOW)
    while quota.evict(connection, "superseded", 10**9).copies:
        pass
    assert quota.evict(connection, "gone", 10**9).copies == 0
    assert first in contents(connection, mirror["busy"])


def test_an_evicted_requisite_can_be_discovered_again(connection, mirror):
    quota.evict(connection, "needless", 1)
    new, _ = discover_in_full(connection, [found("needless.png", requisite=True)])
    assert len(new) == 1
