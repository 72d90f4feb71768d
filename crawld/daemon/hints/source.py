"""What a hint source is to the daemon: something that can be polled, or a stream that talks.

A source is asked for one thing at a time and keeps nothing in memory that it could not do without:
its cursor and record are the row handed in, and what it answers goes into the file in one
transaction with the next cursor. A process killed in between asks the same again.

1. Whatever a server does is a value: `Poll`, or `PollTrouble`. Nothing raises but bugs.
2. The source itself takes care that it asks inside the politeness of the host it asks
   (`ApiClient`, `Schedule.borrow`); one source of a host is polled at a time.
3. An instant of change is a span: from the earliest it can have happened to the latest. A copy
   made before the end of the span may be stale. An end in the future is cut to now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, runtime_checkable

import apsw

from crawld.store.changes.hint import PageHint
from crawld.store.changes.hint_source import SourceRow


class Hint(NamedTuple):
    """A page is said to have changed.

    Attributes:
        url: its canonical URL; one that is not held is passed over.
        first_at: the earliest instant of the change, Unix seconds.
        last_at: the latest: copies made before it count as stale.
    """

    url: str
    first_at: float
    last_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What a source answered.

    Attributes:
        at: instant of the answer, Unix seconds.
        hints: changes by URL. pages: changes by number of the page.
        cursor: where it goes on.
        told_until: all changes up to this instant have been told; None: it does not know.
        requests: what it cost.
        more: it has more to say at once.
        wait_s: when it wants to be asked again, None: when its turn in the budget comes.
        patience: how many times longer than its share of the turns asks it waits; at 1 the budget
            says when the next poll pays.
        found_urls: URLs it names, to be judged by the scope of its site as links are.
        cursor_updates: cursors of other sources of the host, moved with it.
        also_write: what else belongs into the transaction that takes the answer.
    """

    at: float
    hints: Sequence[Hint] = ()
    pages: Sequence[PageHint] = ()
    cursor: str | None = None
    told_until: float | None = None
    requests: int = 1
    more: bool = False
    wait_s: float | None = None
    patience: float = 1.0
    found_urls: Sequence[str] = ()
    cursor_updates: Sequence[tuple[int, str | None]] = ()
    also_write: Callable[[apsw.Connection], None] | None = None


@dataclass(frozen=True, slots=True)
class PollTrouble:
    """Why a source answered nothing.

    Attributes:
        trouble: one word.
        detail: short text for a person.
        pause_s: how long it is left alone; None: a pause that grows with each trouble in a row.
        requests: what it cost.
        limit: the most values it takes at once, where too many were the trouble and it says so.
    """

    trouble: str
    detail: str = ""
    pause_s: float | None = None
    requests: int = 1
    limit: int | None = None


HELD: Final = "held"
"""The trouble of a source that may not be asked now, and of which nothing is recorded."""


@runtime_checkable
class Source(Protocol):
    """A source that is asked again and again."""

    @property
    def row(self) -> SourceRow:
        """Its row as it was found."""

    @property
    def polite_host(self) -> str:
        """Name of the host that polls are sent to."""

    @property
    def is_free(self) -> bool:
        """Whether its polls cost no request."""

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Ask it once.

        Args:
            row: the source as the file has it now.
        """


Deliver = Callable[[Poll], Awaitable[None]]
"""Takes what a stream said; returns when it is in the file, so that a flood waits."""


AcceptPoll = Callable[[SourceRow, Poll], Awaitable[None]]
"""Stores what a source other than the one being polled said, and notifies the policies."""


class Stream(Protocol):
    """A source that talks by itself as long as the connection lasts."""

    @property
    def row(self) -> SourceRow:
        """Its row as it was found."""

    @property
    def polite_host(self) -> str:
        """Name of the host that is connected to."""

    @property
    def hosts(self) -> frozenset[str]:
        """Names of the hosts whose pages it tells of; where they change, it is heard anew."""

    async def listen(self, row: SourceRow, deliver: Deliver) -> PollTrouble:
        """Connect and hand on what comes, some at a time; return when the connection is over.

        Args:
            row: the source as the file has it now.
            deliver: takes what was said; its `Poll.cursor` is where the next connection goes on.
        """


class Finder(Protocol):
    """Knows one kind of source."""

    async def find(self) -> Sequence[Source | Stream]:
        """Return every source of the kind that may be asked now, entered in the file."""
