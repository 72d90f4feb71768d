"""Times and order of the turns of hosts and addresses, on a mock clock."""

import math
import sys
from functools import partial

import trio
import trio.testing

from crawld.daemon.schedule.lateness import LATENESS_SAMPLES, Lateness
from crawld.daemon.schedule.schedule import (
    HORIZON_S,
    LOCATING_AT_ONCE,
    LOCATION_MAX_AGE_S,
)
from tests.unit.daemon.fake_hosts import (
    FakeTurns,
    HostPlan,
    make_schedule,
    on_autojump_clock,
    places_of,
)


async def serve(schedule, turns):
    """Run a schedule until no host wants another turn."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await turns.wait_done()
        schedule.stop()


@on_autojump_clock
async def test_the_delay_of_a_host_starts_at_each_response():
    turns = FakeTurns({"a": HostPlan(turns=3, delay_s=10.0, fetch_s=2.0)})
    began = trio.current_time()
    await serve(make_schedule(turns), turns)
    assert [each.sent_at - began for each in turns.requests] == [0.0, 12.0, 24.0]


@on_autojump_clock
async def test_hosts_of_one_address_share_its_delay():
    plans = {name: HostPlan(address="192.0.2.1", address_delay_s=3.0) for name in "abc"}
    plans["other"] = HostPlan(address="192.0.2.2", address_delay_s=3.0)
    turns = FakeTurns(plans)
    began = trio.current_time()
    await serve(make_schedule(turns), turns)
    sent_at = {each.host: each.sent_at - began for each in turns.requests}
    assert sorted(sent_at[name] for name in "abc") == [0.0, 3.25, 6.5]
    assert sent_at["other"] == 0.0


@on_autojump_clock
async def test_an_address_serves_its_hosts_in_order():
    names = [f"h{n}" for n in range(30)]
    plans = {name: HostPlan(turns=3, delay_s=1.0, address_delay_s=1.0) for name in names}
    turns = FakeTurns(plans)
    await serve(make_schedule(turns), turns)
    order = turns.request_order()
    assert order[:30] == order[30:60] == order[60:]


@on_autojump_clock
async def test_hosts_queued_at_an_address_are_served_before_hosts_due_later():
    # c is due at the time when the address of a and b is free again; only one turn runs at a time.
    plans = {
        "a": HostPlan(fetch_s=1.0, address_delay_s=4.0),
        "b": HostPlan(open_at=1.5),
        "c": HostPlan(open_at=5.0),
    }
    turns = FakeTurns(plans)
    schedule = make_schedule(turns, max_on_turn=1, located=True)
    with trio.fail_after(100):
        await serve(schedule, turns)
    assert turns.request_order() == ["a", "b", "c"]
    assert turns.early_requests() == []


@on_autojump_clock
async def test_every_host_is_served_with_few_turns_at_a_time():
    plans = {
        f"h{n}": HostPlan(turns=4, delay_s=0.7 + n % 5, address_delay_s=0.3) for n in range(40)
    }
    turns = FakeTurns(plans)
    await serve(make_schedule(turns, max_on_turn=3), turns)
    assert len(turns.requests) == 160
    assert turns.max_at_once <= 3
    assert turns.early_requests() == []


@on_autojump_clock
async def test_as_many_turns_run_as_the_limit_permits():
    plans = {f"h{n}": HostPlan(address=f"192.0.2.{n}", fetch_s=5.0) for n in range(20)}
    turns = FakeTurns(plans)
    began = trio.current_time()
    await serve(make_schedule(turns, max_on_turn=10), turns)
    assert turns.max_at_once == 10
    assert sorted({each.sent_at - began for each in turns.requests}) == [0.0, 5.0]


@on_autojump_clock
async def test_a_host_without_an_address_gets_turns_and_delays_no_other():
    turns = FakeTurns(
        {"lost": HostPlan(address=None, fetch_s=50.0, turns=2), "a": HostPlan(), "b": HostPlan()}
    )
    began = trio.current_time()
    await serve(make_schedule(turns), turns)
    assert [each.sent_at - began for each in turns.requests if each.host == "lost"] == [0.0, 60.0]
    assert max(e.response_at for e in turns.requests if e.host != "lost") - began == 1.5


@on_autojump_clock
async def test_an_address_is_looked_up_again_when_it_is_old():
    pages = 1 + math.ceil(2.5 * LOCATION_MAX_AGE_S / 100.0)
    turns = FakeTurns({"a": HostPlan(turns=pages, delay_s=100.0, fetch_s=0.0)})
    await serve(make_schedule(turns), turns)
    assert turns.located == ["a"] * 3


@on_autojump_clock
async def test_lookups_hold_no_turn():
    plans = {f"h{n}.d{n}.test": HostPlan(locate_s=300.0) for n in range(500)}
    plans["known"] = HostPlan(turns=60, delay_s=1.0, fetch_s=0.0, address="192.0.2.9")
    turns = FakeTurns(plans)
    schedule = make_schedule(turns, max_on_turn=1)
    known = schedule.host("known")
    known.address, known.located_at = "192.0.2.9", trio.current_time()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(60.0)
        schedule.stop()  # and the lookups under way end
    assert trio.current_time() - began == 60.0
    assert [each.sent_at - began for each in turns.requests] == list(range(60))
    assert len(turns.located) == LOCATING_AT_ONCE * 3 // 4


@on_autojump_clock
async def test_no_lookup_begins_during_a_pause():
    most = LOCATING_AT_ONCE * 3 // 4
    turns = FakeTurns({f"h{n}.d{n}.test": HostPlan(locate_s=10.0) for n in range(2 * most)})
    schedule = make_schedule(turns)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(5.0)
        schedule.pause("network")
        await trio.sleep(60.0)
        assert len(turns.located) == most
        schedule.resume("network")
        await trio.sleep(5.0)
        assert len(turns.located) == 2 * most
        schedule.stop()


@on_autojump_clock
async def test_hosts_without_an_address_leave_turns_to_others():
    plans = {f"h{n}.d{n}.test": HostPlan(address=None, fetch_s=8.0) for n in range(500)}
    plans["known"] = HostPlan(turns=60, delay_s=1.0, fetch_s=0.0, address="192.0.2.9")
    turns = FakeTurns(plans)
    schedule = make_schedule(turns, max_on_turn=LOCATING_AT_ONCE)
    known = schedule.host("known")
    known.address, known.located_at = "192.0.2.9", trio.current_time()
    began = trio.current_time()
    with trio.fail_after(200.0):
        await serve(schedule, turns)
    sent_at = [each.sent_at - began for each in turns.requests if each.host == "known"]
    assert sent_at == list(range(60))


@on_autojump_clock
async def test_a_host_without_an_address_that_gets_no_turn_holds_up_no_lookup():
    class Closing(FakeTurns):
        async def locate(self, slot):
            address = await super().locate(slot)
            if address is None:
                self.plans[slot.host].turns = 0  # its pages are gone meanwhile
            return address

    plans = {f"h{n}.d{n}.test": HostPlan(address=None) for n in range(100)}
    turns = Closing(plans | {"h.good.test": HostPlan()})
    with trio.fail_after(60.0):
        await serve(make_schedule(turns), turns)
    assert [each.host for each in turns.requests] == ["h.good.test"]


@on_autojump_clock
async def test_hosts_of_many_domains_are_located_beside_a_slow_domain():
    plans = {f"h{n}.slow.test": HostPlan(locate_s=30.0) for n in range(300)}
    plans |= {f"h.d{n}.test": HostPlan(locate_s=0.1, address=f"192.0.2.{n}") for n in range(200)}
    turns = FakeTurns(plans)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(make_schedule(turns).run)
        await trio.sleep(20.0)
        nursery.cancel_scope.cancel()
    assert len(turns.requests) == 200
    assert max(each.sent_at for each in turns.requests) - began < 2.0


@on_autojump_clock
async def test_no_name_is_looked_up_during_a_pause():
    turns = FakeTurns({f"h{n}": HostPlan() for n in range(100)})
    schedule = make_schedule(turns)
    schedule.pause("operator")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(20.0)
        assert turns.located == []
        schedule.resume("operator")
        await turns.wait_done()
        schedule.stop()


@on_autojump_clock
async def test_waking_serves_a_parked_host_and_one_that_opens_earlier():
    turns = FakeTurns({"a": HostPlan(turns=0), "b": HostPlan(address="192.0.2.2", open_at=100.0)})
    schedule = make_schedule(turns)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(20.0)
        assert turns.requests == []
        assert places_of(schedule, schedule.host("a")) == ["parked"]
        turns.plans["a"].turns = 1
        turns.plans["b"].open_at = 0.0
        await schedule.wake_all()
        await trio.sleep(20.0)
        schedule.stop()
    assert sorted((each.host, each.sent_at - began) for each in turns.requests) == [
        ("a", 20.0),
        ("b", 20.0),
    ]


@on_autojump_clock
async def test_the_opening_time_of_a_host_is_checked_again_after_the_horizon():
    # A host closed for a year is checked again, so that a corrected wall clock opens it.
    turns = FakeTurns({"a": HostPlan(open_at=trio.current_time() + 365 * 86_400.0)})
    schedule = make_schedule(turns)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(1.0)
        turns.plans["a"].open_at = 0.0
        await trio.sleep(2 * HORIZON_S)
        schedule.stop()
    assert [each.sent_at - began for each in turns.requests] == [HORIZON_S]


@on_autojump_clock
async def test_turns_start_when_every_reason_to_pause_is_removed():
    turns = FakeTurns({"a": HostPlan(turns=1)})
    schedule = make_schedule(turns)
    schedule.pause("disk")
    schedule.pause("operator")
    schedule.pause("operator")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(50.0)
        schedule.resume("disk")
        await trio.sleep(50.0)
        assert (turns.requests, schedule.pauses) == ([], {"operator"})
        schedule.resume("operator")
        await trio.sleep(0.5)
        assert (len(turns.requests), schedule.pauses) == (1, set())
        schedule.stop()


@on_autojump_clock
async def test_a_pause_starts_no_turn_and_the_turn_under_way_ends():
    turns = FakeTurns({"a": HostPlan(turns=2, fetch_s=5.0, delay_s=1.0)})
    schedule = make_schedule(turns)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(1.0)
        schedule.pause("operator")
        began = trio.current_time()
        await schedule.wait_idle()
        assert trio.current_time() - began == 4.0
        await trio.sleep(100.0)
        assert len(turns.requests) == 1
        schedule.stop()


@on_autojump_clock
async def test_stop_waits_for_the_turns_under_way():
    turns = FakeTurns(
        {"a": HostPlan(turns=9, fetch_s=5.0), "b": HostPlan(turns=9, address="192.0.2.2")}
    )
    schedule = make_schedule(turns)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(1.0)
        schedule.stop()
    assert trio.current_time() - began == 5.0
    assert sorted(turns.request_order()) == ["a", "b"]


@on_autojump_clock
async def test_after_a_start_a_new_address_waits_first():
    turns = FakeTurns(
        {"a": HostPlan(), "b": HostPlan(address="192.0.2.2"), "lost": HostPlan(address=None)}
    )
    began = trio.current_time()
    await serve(make_schedule(turns, address_open_at=began + 7.0), turns)
    sent_at = {each.host: each.sent_at - began for each in turns.requests}
    assert sent_at == {"a": 7.0, "b": 7.0, "lost": 0.0}


@on_autojump_clock
async def test_a_new_slot_waits_before_its_first_turn():
    turns = FakeTurns({"a": HostPlan()})
    schedule = make_schedule(FakeTurns({}))
    schedule._turns = turns
    began = trio.current_time()
    schedule.wake(schedule.host("a", first_wait_s=15.0))
    assert schedule.host("a", first_wait_s=99.0).next_at == began + 15.0
    await serve(schedule, turns)
    assert [each.sent_at - began for each in turns.requests] == [15.0]


# --- borrowed turns --------------------------------------------------------------------------


@on_autojump_clock
async def test_a_borrowed_turn_keeps_the_delay():
    turns = FakeTurns({"a": HostPlan(turns=2, delay_s=10.0)})
    schedule = make_schedule(turns)
    slot, began = schedule.host("a"), trio.current_time()
    borrowed_at = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(1.0)
        async with schedule.borrow(slot):
            borrowed_at.append(trio.current_time() - began)
            assert places_of(schedule, slot) == ["on turn"]
            await turns.send_request(slot)
        await turns.wait_done()
        schedule.stop()
    assert borrowed_at == [10.25]  # before the second turn of its own
    assert [each.sent_at - began for each in turns.requests] == [0.0, 10.25, 20.5]


@on_autojump_clock
async def test_a_poll_comes_before_other_requests_that_wait_for_a_turn():
    turns = FakeTurns({"a": HostPlan(turns=1)})
    schedule = make_schedule(turns)
    slot = schedule.host("a")
    served = []

    async def borrow(name, *, first=False):
        async with schedule.borrow(slot, first=first):
            served.append(name)
            slot.next_at = trio.current_time() + 10.0

    async with trio.open_nursery() as nursery:
        slot.next_at = trio.current_time() + 5.0
        for name in ("history", "members", "poll"):
            nursery.start_soon(partial(borrow, name, first=name == "poll"))
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(schedule.run)
        await trio.sleep(40.0)
        schedule.stop()
    assert served == ["poll", "history", "members"]


@on_autojump_clock
async def test_a_borrowed_turn_without_a_request_starts_no_delay():
    turns = FakeTurns({"a": HostPlan(turns=1, delay_s=10.0)})
    schedule = make_schedule(turns)
    turns.plans["a"].open_at = began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        async with schedule.borrow(schedule.host("a")):
            await trio.sleep(3.0)
        await turns.wait_done()
        schedule.stop()
    assert [each.sent_at - began for each in turns.requests] == [3.0]


@on_autojump_clock
async def test_a_cancelled_borrow_uses_no_turn():
    turns = FakeTurns({"a": HostPlan(turns=2, delay_s=10.0)})
    schedule = make_schedule(turns)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(1.0)
        with trio.move_on_after(1.0):
            async with schedule.borrow(schedule.host("a")):
                raise AssertionError("the delay of the host is not over")
        await turns.wait_done()
        schedule.stop()
    assert [each.sent_at - began for each in turns.requests] == [0.0, 10.25]


@on_autojump_clock
async def test_the_turn_of_a_parked_host_can_be_borrowed():
    turns = FakeTurns({"a": HostPlan(turns=0)})
    schedule = make_schedule(turns)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        async with schedule.borrow(schedule.host("a")):
            await turns.send_request(schedule.host("a"))
        schedule.stop()
    assert len(turns.requests) == 1


@on_autojump_clock
async def test_two_hosts_of_one_address_can_borrow_from_each_other():
    turns = FakeTurns({"a": HostPlan(turns=0), "b": HostPlan(turns=0)})
    schedule = make_schedule(turns, max_on_turn=1)

    async def follow_redirect(first, second):
        with trio.CancelScope() as rest:
            async with schedule.borrow(schedule.host(first)):
                await turns.send_request(schedule.host(first))
                schedule.end_turn(schedule.host(first), rest)
                async with schedule.borrow(schedule.host(second)):
                    await turns.send_request(schedule.host(second))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        with trio.fail_after(1000):
            async with trio.open_nursery() as redirects:
                redirects.start_soon(follow_redirect, "a", "b")
                redirects.start_soon(follow_redirect, "b", "a")
        schedule.stop()
    assert len(turns.requests) == 4
    assert turns.early_requests() == []


@on_autojump_clock
async def test_stopping_cancels_tasks_that_ended_their_turn():
    turns = FakeTurns({"a": HostPlan(turns=0), "b": HostPlan(turns=0, open_at=math.inf)})
    schedule = make_schedule(turns)
    cancelled = []

    async def wait_for_b():
        with trio.CancelScope() as rest:
            async with schedule.borrow(schedule.host("a")):
                schedule.end_turn(schedule.host("a"), rest)
                async with schedule.borrow(schedule.host("b")):
                    raise AssertionError("b is closed")
        cancelled.append(rest.cancelled_caught)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        nursery.start_soon(wait_for_b)
        nursery.start_soon(wait_for_b)
        await trio.sleep(10.0)
        assert schedule.on_turn == 0
        schedule.stop()
    assert cancelled == [True, True]


# --- size and statistics ---------------------------------------------------------------------


@on_autojump_clock
async def test_100_000_hosts_need_few_tasks_and_little_memory():
    count, due = 100_000, 1_000
    plans = {
        f"h{n}": HostPlan(turns=2, delay_s=1e6, address=None, open_at=0.0 if n < due else 1e5 + n)
        for n in range(count)
    }
    turns = FakeTurns(plans)
    schedule = make_schedule(turns, max_on_turn=100)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(60.0)
        assert len(turns.requests) == due
        # Without an address; see below.
        assert turns.max_at_once == LOCATING_AT_ONCE * 3 // 4
        assert trio.lowlevel.current_statistics().tasks_living < 50
        assert schedule.statistics().hosts == count
        assert schedule.statistics().on_turn == 0
        schedule.stop()
    slot = schedule.host("h0")
    fields = (getattr(slot, name) for name in type(slot).__slots__)
    assert sys.getsizeof(slot) + sum(map(sys.getsizeof, fields)) < 700


def test_lateness_is_measured_over_the_last_samples():
    lateness = Lateness()
    assert lateness.quantile_ms(0.99) == 0.0
    for late_ms in range(1, 101):
        lateness.add(late_ms / 1000.0)
    assert (lateness.quantile_ms(0.5), lateness.quantile_ms(0.99)) == (51.0, 100.0)
    assert lateness.quantile_ms(1.0) == 100.0
    for _ in range(LATENESS_SAMPLES):
        lateness.add(0.25)
    assert lateness.quantile_ms(1.0) == 250.0
    lateness.forget()
    assert (lateness.count, lateness.quantile_ms(0.5)) == (0, 0.0)
