"""How often the sites of a host are audited."""

from types import SimpleNamespace

import trio

from crawld.config.model import Config
from crawld.core.politeness import DelayRules
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.frontier.host import HostState
from crawld.daemon.jobs.audit import AuditJob, next_count_s
from crawld.daemon.schedule.slots import HostSlot
from crawld.store.changes.audit import CopyCount
from tests.unit.daemon.fake_hosts import NoSharedRates, on_autojump_clock

DELAY_S = 2.0


def make_host(number):
    host = HostState(number, HostSlot(f"h{number}.test", trio.current_time()))
    host.apply_rules([DelayRules(host_delay_s=DELAY_S)])
    return host


@on_autojump_clock
async def test_the_sites_of_a_host_share_its_audits():
    shared, own = make_host(1), make_host(2)
    counts = [CopyCount(1, 1, 100), CopyCount(2, 1, 10), CopyCount(3, 1, 30), CopyCount(3, 2, 300)]

    async def read(_):
        return counts

    state = SimpleNamespace(
        hosts={"h1.test": shared, "h2.test": own},
        sites={number: SimpleNamespace(paused=False) for number in (1, 2, 3)},
        rates=NoSharedRates(),
    )
    context = CrawlContext(
        state, SimpleNamespace(read=read), Clock(), None, None, None, lambda: Config()
    )
    job = AuditJob(context, None)
    await job._count()
    sites = await job._sites()
    by_host = {1: 0.0, 2: 0.0}
    for site in sites:
        pages = sum(held.pages for _, held in site.hosts)
        for host, held in site.hosts:
            by_host[host.host_id] += site.rate * held.pages / pages
    share = Config().jobs.audit_share
    assert all(rate * DELAY_S <= share * 1.001 for rate in by_host.values())
    assert max(by_host.values()) * DELAY_S > 0.6 * share


def test_copies_are_counted_often_in_a_young_mirror_and_seldom_in_a_large_one():
    assert next_count_s(0.0, 0.001) == 0.5
    assert next_count_s(40.0, 0.001) == 40.0
    assert next_count_s(3_000.0, 0.1) == 300.0
    assert next_count_s(3_000.0, 8.0) == 800.0  # ten million copies on a busy machine
    assert next_count_s(3_000.0, 0.1, equal=2) == 1_200.0  # an old mirror has what it had
    assert next_count_s(3_000.0, 0.1, equal=90) == 4_800.0
