"""The decision on a host."""

from __future__ import annotations

from dataclasses import dataclass

from crawld.store.replica.replica import Status, WaitsFor


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a host.

    Attributes:
        canonical_id: the host to keep; the first of the group if none could be chosen.
        reason: for the operator.
        waits_for: what a held host waits for; None: it is not held.
        alternates: other hosts under which its pages may rest that are not as those of the host
            to keep, ascending.
    """

    server_id: int
    canonical_id: int
    status: Status
    reason: str
    waits_for: WaitsFor | None = None
    alternates: tuple[int, ...] = ()

    @classmethod
    def held(
        cls, server_id: int, canonical_id: int, reason: str, waits_for: WaitsFor = "operator"
    ) -> Decision:
        """Return the decision to hold a host."""
        return cls(server_id, canonical_id, "held", reason, waits_for)
