"""An outage pauses the crawl, is probed, and ends with the first success."""

import trio

from crawld.core.page import Failure
from crawld.daemon.schedule.connectivity import PAUSE, Connectivity
from crawld.net.exchange import FetchFailure
from crawld.net.outage import PROBE_S
from crawld.net.resolver import ResolutionError
from tests.unit.daemon.fake_hosts import FakeTurns, HostPlan, make_schedule, on_autojump_clock


class FakeResolver:
    """A resolver that fails for the hosts in `fails` (\"*\": for all) and records its queries."""

    def __init__(self):
        self.fails = {}
        self.queries = []

    async def resolve(self, host):
        self.queries.append((host, trio.current_time()))
        if (kind := self.fails.get(host, self.fails.get("*"))) is not None:
            raise ResolutionError(kind, host)
        return ("192.0.2.1",)


def failed_fetch(*, local_fault):
    return FetchFailure(
        failure=Failure.CONNECT,
        detail="unreachable",
        address=None,
        sent_at=None,
        at=trio.current_time(),
        local_fault=local_fault,
    )


class ConnectivityTurns(FakeTurns):
    """Locates hosts through a `Connectivity`; sends nothing to a host without an address."""

    connectivity: Connectivity

    async def locate(self, slot):
        return await self.connectivity.locate(slot.host)

    async def turn(self, slot):
        if slot.address is None:
            slot.next_at = trio.current_time() + self.plans[slot.host].delay_s
            return
        await super().turn(slot)


@on_autojump_clock
async def test_resolver_failures_pause_the_crawl_until_a_name_is_found():
    resolver = FakeResolver()
    resolver.fails["*"] = "servfail"
    connectivity = Connectivity(resolver)
    turns = ConnectivityTurns({f"h{n}": HostPlan(delay_s=1.0) for n in range(8)})
    turns.connectivity = connectivity
    schedule = make_schedule(turns)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connectivity.run, schedule)
        nursery.start_soon(schedule.run)
        await trio.sleep(10.0)
        assert connectivity.down
        assert schedule.pauses == {PAUSE}
        await trio.sleep(3 * PROBE_S)
        assert 4 <= len(resolver.queries) <= 4 * 8 + 8  # a probe every 30 s, not every second
        assert schedule.pauses == {PAUSE}
        resolver.fails.clear()
        await trio.sleep(PROBE_S + 60.0)
        assert not connectivity.down
        assert schedule.pauses == set()
        assert turns.done
        schedule.stop()
        nursery.cancel_scope.cancel()


@on_autojump_clock
async def test_names_that_do_not_exist_are_no_outage():
    resolver = FakeResolver()
    resolver.fails["*"] = "nxdomain"
    connectivity = Connectivity(resolver)
    for n in range(20):
        assert await connectivity.locate(f"h{n}") is None
        assert not connectivity.down


@on_autojump_clock
async def test_one_resolver_fault_among_many_hosts_is_no_outage():
    resolver = FakeResolver()
    resolver.fails["bad"] = "servfail"
    connectivity = Connectivity(resolver)
    for n in range(6):  # an answer, even a refusal
        connectivity.observe_response(f"h{n}", failed_fetch(local_fault=False))
    for _ in range(20):
        await connectivity.locate("bad")
        assert not connectivity.down


@on_autojump_clock
async def test_fetch_failures_show_an_outage_and_its_end():
    connectivity = Connectivity(FakeResolver())
    connectivity.observe_response("a", failed_fetch(local_fault=True))
    assert connectivity.down
    connectivity.observe_response("b", failed_fetch(local_fault=False))
    assert not connectivity.down


@on_autojump_clock
async def test_a_failure_during_the_pause_prolongs_it():
    connectivity = Connectivity(FakeResolver())
    schedule = make_schedule(FakeTurns({}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connectivity.run, schedule)
        connectivity.observe_response("a", failed_fetch(local_fault=True))
        await trio.sleep(PROBE_S - 1.0)
        connectivity.observe_response("b", failed_fetch(local_fault=True))  # of a turn under way
        await trio.sleep(2.0)
        assert schedule.pauses == {PAUSE}
        await trio.sleep(2 * PROBE_S)
        assert schedule.pauses == set()
        nursery.cancel_scope.cancel()


@on_autojump_clock
async def test_a_lookup_without_an_open_file_is_no_outage():
    resolver = FakeResolver()
    resolver.fails["*"] = "no_files"
    connectivity = Connectivity(resolver)
    for n in range(20):
        assert await connectivity.locate(f"h{n}") is None
        assert not connectivity.down


@on_autojump_clock
async def test_a_success_ends_the_pause_at_once():
    connectivity = Connectivity(FakeResolver())
    schedule = make_schedule(FakeTurns({}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connectivity.run, schedule)
        connectivity.observe_response("a", failed_fetch(local_fault=True))
        await trio.sleep(1.0)
        assert schedule.pauses == {PAUSE}
        connectivity.observe_response("b", failed_fetch(local_fault=False))  # of a turn under way
        await trio.sleep(1.0)
        assert schedule.pauses == set()
        nursery.cancel_scope.cancel()
