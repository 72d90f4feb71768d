"""Gates: rates that many hosts share, and the hosts that wait for them.

A host passes its gates from the narrowest to the widest: that of its group, those of its sites,
that of the whole crawl. A gate lets one host pass at a time. The host *holds* it until its turn
begins, which uses a slot of each gate at the same time; if it waits at a wider gate meanwhile, a
host with more urgent work takes its place. A crawl without limits has no gates.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawld.core.request_rate import TakenSlot
from crawld.core.turn_order import Lane
from crawld.daemon.schedule.slots import HostSlot, RateGate, Turn


def pass_gates(slot: HostSlot, lane: Lane, now: float) -> RateGate | None:
    """Let a host pass its gates; return the one where it waits, None: it has passed all.

    Args:
        lane: what it waits for.
        now: trio's clock.
    """
    for gate in slot.gates:
        gate.order.arrive(slot)
    for gate in slot.gates:
        if gate.holder is slot:
            continue
        gate.give_way(lane)
        if gate.next_at > now or len(gate.order):
            gate.let_wait(slot, lane)
            return gate
        gate.holder = slot
    return None


def leave_gates(slot: HostSlot, *, returns: bool = False) -> Sequence[RateGate]:
    """Let a host hold and wait for no gate; return those that others may pass now.

    Args:
        returns: whether it keeps its place, since it only waits for its address.
    """
    slot.gate = None
    freed = []
    for gate in slot.gates:
        gate.order.discard(slot)
        if not returns:
            gate.order.forget(slot)
        if gate.holder is slot:
            gate.holder = None
            freed.append(gate)
    return freed


def take_slots(slot: HostSlot, now: float) -> list[tuple[RateGate, TakenSlot]]:
    """Use a slot of each gate that a host holds; its turn begins."""
    taken = []
    for gate in slot.gates:
        gate.holder = None
        gate.order.served(slot, slot.share)
        taken.append((gate, gate.rate.take(now)))
    return taken


def end_slots(turn: Turn) -> None:
    """End the slots that a turn used; they are free again if it sent no request."""
    for gate, taken in turn.taken:
        if turn.counts_from is None:
            gate.rate.give_back(taken)
        else:
            gate.rate.end(taken)
