"""The known hosts: those in memory, at 5 KB each, and others that stay in the file, up to millions.

A host is *new* until its first turn. So many new hosts are in memory as keep every turn used; the
others stay in the file, and are loaded in the order of their numbers as turns are given to those
before them (`host_loader.py`). Hosts that were asked are always in memory. Files with fewer hosts
than that are loaded whole.

Invariant: a host that is not in memory and has never-visited pages has a number above `after`, or
was skipped since all its sites were inactive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import trio

from crawld.daemon.frontier.host import HostState

MOST_NEW: Final = 20_000
"""New hosts that want a turn, from which on others stay in the file: 100 MB. A daemon gives a
thousand turns a second at most, and loads hosts each second."""

MOST_DIRECT: Final = 2 * MOST_NEW
"""New hosts in memory up to which one is loaded at once whose turn in the order is over."""


class KnownHosts:
    """All known hosts by name, and which of them stay in the file.

    Attributes:
        after: hosts of greater numbers stay there, unless they are in memory for another reason;
            None: no host does.
        is_loading: hosts are being read: no host is left to the file meanwhile.
        any_left: set while hosts stay in the file.
        first_at: earliest first request to a host that was not loaded at the start (trio clock).
    """

    def __init__(self, hosts: Mapping[str, HostState], is_in_file: Callable[[str], bool]) -> None:
        """Leave no host in the file.

        Args:
            hosts: those in memory.
            is_in_file: whether a host is in the file.
        """
        self.after: int | None = None
        self.is_loading = False
        self.any_left = trio.Event()
        self.first_at = -math.inf
        self._hosts = hosts
        self._is_in_file = is_in_file
        self._new: dict[str, HostState] = {}
        self._skipped: int | None = None
        self._counted = bytearray()

    def __contains__(self, name: object) -> bool:
        if name in self._hosts:
            return True
        return self.after is not None and isinstance(name, str) and self._is_in_file(name)

    # --- which hosts stay in the file ------------------------------------------------------------

    def leave_after(self, host_id: int) -> None:
        """Let hosts of greater numbers stay in the file."""
        self.after = host_id if self.after is None else min(self.after, host_id)
        self.any_left.set()

    def loaded_up_to(self, host_id: int | None) -> None:
        """Note that the hosts up to a number are loaded; None: all."""
        self.after = host_id
        if host_id is None:
            self.any_left = trio.Event()

    def leaves(self, host_id: int, name: str) -> bool:
        """Whether a host that has a new page stays in the file."""
        if name in self._hosts or self.is_loading:
            return False
        if self.after is None or host_id <= self.after:
            if len(self._new) < MOST_DIRECT:
                return False
            self.leave_after(host_id - 1)
        return True

    def skip(self, host_id: int) -> None:
        """Note that a host is not loaded since all sites with pages there are inactive."""
        self._skipped = host_id if self._skipped is None else min(self._skipped, host_id)

    def retry_skipped(self) -> None:
        """Let the hosts be loaded that were skipped: other sites are active."""
        if self._skipped is not None:
            self.leave_after(self._skipped - 1)
            self._skipped = None

    # --- hosts in memory -------------------------------------------------------------------------

    def entered(self, name: str, host: HostState) -> None:
        """Count a host that is in memory from now on as new."""
        self._new[name] = host

    def asked(self, name: str) -> None:
        """Note that a host has a turn."""
        self._new.pop(name, None)

    def room(self) -> int:
        """Return how many more hosts may be loaded.

        Those that want no turn count a quarter, and those that wait for others of their address:
        a farm of hosts at one address must not keep all others in the file.
        """
        waiting = sum(host.slot.is_waiting for host in self._new.values())
        return MOST_NEW - waiting - (len(self._new) - waiting) // 4

    def count_once(self, host_id: int) -> bool:
        """Whether a host was not counted for its domain before; it is from now on."""
        at, bit = divmod(host_id, 8)
        if at >= len(self._counted):
            self._counted.extend(bytes(at + 1 - len(self._counted)))
        is_first = not self._counted[at] >> bit & 1
        self._counted[at] |= 1 << bit
        return is_first
