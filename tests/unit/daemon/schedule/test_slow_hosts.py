"""Times of the turns of hosts that answer long after they have a request."""

import trio

from tests.unit.daemon.fake_hosts import FakeTurns, HostPlan, make_schedule, on_autojump_clock


async def serve(schedule, turns):
    """Run a schedule until no host wants another turn."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await turns.wait_done()
        schedule.stop()


@on_autojump_clock
async def test_the_delays_of_a_slow_host_and_its_address_start_when_it_has_the_request():
    plan = HostPlan(turns=2, delay_s=10.0, fetch_s=2.0, arrival_s=0.5, address_delay_s=3.0)
    turns = FakeTurns({"a": plan, "b": HostPlan(address_delay_s=3.0)})
    began = trio.current_time()
    await serve(make_schedule(turns, located=True), turns)
    sent_at = {(each.host, each.sent_at - began) for each in turns.requests}
    assert sent_at == {("a", 0.0), ("b", 3.5), ("a", 10.5)}


@on_autojump_clock
async def test_a_host_is_never_asked_twice_at_a_time_however_slow_it_is():
    turns = FakeTurns({"a": HostPlan(turns=3, delay_s=1.0, fetch_s=5.0, arrival_s=0.25)})
    began = trio.current_time()
    await serve(make_schedule(turns), turns)
    assert [each.sent_at - began for each in turns.requests] == [0.0, 5.0, 10.0]
