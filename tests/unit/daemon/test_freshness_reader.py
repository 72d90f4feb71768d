"""The recent freshness is read in bounded pieces."""

import pytest
import trio.testing

from crawld.core.audit import AuditResult, day_of
from crawld.core.units import DAY_S
from crawld.daemon import freshness_reader
from crawld.daemon.clock import Clock
from crawld.daemon.freshness_reader import DAYS, MAX_SITE_HOSTS, FreshnessReader
from crawld.daemon.pacing import PART_ITEMS
from crawld.store import visit
from crawld.store.changes import audit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.mirror import selection
from crawld.store.versions import pin
from tests.daemon.harness import until
from tests.unit.store.rows import NOW, changed, found

TODAY = day_of(NOW)


@pytest.fixture
async def database(tmp_path, nursery):
    async with await Database.open(tmp_path / "f.db") as opened:
        await nursery.start(opened.run_writer)
        await opened.write(site.upsert, "docs", '{"settle_s": 1800}', source="config", at=NOW)
        yield opened


@pytest.fixture
def reader(database):
    return FreshnessReader(database, Clock(lambda: NOW))


def add_copies(connection, count):
    """Store two copies of some pages; the first is shown."""
    pages = frontier.discover(connection, [found(str(number)) for number in range(count)])
    for text, at in ((b"one %d", NOW - DAY_S), (b"two %d", NOW - 60.0)):
        for page in pages:
            visit.record(connection, changed(page.page_id, text % page.page_id, at))
    return [page.page_id for page in pages]


def add_audits(connection, hosts):
    sites = [f"https://host{number:04}.test/" for number in range(hosts)]
    new = frontier.discover(
        connection, [frontier.Discovery.of(url, site_id=1, at=NOW) for url in sites]
    )
    for page in new:
        audit.record(connection, 1, page.host_id, TODAY * DAY_S, AuditResult(fresh=1))
        audit.record(connection, 1, page.host_id, (TODAY - DAYS) * DAY_S, AuditResult(stale=1))


async def test_audits_of_the_last_days_are_summed(database, reader):
    assert reader.recent.sites == {}
    await database.write(add_audits, MAX_SITE_HOSTS + 20)
    await reader.read()
    assert reader.recent.since == (TODAY - DAYS + 1) * DAY_S
    found_site = reader.recent.sites[1]
    assert found_site.audited == AuditResult(fresh=MAX_SITE_HOSTS + 20)
    assert list(found_site.hosts.values()) == [AuditResult(fresh=1)] * MAX_SITE_HOSTS
    assert min(found_site.hosts) == "host0000.test"
    assert found_site.outdated is None


async def test_copies_held_back_are_counted_in_short_reads(database, reader, monkeypatch):
    await database.write(add_audits, 1)
    pages = await database.write(add_copies, 2 * PART_ITEMS + 1)
    await database.write(pin.put, pages[0], NOW, NOW - DAY_S)
    sizes, count = [], selection.count_outdated

    def counted(connection, page_ids, now):
        sizes.append(len(page_ids))
        return count(connection, page_ids, now)

    monkeypatch.setattr(selection, "count_outdated", counted)
    await reader.read()
    assert sizes == [PART_ITEMS, PART_ITEMS, 1]
    assert reader.recent.sites[1].outdated == 1.0


async def test_the_figures_are_read_again(database, reader, nursery, monkeypatch):
    monkeypatch.setattr(freshness_reader, "REFRESH_S", 0.01)
    nursery.start_soon(reader.run)
    await trio.testing.wait_all_tasks_blocked()
    await database.write(add_audits, 1)
    await until(lambda: 1 in reader.recent.sites)
