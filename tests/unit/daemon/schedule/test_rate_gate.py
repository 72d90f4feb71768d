"""Turns of hosts that share rates, on a mock clock."""

from collections import Counter

import pytest
import trio

from crawld.core.request_rate import RequestRate
from crawld.core.turn_order import LEAST_SHARE, Lane
from crawld.daemon.schedule.schedule import LOCATION_MAX_AGE_S
from crawld.daemon.schedule.slots import RateGate
from tests.unit.daemon.fake_hosts import (
    FakeTurns,
    HostPlan,
    make_schedule,
    on_autojump_clock,
    places_of,
)


def make_gate(requests_per_s, name="all", **more):
    return RateGate(name, RequestRate(requests_per_s, None, **more), new_share=0.5)


def plans_of(number, **more):
    """Return plans of hosts, each on an address of its own."""
    return {
        f"h{n}": HostPlan(address=f"192.0.2.{n}", address_delay_s=0.0, **more)
        for n in range(number)
    }


def make_gated(turns, gates_of, **more):
    schedule = make_schedule(turns, **more)
    for slot in schedule:
        schedule.set_gates(slot, gates_of(slot))
    return schedule


def make_two_gated(turns, site, whole, of_site):
    """Return a schedule with a gate for some hosts and one for all."""
    return make_gated(
        turns, lambda slot: (site, whole) if slot.host in of_site else (whole,), located=True
    )


