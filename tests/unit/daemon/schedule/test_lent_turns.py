"""Requests that are not for pages: polls come first, others give way to urgent pages for a time."""

from functools import partial

import pytest
import trio

from tests.unit.daemon.fake_hosts import FakeTurns, HostPlan, make_schedule, on_autojump_clock


class Urgent(FakeTurns):
    """Hosts with an edited page for each of their first `edited` turns."""

    edited = 0

    def is_urgent(self, slot):
        return self.edited > 0

    async def turn(self, slot):
        self.edited -= 1
        await super().turn(slot)


async def lend(schedule, turns, name, lent, **how):
    """Send one request in a lent turn, and note when."""
    slot = schedule.host(name)
    async with schedule.borrow(slot, **how):
        lent.append((how.get("patience_s", 0.0), trio.current_time()))
        await turns.send_request(slot)


@pytest.mark.parametrize(("edited", "waits"), [(0, 0), (4, 4), (50, 10)])
@on_autojump_clock
async def test_a_patient_request_comes_after_urgent_pages_for_a_limited_time(edited, waits):
    turns = Urgent({"a": HostPlan(turns=100, delay_s=1.0, fetch_s=0.0)})
    turns.edited = edited
    schedule, lent = make_schedule(turns, located=True), []
    began_at = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(lend, schedule, turns, "a", lent, patience_s=10.0))
        nursery.start_soon(schedule.run)
        await trio.sleep(20.0)
        nursery.cancel_scope.cancel()
    assert [at - began_at for _, at in lent] == [pytest.approx(waits, abs=1.01)]
    assert not turns.early_requests()


@on_autojump_clock
async def test_a_poll_passes_patient_requests_and_urgent_pages():
    turns = Urgent({"a": HostPlan(turns=100, delay_s=1.0, fetch_s=0.0)})
    turns.edited = 6
    schedule, lent = make_schedule(turns, located=True), []
    began_at = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        nursery.start_soon(partial(lend, schedule, turns, "a", lent, patience_s=10.0))
        await trio.sleep(2.5)
        nursery.start_soon(partial(lend, schedule, turns, "a", lent, first=True))
        await trio.sleep(20.0)
        nursery.cancel_scope.cancel()
    assert [(patience_s, at - began_at) for patience_s, at in lent] == [(0.0, 3.0), (10.0, 7.0)]


@pytest.mark.parametrize(("answered_s", "is_held"), [(4.5, False), (None, True)])
@on_autojump_clock
async def test_a_request_that_is_needed_no_longer_takes_no_turn(answered_s, is_held):
    turns = Urgent({"a": HostPlan(turns=100, delay_s=1.0, fetch_s=0.0)})
    turns.edited = 8
    schedule, unless, held = make_schedule(turns, located=True), trio.Event(), []
    slot = schedule.host("a")
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def ask():
            async with schedule.borrow(slot, patience_s=6.0, unless=[unless]) as holds:
                held.append(holds)
                if holds:
                    await turns.send_request(slot)

        nursery.start_soon(schedule.run)
        if answered_s is not None:
            await trio.sleep(answered_s)
            unless.set()
            await trio.testing.wait_all_tasks_blocked()
            assert held == [False]
            assert slot.tickets == []
        await trio.sleep(20.0)
        nursery.cancel_scope.cancel()
    assert held == [is_held]
    assert not turns.early_requests()
