"""A host whose name leads to another address than when its turn was planned."""

import pytest
import trio

from tests.unit.daemon.fake_hosts import FakeTurns, HostPlan, make_schedule, on_autojump_clock


@pytest.mark.parametrize("borrows", [False, True])
@on_autojump_clock
async def test_a_host_that_has_moved_waits_for_its_new_address(borrows):
    """A turn was planned for the old one; a request that borrows a turn waits as a page does."""
    old, new = "192.0.2.1", "192.0.2.2"
    plans = {
        "a": HostPlan(turns=2, delay_s=4.0, address=new, address_delay_s=3.0, fetch_s=1.0),
        "b": HostPlan(turns=0 if borrows else 2, delay_s=4.0, address=old, open_at=0.5),
    }
    turns = FakeTurns(plans)
    schedule = make_schedule(turns, located=True)
    plans["b"].address = new

    async def borrow():
        for _ in range(2):
            async with schedule.borrow(schedule.host("b")):
                await turns.send_request(schedule.host("b"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        if borrows:
            nursery.start_soon(borrow)
        await trio.sleep(30.0)
        nursery.cancel_scope.cancel()
    assert turns.request_order().count("b") == 2
    assert {each.address for each in turns.requests} == {new}
    assert turns.early_requests() == []
