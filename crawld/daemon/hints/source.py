"""Interfaces of hint sources: polled sources, streams, and the finders that list them.

A source keeps only expendable state in memory: its cursor and record come with the row,
and each result is stored in one transaction with the next cursor. A process killed in between
polls again from the old cursor.

1. Every outcome of a poll is a value: `Poll` or `PollTrouble`. An exception is a bug.
2. A source keeps to the politeness of the host it asks (`ApiClient`, `Schedule.borrow`). Only one
   source of a host is polled at a time.
3. The time of a change is a span from the earliest to the latest possible time. A copy made before
   the end of the span may be stale. An end in the future is cut to now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, runtime_checkable

import apsw

from crawld.store.changes.hint import PageHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.wiki_requisite import StaleRequisite
from crawld.store.frontier.removal import RemovalReport

CursorUpdates = Sequence[tuple[int, str | None]]
"""New cursors of other sources: (hint_source_id, cursor)."""


class Hint(NamedTuple):
    """A report that a page changed.

    Attributes:
        url: canonical URL; unknown URLs are ignored.
        first_at: earliest possible time of the change, Unix seconds.
        last_at: latest possible time; copies made before it may be stale.
    """

    url: str
    first_at: float
    last_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """The result of a poll.

    Attributes:
        at: time of the response, Unix seconds.
        hints: changes by URL; `pages` by page number.
        replaced: numbers of those of `pages` at whose URLs there is another page now.
        cursor: where the next poll continues.
        told_until: time up to which the source has reported every change; None: unknown.
        settled_until: time up to which changes that visits found are missed if no cause of them is
            known by now; None: as `told_until`.
        cause: the edited template whose pages are the hints; None: pages were edited themselves.
        more: whether the source has more results and should be polled again at once.
        wait_s: pause that the source wants; None: the budget decides.
        pause_factor: multiple of the least pause that the budget allows; 1: the budget estimates
            which pause pays.
        removals: pages that were deleted, moved away or found again; readers see it at once.
        requisites: requisites that changed: images uploaded again, styles that were edited.
        found_urls: URLs that the source names; the scope of its site decides on each, as on links.
        cursor_updates: new cursors of other sources of the host, stored in the same transaction.
        also_write: further writes for that transaction.
        on_stored: called when it is committed.
    """

    at: float
    hints: Sequence[Hint] = ()
    pages: Sequence[PageHint] = ()
    replaced: Set[int] = frozenset()
    cursor: str | None = None
    told_until: float | None = None
    settled_until: float | None = None
    cause: str | None = None
    requests: int = 1
    more: bool = False
    wait_s: float | None = None
    pause_factor: float = 1.0
    removals: Sequence[RemovalReport] = ()
    requisites: Sequence[StaleRequisite] = ()
    found_urls: Sequence[str] = ()
    cursor_updates: CursorUpdates = ()
    also_write: Callable[[apsw.Connection], None] | None = None
    on_stored: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class PollTrouble:
    """Why a poll failed.

    Attributes:
        trouble: one word for the kind of trouble.
        detail: short text for the operator.
        pause_s: pause before the next poll; None: a back-off that doubles with each failure.
        limit: most values per request that the server accepts, if it stated one.
        of_host: whether the whole host is in trouble, not only the source.
    """

    trouble: str
    detail: str = ""
    pause_s: float | None = None
    requests: int = 1
    limit: int | None = None
    of_host: bool = False


HELD: Final = "held"
"""Trouble of a source that must not be asked now; it is not recorded as a failure."""


@runtime_checkable
class Source(Protocol):
    """A source that is polled."""

    @property
    def row(self) -> SourceRow:
        """The database row, as read when the source was found."""

    @property
    def polite_host(self) -> str:
        """Name of the host that receives the requests."""

    @property
    def is_free(self) -> bool:
        """Whether polls need no request."""

    def is_waiting(self, row: SourceRow) -> bool:
        """Whether the first poll since the start is due at once: the stored cursor has work.

        The stored time of the next poll may be that of a source that had nothing to do.
        """

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Poll once; `row` is the row as stored now."""


Deliver = Callable[[Poll], Awaitable[None]]
"""Stores a result of a stream; returns after the commit, so that a flood is slowed down."""


AcceptPoll = Callable[[SourceRow, Poll], Awaitable[None]]
"""Stores a result for a source other than the one polled, and notifies the policies."""


class Stream(Protocol):
    """A source that sends changes over a long-lived connection."""

    @property
    def row(self) -> SourceRow:
        """The database row, as read when the source was found."""

    @property
    def polite_host(self) -> str:
        """Name of the host to connect to."""

    @property
    def hosts(self) -> frozenset[str]:
        """Names of the hosts whose pages it reports on; a stream with other hosts is restarted."""

    async def listen(self, row: SourceRow, deliver: Deliver) -> PollTrouble:
        """Connect and deliver results until the connection ends; return why it ended.

        `row` is the row as stored now; a delivered `Poll.cursor` is where the next connection
        continues.
        """


class Finder(Protocol):
    """Finds the sources of one kind."""

    async def find(self) -> Sequence[Source | Stream]:
        """Return every source that may be asked now; each has a row in the database."""
