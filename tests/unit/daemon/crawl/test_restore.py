"""When hosts and pages have their first turn after a start."""

import math
from types import SimpleNamespace

import trio

from crawld.core.page import Outcome
from crawld.core.politeness import DelayRules
from crawld.core.revisit.due import RETRY_S
from crawld.daemon.crawl.restore import _first_waits, _restore_retries
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.schedule.schedule import START_SPREAD_S
from crawld.daemon.schedule.slots import HostSlot
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import site
from tests.unit.daemon.fake_hosts import on_autojump_clock
from tests.unit.store.rows import NOW, discover_in_full, found, unlike

DAY_S = 86_400.0


@on_autojump_clock
async def test_a_host_waits_its_delay_from_the_lock_of_the_file_on():
    opened_at = trio.current_time()
    hosts = {}
    for number in range(3):
        hosts[number] = HostState(number, HostSlot(f"h{number}.test", opened_at))
        hosts[number].apply_rules([DelayRules(host_delay_s=2.0)])
    state = SimpleNamespace(schedule=SimpleNamespace(hold_addresses=lambda wait_s: None), sites={})
    await trio.sleep(1.5)  # reading a large file
    _first_waits(state, hosts, opened_at)
    waits = [host.slot.next_at - opened_at for host in hosts.values()]
    assert waits == [2.0 + number * START_SPREAD_S for number in range(3)]


def prepare(connection, retry_times):
    site.upsert(connection, "one", "{}", source="config", at=NOW)
    pages = [found(f"{number}.png", requisite=True) for number in range(len(retry_times))]
    numbers = [page.page_id for page in discover_in_full(connection, pages).new]
    for page_id, retry_at in zip(numbers, retry_times, strict=True):
        record = unlike(page_id, Outcome.UNCHANGED, at=NOW - DAY_S, retry_at=retry_at)
        visit.record(connection, record)
    return numbers


async def test_an_image_that_became_due_just_before_the_start_has_a_due_time(tmp_path):
    queue = PageQueue(1, 1, "uniform", discovery_share=0.5, min_revisit_s=0.0, requisites=True)
    settings = SimpleNamespace(once=False)
    state = SimpleNamespace(
        sites={1: None}, settings=settings, pages_of=lambda host, site_id, requisites: queue
    )
    async with await Database.open(tmp_path / "w.db") as database:
        retry_times = [NOW - 9_000.0, NOW - 5.0, NOW + 5.0]
        numbers = await database.write(prepare, retry_times)
        await _restore_retries(state, database, {1: None}, NOW)
    assert queue.due_at(NOW) == NOW - 5.0 + RETRY_S
    assert [queue.take(NOW) for _ in range(3)] == [numbers[1], numbers[0], None]
    assert queue.due_at(NOW + 5.0) == math.inf
