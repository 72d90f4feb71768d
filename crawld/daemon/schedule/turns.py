"""What the schedule asks of the core loop."""

from __future__ import annotations

from typing import Protocol

from crawld.core.turn_order import Lane
from crawld.daemon.schedule.slots import HostSlot


class Turns(Protocol):
    """The callbacks of the schedule; the core loop implements them."""

    async def locate(self, slot: HostSlot) -> str | None:
        """Return the address of the host, None if it cannot be found now."""

    async def has_moved(self, slot: HostSlot) -> bool:
        """Whether the name of the host leads to another address now, which is then the slot's."""

    async def turn(self, slot: HostSlot) -> None:
        """Use the host's turn; calls `slot.rest_from` when a request was sent."""

    def wanted_at(self, slot: HostSlot) -> float | None:
        """Return when the host wants its next turn and may have it; None: it wants nothing."""

    def ticket_at(self, slot: HostSlot) -> float | None:
        """Return when a request other than for a page may use the host; None: not now."""

    def is_urgent(self, slot: HostSlot) -> bool:
        """Whether a page may be visited now that comes before patient requests."""

    def address_delay_s(self, slot: HostSlot) -> float:
        """Return the least time between two requests to the address of the host."""

    def turn_ended(self, slot: HostSlot) -> None:
        """Handle the end of the host's turn."""

    def lane(self, slot: HostSlot) -> Lane:
        """Return what the host waits for, where it shares a rate with others."""

    async def slots_taken(self, slot: HostSlot) -> None:
        """Store what must be known after a restart of the rates that a host uses, if anything."""
