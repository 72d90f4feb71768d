"""When hosts have their first turn after a start."""

from types import SimpleNamespace

import trio

from crawld.core.politeness import DelayRules
from crawld.daemon.crawl.restore import _first_waits
from crawld.daemon.frontier.host import HostState
from crawld.daemon.schedule.schedule import START_SPREAD_S
from crawld.daemon.schedule.slots import HostSlot
from tests.unit.daemon.fake_hosts import on_autojump_clock


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
