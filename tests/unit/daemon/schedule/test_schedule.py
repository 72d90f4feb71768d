"""Host slots on a clock that jumps to the next instant anybody waits for."""

import math
import sys

import trio

from crawld.daemon.schedule.schedule import (
    HORIZON_S,
    LATENESS_SAMPLES,
    LOCATION_MAX_AGE_S,
    Lateness,
)
from tests.unit.daemon.fake_hosts import (
    FakeTurns,
    HostPlan,
    make_schedule,
    on_autojump_clock,
    places_of,
)


async def serve(schedule, turns):
    """Run a schedule until nobody wants a turn any more."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await turns.wait_done()
        schedule.stop()


@on_autojump_clock
async def test_a_host_rests_from_each_answer_on():
    turns = FakeTurns({"a": HostPlan(turns=3, delay_s=10.0, fetch_s=2.0)})
    began = trio.current_time()
    await serve(make_schedule(turns), turns)
    assert [each.sent_at - began for each in turns.requests] == [0.0, 12.0, 24.0]


@on_autojump_clock
async def test_hosts_of_one_address_rest_together_and_others_do_not():
    plans = {name: HostPlan(address="192.0.2.1", address_delay_s=3.0) for name in "abc"}
    plans["other"] = HostPlan(address="192.0.2.2", address_delay_s=3.0)
    turns = FakeTurns(plans)
    began = trio.current_time()
    await serve(make_schedule(turns), turns)
    at = {each.host: each.sent_at - began for each in turns.requests}
    assert sorted(at[name] for name in "abc") == [0.0, 3.25, 6.5]
    assert at["other"] == 0.0


@on_autojump_clock
async def test_an_address_serves_first_come_first():
    names = [f"h{n}" for n in range(30)]
    plans = {name: HostPlan(turns=3, delay_s=1.0, address_delay_s=1.0) for name in names}
    turns = FakeTurns(plans)
    await serve(make_schedule(turns), turns)
    order = turns.request_order()
    assert order[:30] == order[30:60] == order[60:]


@on_autojump_clock
async def test_nobody_passes_those_who_queue_at_an_address():
    # c comes due in the very instant at which the address of a and b is free again, and takes
    # the only turn there is
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
async def test_a_full_house_forgets_nobody():
    plans = {
        f"h{n}": HostPlan(turns=4, delay_s=0.7 + n % 5, address_delay_s=0.3) for n in range(40)
    }
    turns = FakeTurns(plans)
    await serve(make_schedule(turns, max_on_turn=3), turns)
    assert len(turns.requests) == 160
    assert turns.max_at_once <= 3
    assert turns.early_requests() == []


@on_autojump_clock
async def test_turns_are_used_up_to_the_limit():
    plans = {f"h{n}": HostPlan(address=f"192.0.2.{n}", fetch_s=5.0) for n in range(20)}
    turns = FakeTurns(plans)
    began = trio.current_time()
    await serve(make_schedule(turns, max_on_turn=10), turns)
    assert turns.max_at_once == 10
    assert sorted({each.sent_at - began for each in turns.requests}) == [0.0, 5.0]


@on_autojump_clock
async def test_a_host_that_is_not_found_has_its_turn_and_holds_nobody_up():
    turns = FakeTurns(
        {"lost": HostPlan(address=None, fetch_s=50.0, turns=2), "a": HostPlan(), "b": HostPlan()}
    )
    began = trio.current_time()
    await serve(make_schedule(turns), turns)
    assert [each.sent_at - began for each in turns.requests if each.host == "lost"] == [0.0, 60.0]
    assert max(e.response_at for e in turns.requests if e.host != "lost") - began == 1.5


@on_autojump_clock
async def test_an_address_is_asked_for_again_after_a_while():
    pages = 1 + math.ceil(2.5 * LOCATION_MAX_AGE_S / 100.0)
    turns = FakeTurns({"a": HostPlan(turns=pages, delay_s=100.0, fetch_s=0.0)})
    await serve(make_schedule(turns), turns)
    assert turns.located == ["a"] * 3


@on_autojump_clock
async def test_a_parked_host_wakes_and_an_eager_one_is_asked_sooner():
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
        schedule.wake_all()
        await trio.sleep(20.0)
        schedule.stop()
    assert sorted((each.host, each.sent_at - began) for each in turns.requests) == [
        ("a", 20.0),
        ("b", 20.0),
    ]


@on_autojump_clock
async def test_rules_of_the_wall_clock_are_asked_again_before_long():
    # a host that says "in a year" is asked again, so that a clock set right frees it
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
async def test_every_reason_to_pause_must_be_taken_back():
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
async def test_a_pause_lets_the_turn_under_way_end_and_starts_no_other():
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
async def test_an_address_first_met_waits_after_a_start():
    turns = FakeTurns(
        {"a": HostPlan(), "b": HostPlan(address="192.0.2.2"), "lost": HostPlan(address=None)}
    )
    began = trio.current_time()
    await serve(make_schedule(turns, address_wait_s=7.0), turns)
    at = {each.host: each.sent_at - began for each in turns.requests}
    assert at == {"a": 7.0, "b": 7.0, "lost": 0.0}


@on_autojump_clock
async def test_a_slot_made_with_a_wait_waits():
    turns = FakeTurns({"a": HostPlan()})
    schedule = make_schedule(FakeTurns({}))
    schedule._turns = turns
    began = trio.current_time()
    schedule.wake(schedule.host("a", first_wait_s=15.0))
    assert schedule.host("a", first_wait_s=99.0).next_at == began + 15.0
    await serve(schedule, turns)
    assert [each.sent_at - began for each in turns.requests] == [15.0]


# --- lent turns ------------------------------------------------------------------------------


@on_autojump_clock
async def test_a_lent_turn_is_a_turn():
    turns = FakeTurns({"a": HostPlan(turns=2, delay_s=10.0)})
    schedule = make_schedule(turns)
    slot, began = schedule.host("a"), trio.current_time()
    lent_at = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(1.0)
        async with schedule.borrow(slot):
            lent_at.append(trio.current_time() - began)
            assert places_of(schedule, slot) == ["on turn"]
            await turns.send_request(slot)
        await turns.wait_done()
        schedule.stop()
    assert lent_at == [10.25]  # before the second page
    assert [each.sent_at - began for each in turns.requests] == [0.0, 10.25, 20.5]


@on_autojump_clock
async def test_a_lent_turn_without_a_request_costs_no_rest():
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
async def test_whoever_gives_up_waiting_for_a_turn_wastes_none():
    turns = FakeTurns({"a": HostPlan(turns=2, delay_s=10.0)})
    schedule = make_schedule(turns)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(1.0)
        with trio.move_on_after(1.0):
            async with schedule.borrow(schedule.host("a")):
                raise AssertionError("the host rests")
        await turns.wait_done()
        schedule.stop()
    assert [each.sent_at - began for each in turns.requests] == [0.0, 10.25]


@on_autojump_clock
async def test_a_parked_host_lends_its_turn():
    turns = FakeTurns({"a": HostPlan(turns=0)})
    schedule = make_schedule(turns)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        async with schedule.borrow(schedule.host("a")):
            await turns.send_request(schedule.host("a"))
        schedule.stop()
    assert len(turns.requests) == 1


@on_autojump_clock
async def test_two_hosts_of_one_address_can_lend_each_other_their_turns():
    turns = FakeTurns({"a": HostPlan(turns=0), "b": HostPlan(turns=0)})
    schedule = make_schedule(turns, max_on_turn=1)

    async def lead(first, second):
        with trio.CancelScope() as chase:
            async with schedule.borrow(schedule.host(first)):
                await turns.send_request(schedule.host(first))
                schedule.end_turn(schedule.host(first), chase)
                async with schedule.borrow(schedule.host(second)):
                    await turns.send_request(schedule.host(second))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        with trio.fail_after(1000):
            async with trio.open_nursery() as leads:
                leads.start_soon(lead, "a", "b")
                leads.start_soon(lead, "b", "a")
        schedule.stop()
    assert len(turns.requests) == 4
    assert turns.early_requests() == []


@on_autojump_clock
async def test_stopping_ends_whoever_waits_without_a_turn():
    turns = FakeTurns({"a": HostPlan(turns=0), "b": HostPlan(turns=0, open_at=math.inf)})
    schedule = make_schedule(turns)
    ended = []

    async def wait_for_b():
        with trio.CancelScope() as chase:
            async with schedule.borrow(schedule.host("a")):
                schedule.end_turn(schedule.host("a"), chase)
                async with schedule.borrow(schedule.host("b")):
                    raise AssertionError("b is closed")
        ended.append(chase.cancelled_caught)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        nursery.start_soon(wait_for_b)
        nursery.start_soon(wait_for_b)
        await trio.sleep(10.0)
        assert schedule.on_turn == 0
        schedule.stop()
    assert ended == [True, True]


# --- size and figures ------------------------------------------------------------------------


@on_autojump_clock
async def test_a_hundred_thousand_hosts_cost_no_task_each():
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
        assert turns.max_at_once == 100
        assert trio.lowlevel.current_statistics().tasks_living < 50
        assert schedule.statistics().hosts == count
        assert schedule.statistics().on_turn == 0
        schedule.stop()
    slot = schedule.host("h0")
    fields = (getattr(slot, name) for name in type(slot).__slots__)
    assert sys.getsizeof(slot) + sum(map(sys.getsizeof, fields)) < 700


def test_lateness_knows_the_last_slots():
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