async def serve(schedule, turns, for_s=None):
    """Run a schedule until no host wants another turn, or for some time."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        if for_s is None:
            await turns.wait_done()
        else:
            await trio.sleep(for_s)
        schedule.stop()


def sent_times(turns, hosts=None):
    return sorted(each.sent_at for each in turns.requests if hosts is None or each.host in hosts)


def most_in_a_window(times, length_s):
    return max(sum(start <= each < start + length_s for each in times) for start in times)


@on_autojump_clock
async def test_requests_of_all_hosts_are_evenly_spaced():
    gate = make_gate(0.5)
    turns = FakeTurns(plans_of(40, turns=5, delay_s=1.0, fetch_s=7.0))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    began = trio.current_time()
    await serve(schedule, turns)
    times = sent_times(turns)
    assert len(times) == 200
    for slots in range(1, 20):
        assert most_in_a_window(times, 2.0 * slots - 1e-6) <= slots + 1
    assert times[-1] - began == pytest.approx(199 * 2.0, abs=2.0)  # and the rate is used up
    assert turns.early_requests() == []
    assert len(turns.stored) == 200


@on_autojump_clock
async def test_the_rate_is_divided_by_the_shares_of_the_hosts():
    gate = make_gate(1.0)
    turns = FakeTurns(plans_of(3, turns=10_000, delay_s=0.1))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    for slot, share in zip(schedule, (0.3, 0.7, 2.0), strict=True):
        slot.share = share
    await serve(schedule, turns, for_s=300.5)
    counts = Counter(each.host for each in turns.requests)
    assert [counts[f"h{n}"] for n in range(3)] == pytest.approx([30, 70, 200], abs=3)


@on_autojump_clock
async def test_a_host_whose_delay_is_longer_leaves_its_turns_to_the_others():
    gate = make_gate(1.0)
    plans = plans_of(2, turns=10_000, delay_s=0.1)
    plans["h0"].delay_s = 20.0
    turns = FakeTurns(plans)
    await serve(make_gated(turns, lambda slot: (gate,), located=True), turns, for_s=200.5)
    counts = Counter(each.host for each in turns.requests)
    assert counts["h0"] == pytest.approx(10, abs=1)
    assert sum(counts.values()) == pytest.approx(200, abs=2)


@on_autojump_clock
async def test_no_host_starves_at_a_rate_far_too_small():
    gate = make_gate(0.1)
    turns = FakeTurns(plans_of(40, turns=10_000, delay_s=1.0))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    for slot in schedule:
        slot.share = 0.0 if slot.host == "h0" else 1.0
    await serve(schedule, turns, for_s=2.5 * 40 / LEAST_SHARE / 0.1)
    counts = Counter(each.host for each in turns.requests)
    assert len(counts) == 40
    assert counts["h0"] >= 2


@on_autojump_clock
async def test_urgent_work_comes_first_also_if_it_comes_while_its_host_waits():
    gate = make_gate(0.1)
    turns = FakeTurns(plans_of(50))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(26.0)
        sent = len(turns.requests)
        turns.plans["h49"].lane = Lane.DUE
        schedule.wake(schedule.host("h49"))
        await trio.sleep(10.0)
        schedule.stop()
    assert turns.request_order()[sent] == "h49"


@on_autojump_clock
async def test_a_site_and_the_whole_crawl_are_limited_at_the_same_time():
    site, whole = make_gate(0.2, "site"), make_gate(1.0)
    turns = FakeTurns(plans_of(20, turns=10_000, delay_s=1.0))
    of_site = {f"h{n}" for n in range(10)}
    schedule = make_two_gated(turns, site, whole, of_site)
    await serve(schedule, turns, for_s=300.5)
    all_times, site_times = sent_times(turns), sent_times(turns, of_site)
    for slots in range(1, 10):
        assert most_in_a_window(all_times, slots - 1e-6) <= slots + 1
        assert most_in_a_window(site_times, 5.0 * slots - 1e-6) <= slots + 1
    assert len(all_times) == pytest.approx(301, abs=2)
    assert len(site_times) == pytest.approx(60, abs=4)


@on_autojump_clock
async def test_urgent_work_of_a_limited_site_does_not_wait_behind_a_revisit_of_it():
    site, whole = make_gate(1.0, "site"), make_gate(0.01)
    turns = FakeTurns(plans_of(60))
    schedule = make_two_gated(turns, site, whole, {"h0", "h1"})
    whole.rate.hold(trio.current_time() + 50.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(10.0)
        turns.plans["h1"].lane = Lane.DUE
        schedule.wake(schedule.host("h1"))
        await trio.sleep(45.0)
        schedule.stop()
    assert turns.request_order() == ["h1"]


@on_autojump_clock
async def test_turns_that_send_nothing_use_no_slot():
    class Idle(FakeTurns):
        async def turn(self, slot):
            if slot.host != "h5":
                self.plans[slot.host].turns -= 1
            else:
                await super().turn(slot)

    gate = make_gate(0.01)
    turns = Idle(plans_of(6))
    began = trio.current_time()
    await serve(make_gated(turns, lambda slot: (gate,), located=True), turns)
    [request] = turns.requests
    assert request.host == "h5"
    assert request.sent_at - began <= 1.0


@on_autojump_clock
async def test_hosts_of_one_address_and_old_addresses_keep_their_place():
    gate = make_gate(0.01)
    plans = {
        f"h{n}": HostPlan(
            turns=2, address="192.0.2.1", address_delay_s=30.0, delay_s=1.0, lane=Lane.NEW
        )
        for n in range(12)
    }
    turns = FakeTurns(plans)
    schedule = make_gated(turns, lambda slot: (gate,))
    assert 1.0 / gate.rate.rate * len(plans) > LOCATION_MAX_AGE_S
    await serve(schedule, turns)
    order = turns.request_order()
    assert set(order[:12]) == set(order[12:]) == set(plans)
    assert turns.early_requests() == []
    assert max(Counter(turns.located).values()) > 1


@on_autojump_clock
async def test_a_host_that_waits_at_a_gate_is_in_no_other_place():
    gate = make_gate(0.01)
    turns = FakeTurns(plans_of(3))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(5.0)
        assert [places_of(schedule, slot) for slot in schedule] == [
            ["parked"],
            ["gated"],
            ["gated"],
        ]
        schedule.stop()


@on_autojump_clock
async def test_hosts_whose_limit_is_lifted_are_served_at_once():
    gate = make_gate(1.0 / 86_400.0)
    turns = FakeTurns(plans_of(5))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(5.0)
        assert len(turns.requests) == 1
        for slot in schedule:
            schedule.set_gates(slot, ())
        await trio.sleep(5.0)
        assert len(turns.requests) == 5
        schedule.stop()


@on_autojump_clock
async def test_urgent_work_of_a_host_that_wanted_nothing_passes_a_revisit_of_its_site():
    site, whole = make_gate(1.0, "site"), make_gate(0.01)
    turns = FakeTurns(plans_of(2))
    turns.plans["h1"].turns = 0
    schedule = make_gated(turns, lambda slot: (site, whole), located=True)
    whole.rate.hold(trio.current_time() + 50.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(10.0)
        assert site.holder is schedule.host("h0")
        turns.plans["h1"].turns, turns.plans["h1"].lane = 1, Lane.DUE
        schedule.wake(schedule.host("h1"))
        await trio.sleep(45.0)
        schedule.stop()
    assert turns.request_order() == ["h1"]


@on_autojump_clock
async def test_a_host_whose_address_is_busy_holds_no_gate():
    gate = make_gate(0.1)
    plans = {
        "h0": HostPlan(address="192.0.2.1", address_delay_s=300.0, lane=Lane.NEW),
        "h1": HostPlan(address="192.0.2.1", address_delay_s=300.0, lane=Lane.NEW),
        "h2": HostPlan(address="192.0.2.2", address_delay_s=0.0, delay_s=1.0, turns=8),
    }
    turns = FakeTurns(plans)
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    gate.rate.hold(trio.current_time() + 5.0)  # both of the address wait for the rate
    await serve(schedule, turns, for_s=100.0)
    counts = Counter(each.host for each in turns.requests)
    assert counts == {"h0": 1, "h2": 8} or counts == {"h1": 1, "h2": 8}


@on_autojump_clock
async def test_a_host_whose_address_cannot_be_found_holds_no_gate():
    gate = make_gate(1.0 / 500.0)
    plans = {
        "dead": HostPlan(turns=9, address=None, locate_s=40.0, delay_s=1.0, lane=Lane.NEW),
        "other": HostPlan(turns=9, open_at=300.0, delay_s=1.0, lane=Lane.NEW),
    }
    turns = FakeTurns(plans)
    began = trio.current_time()
    schedule = make_gated(turns, lambda slot: (gate,))
    gate.rate.hold(began + 1_000.0)  # both addresses are old by then
    await serve(schedule, turns, for_s=1_020.0)
    assert [each.host for each in turns.requests] == ["other"]


@on_autojump_clock
async def test_a_lent_turn_uses_a_slot_too():
    gate = make_gate(0.01)
    turns = FakeTurns(plans_of(3))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    polled = schedule.host("h2")
    turns.plans["h2"].turns = 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await turns.wait_done()
        began = max(each.sent_at for each in turns.requests)
        turns.plans["h2"].lane = Lane.DUE
        async with schedule.borrow(polled):
            await turns.send_request(polled)
        schedule.stop()
    assert turns.requests[-1].host == "h2"
    assert turns.requests[-1].sent_at - began >= 50.0
    assert gate.next_at - turns.requests[-1].sent_at >= 50.0


@on_autojump_clock
async def test_a_host_that_wants_nothing_any_more_leaves_the_gate_to_the_others():
    gate = make_gate(0.01)
    turns = FakeTurns(plans_of(3, lane=Lane.NEW))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    gate.rate.hold(trio.current_time() + 50.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(10.0)
        first, *others = list(gate.order)
        turns.plans[first.host].turns = 0
        await turns.wait_done()
        schedule.stop()
    assert {each.host for each in turns.requests} == {slot.host for slot in others}


@on_autojump_clock
async def test_bytes_that_arrive_while_hosts_wait_make_them_wait_longer():
    gate = make_gate(0.1)
    gate.rate.change(0.1, 1_000.0, trio.current_time())
    turns = FakeTurns(plans_of(2))
    schedule = make_gated(turns, lambda slot: (gate,), located=True)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(schedule.run)
        await trio.sleep(3.0)
        gate.rate.receive(100_000)
        await turns.wait_done()
        schedule.stop()
    first, second = sent_times(turns)
    assert (first - began, second - began >= 100.0) == (0.0, True)
