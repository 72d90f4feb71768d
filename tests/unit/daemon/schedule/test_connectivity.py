"""An outage pauses the crawl, is probed, and ends with the first sign of life."""

import trio

from crawld.core.page import Failure
from crawld.daemon.schedule.connectivity import PAUSE, Connectivity
from crawld.net.exchange import FetchFailure
from crawld.net.outage import PROBE_S
from crawld.net.resolver import ResolutionError
from tests.unit.daemon.fake_hosts import FakeTurns, HostPlan, make_schedule, on_autojump_clock


class FakeResolver:
    """A resolver whose answers a test decides."""

    def __init__(self):
        self.fails = {}
        self.queries = []

    async def resolve(self, host):
        self.queries.append((host, trio.current_time()))
        if (kind := self.fails.get(host, self.fails.get("*"))) is not None:
            raise ResolutionError(kind, host)
        return ("192.0.2.1",)


def broken(*, local):
    return FetchFailure(
        failure=Failure.CONNECT,
        detail="unreachable",
        address=None,
        sent_at=None,
        at=trio.current_time(),
        local_fault=local,
    )


class ConnectivityTurns(FakeTurns):
    """Hosts found through a `Connectivity`; a host without an address is not asked."""

    network: Connectivity

    async def locate(self, slot):
        return await self.network.locate(slot.host)

    async def turn(self, slot):
        if slot.address is None:
            slot.next_at = trio.current_time() + self.plans[slot.host].delay_s
            return
        await super().turn(slot)


@on_autojump_clock
async def test_no_name_found_pauses_the_crawl_until_one_is():
    resolver = FakeResolver()
    resolver.fails["*"] = "servfail"
    network = Connectivity(resolver)
    turns = ConnectivityTurns({f"h{n}": HostPlan(delay_s=1.0) for n in range(8)})
    turns.network = network
    schedule = make_schedule(turns)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(network.run, schedule)
        nursery.start_soon(schedule.run)
        await trio.sleep(10.0)
        assert network.down
        assert schedule.pauses == {PAUSE}
        await trio.sleep(3 * PROBE_S)
        asked = [at - began for _, at in resolver.queries]
        assert 4 <= len(asked) <= 4 * 8 + 8  # a probe each half minute, not one a second
        assert schedule.pauses == {PAUSE}
        resolver.fails.clear()
        await trio.sleep(PROBE_S + 60.0)
        assert not network.down
        assert schedule.pauses == set()
        assert turns.done
        schedule.stop()
        nursery.cancel_scope.cancel()


@on_autojump_clock
async def test_names_that_do_not_exist_are_no_outage():
    resolver = FakeResolver()
    resolver.fails["*"] = "nxdomain"
    network = Connectivity(resolver)
    for n in range(20):
        assert await network.locate(f"h{n}") is None
        assert not network.down


@on_autojump_clock
async def test_one_resolver_fault_among_many_hosts_is_no_outage():
    resolver = FakeResolver()
    resolver.fails["bad"] = "servfail"
    network = Connectivity(resolver)
    for n in range(6):  # reached, though they may have refused
        network.observed(f"h{n}", broken(local=False))
    for _ in range(20):
        await network.locate("bad")
        assert not network.down


@on_autojump_clock
async def test_fetches_bear_witness_too():
    network = Connectivity(FakeResolver())
    network.observed("a", broken(local=True))
    assert network.down
    network.observed("b", broken(local=False))
    assert not network.down


@on_autojump_clock
async def test_a_failure_in_the_pause_prolongs_it():
    network = Connectivity(FakeResolver())
    schedule = make_schedule(FakeTurns({}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(network.run, schedule)
        network.observed("a", broken(local=True))
        await trio.sleep(PROBE_S - 1.0)
        network.observed("b", broken(local=True))  # a turn that was under way
        await trio.sleep(2.0)
        assert schedule.pauses == {PAUSE}
        await trio.sleep(2 * PROBE_S)
        assert schedule.pauses == set()
        nursery.cancel_scope.cancel()
