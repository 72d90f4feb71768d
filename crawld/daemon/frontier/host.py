"""The state of one host: its slot, its politeness, its page queues.

Everything here is derived: from the host's row at start, from answers later. What must survive a
restart (back-off, Retry-After) is stored with the visit that caused it. In memory a Retry-After
counts on trio's clock, so that a jump of the wall clock does not free the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import trio

from crawld.core.politeness import (
    NO_BACKOFF,
    Backoff,
    DelayRules,
    QuietHours,
    base_delay_s,
    clamp_restored,
    effective_delay_s,
)
from crawld.core.revisit.due import AT_ONCE, REST_EVERY
from crawld.core.revisit.hints import SAME_TIME_S
from crawld.core.revisit.policies_index import OVERDUE_S
from crawld.core.robots import Robots
from crawld.core.turn_order import Lane
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.rank import Rank
from crawld.daemon.schedule.host_groups import GroupState
from crawld.daemon.schedule.slots import HostSlot
from crawld.store.frontier.host import HostUpdate

POLL_ROOM_S: Final = 0.05
"""Time after a poll is due in which it asks for the turn that was left to it."""

_LEADING: Final = {
    Rank.EDITED: Rank.EDITED,
    Rank.NEW: Rank.REVISIT,
    Rank.AFFECTED: Rank.AFFECTED,
    Rank.REVISIT: Rank.REVISIT,
}
"""The last rank that shares the turns with the most urgent pages of a host, none of which has a due
time: pages of these ranks of several sites take turns."""


class HostState:
    """A host under crawl.

    Attributes:
        slot: when it may be fetched next.
        pages: page queues by site number.
        requisites: queues of requisites by site number.
        backoff: the back-off after recent trouble.
        certificate: names on its last certificate, if this process has seen one.
        crawl_delay_s: the delay that its robots.txt asks for.
        group: the hosts it shares limits with; None: it has no group.
        poll_at: when (trio clock) the recent changes of its wiki are polled next.
        rules: politeness rules of the strictest site with pages here.
        hinted_at: when (trio clock) a hint of one of its pages was delivered last.
        shut_until: until when (trio clock) its pages wait and robots.txt is not fetched again.
        absence: why nobody was there to ask for robots.txt, at any of its origins; None: somebody
            was, or not all were tried.
    """

    __slots__ = (
        "_balance",
        "_closed_until",
        "_due_in_a_row",
        "_quiet",
        "_request_rate_delay_s",
        "_rest_turn",
        "_turn",
        "_visit_time",
        "absence",
        "backoff",
        "certificate",
        "crawl_delay_s",
        "group",
        "hinted_at",
        "host_id",
        "pages",
        "paused",
        "poll_at",
        "requisites",
        "rules",
        "shut_until",
        "slot",
    )

    def __init__(self, host_id: int, slot: HostSlot) -> None:
        self.host_id = host_id
        self.slot = slot
        self.rules = DelayRules()
        self.group: GroupState | None = None
        self.pages: dict[int, PageQueue] = {}
        self.requisites: dict[int, PageQueue] = {}
        self.backoff: Backoff = NO_BACKOFF
        self.certificate: tuple[str, ...] = ()
        self.paused = False
        self.shut_until = -math.inf
        self.absence: str | None = None
        self.hinted_at = -math.inf
        self.poll_at = -math.inf
        self._closed_until = -math.inf
        self.crawl_delay_s: float | None = None
        self._request_rate_delay_s: float | None = None
        self._quiet = QuietHours()
        self._visit_time: tuple[int, int] | None = None
        self._turn = 0
        self._balance = 0.0
        self._due_in_a_row = self._rest_turn = 0

    # --- politeness ----------------------------------------------------------------------------

    def restore(self, backoff: Backoff, clock: Clock) -> None:
        """Load the stored back-off, clamped to a plausible one."""
        self.backoff = clamp_restored(backoff, clock.now())
        if self.backoff.closed_until is not None:
            self._closed_until = clock.to_monotonic(self.backoff.closed_until)

    def apply_rules(self, rules: Sequence[DelayRules]) -> None:
        """Apply the politeness rules of the sites with pages here; the longest delay wins."""
        self.rules = max(rules, key=lambda each: each.host_delay_s, default=self.rules)
        if self.group is not None and self.group.host_delay_s is not None:
            self.rules = replace(self.rules, host_delay_s=self.group.host_delay_s)
        self._quiet = self.rules.quiet_hours.with_visit_time(self._visit_time)

    def apply_robots(self, robots: Robots, *, respect_crawl_delay: bool) -> None:
        """Apply the delays and visit times of a robots.txt."""
        if respect_crawl_delay:
            self.crawl_delay_s = robots.crawl_delay_s
            self._request_rate_delay_s = robots.request_rate_delay_s
        self._visit_time = robots.visit_time
        self._quiet = self.rules.quiet_hours.with_visit_time(self._visit_time)

    def base_delay_s(self) -> float:
        """Return the delay without back-off."""
        return base_delay_s(self.rules, self.crawl_delay_s, self._request_rate_delay_s)

    def delay_s(self) -> float:
        """Return the least time between two requests, with back-off."""
        return effective_delay_s(
            self.rules, self.crawl_delay_s, self._request_rate_delay_s, self.backoff
        )

    def record_trouble(self, now: float, retry_after_s: float | None) -> None:
        """Increase the back-off after a failure or a response that asks for it."""
        self.backoff = self.backoff.after_trouble(now, self.base_delay_s(), retry_after_s)
        if retry_after_s is not None:
            self._closed_until = max(self._closed_until, trio.current_time() + retry_after_s)

    def record_success(self, now: float) -> None:
        """Decay the back-off after a successful response."""
        if self.backoff is not NO_BACKOFF:
            self.backoff = self.backoff.after_success(now)

    def forgive(self, now: float) -> None:
        """End the back-off and what closes the host, as after a long success; `now`: trio's clock.

        The next request still waits for the delay without back-off.
        """
        self.backoff = NO_BACKOFF
        self._closed_until = self.shut_until = -math.inf
        self.slot.next_at = min(self.slot.next_at, now + self.base_delay_s())

    def update(
        self,
        last_fetch_at: float | None,
        address: str | None,
        certificate: tuple[str, ...] = (),
    ) -> HostUpdate:
        """Return the state that must survive a restart.

        Args:
            last_fetch_at: time of the request (Unix seconds); None: none was sent.
            address: IP address it was sent to.
            certificate: names on the certificate.
        """
        new_names = certificate if certificate != self.certificate else ()
        self.certificate = certificate or self.certificate
        return HostUpdate(
            last_fetch_at=last_fetch_at,
            address=address,
            certificate=new_names,
            backoff_level=self.backoff.level,
            backoff_at=self.backoff.at,
            closed_until=self.backoff.closed_until,
        )

    def rest_from(self, from_time: float) -> None:
        """Start the host's delay at a time of trio's clock."""
        self.slot.rest_from(from_time, self.delay_s())

    def asked_at(self) -> float:
        """Return when (trio's clock) it had the last request, as its delay counts."""
        return self.slot.next_at - self.delay_s()

    def open_at(self, clock: Clock) -> float:
        """Return when (trio clock) its pages may have a turn."""
        return max(self.shut_until, self.rested_at(clock))

    def rested_at(self, clock: Clock) -> float:
        """Return when (trio clock) Retry-After and quiet hours are over."""
        rested_at = self._closed_until
        if self._quiet.spans:
            now = clock.now()
            quiet_until = self._quiet.open_at(now)
            if quiet_until > now:
                rested_at = max(rested_at, clock.to_monotonic(quiet_until))
        return rested_at

    # --- pages ---------------------------------------------------------------------------------

    def queues(self) -> list[PageQueue]:
        """Return the queues of pages and requisites of every site."""
        return [*self.pages.values(), *self.requisites.values()]

    def wanted_at(self, now: float, active: set[int]) -> float | None:
        """Return when (Unix seconds) some page of an active site may be visited; None: never."""
        earliest: float | None = None
        for held in (self.pages, self.requisites):
            for pages in _active(held, active):
                at = pages.wanted_at(now)
                if at is not None and (earliest is None or at < earliest):
                    earliest = at
        return earliest

    def has_stale(self, active: set[int]) -> bool:
        """Whether a page or requisite of an active site waits whose copy is known to be stale."""
        return any(
            queue.has_stale
            for held in (self.pages, self.requisites)
            for queue in _active(held, active)
        )

    def has_unshown(self, active: set[int]) -> bool:
        """Whether anything waits that readers do not see: copies known to be stale, new pages."""
        return self.has_stale(active) or any(queue.ahead for queue in _active(self.pages, active))

    def has_edited(self, now: float, active: set[int]) -> bool:
        """Whether a page of an active site waits that has a due time, as edited pages do."""
        return any(queue.due_at(now) < math.inf for queue in _active(self.pages, active))

    def lane(self, active: set[int]) -> Lane:
        """Return what the host waits for, where it shares a rate with others."""
        queues = [*_active(self.pages, active), *_active(self.requisites, active)]
        best = min((queue.rank for queue in queues), default=Rank.REVISIT)
        if best is Rank.EDITED or any(not ticket.patient for ticket in self.slot.tickets):
            return Lane.DUE
        return Lane.NEW if best < Rank.REVISIT or self.slot.tickets else Lane.REVISIT

    def has_many_new(self, active: set[int]) -> bool:
        """Whether an active site has more never-visited pages than it holds in memory."""
        return any(queue.ahead.more for site_id, queue in self.pages.items() if site_id in active)

    def leave_turn(self, at: float, active: set[int]) -> float:
        """Return when (trio clock) a page may have the turn of `at`.

        A turn just before a poll is left to it, unless a copy is known to be stale or missing: a
        visit on suspicion would delay the reports of edits by a whole turn. A turn at the time of
        the poll is left to it in any case.
        """
        poll_at = self.poll_at
        if poll_at == -math.inf:
            return at
        turn_at = max(at, self.slot.next_at, trio.current_time())
        if poll_at <= turn_at < poll_at + POLL_ROOM_S:
            return poll_at + POLL_ROOM_S  # both are due now, as at the end of a Retry-After
        if not at < poll_at:
            return at
        if not turn_at < poll_at < turn_at + self.delay_s():
            return at
        best = min((queue.rank for queue in _active(self.pages, active)), default=Rank.REVISIT)
        waits = best is Rank.REVISIT and not any(
            queue.rank < Rank.REVISIT for queue in _active(self.requisites, active)
        )
        return poll_at + POLL_ROOM_S if waits else at

    def take(
        self, now: float, active: set[int], *, requisite_share: float = 0.0
    ) -> tuple[PageQueue, int] | None:
        """Take the next page: the one that is due first, whatever its site and kind.

        Pages and requisites without due times get the turns that are left, in the order of their
        ranks, and one of `REST_EVERY` while none is left. New pages share the turns with those that
        are due, requisites with all other pages; sites take turns.

        Args:
            active: numbers of the active sites.
            requisite_share: share of the turns for requisites while pages want them too.
        """
        pages = _active(self.pages, active)
        requisites = _active(self.requisites, active) if self.requisites else []
        queues = [*pages, *requisites]
        due = _first_due(queues, now)
        if due and self._due_in_a_row >= REST_EVERY - 1:
            self._due_in_a_row = 0
            if (rest := self._take_rest(queues, now)) is not None:
                return rest
        new = [queue for queue in pages if queue.rank is Rank.NEW] if due else []
        if due and (taken := self._take_of([*due, *new], now)) is not None:
            self._due_in_a_row += 1
            return taken
        self._due_in_a_row = 0
        return self._take_unhurried(pages, requisites, now, requisite_share)

    def _take_unhurried(
        self,
        pages: Sequence[PageQueue],
        requisites: Sequence[PageQueue],
        now: float,
        requisite_share: float,
    ) -> tuple[PageQueue, int] | None:
        """Take the next page while none is due."""
        if not requisites:
            return self._take_leading(pages, now)
        best = min((queue.rank for queue in pages), default=Rank.REVISIT)
        if best is Rank.AFFECTED:
            missing = [queue for queue in requisites if queue.rank is Rank.NEW]
            return (
                self._take_in_turn(missing, PageQueue.take_new)
                or self._take_leading(pages, now)
                or self._take_of(requisites, now)
            )
        if self._balance < 0.0:
            taken = self._take_of(requisites, now) or self._take_leading(pages, now)
        else:
            taken = self._take_leading(pages, now) or self._take_of(requisites, now)
        if taken is not None:
            step = 1.0 - requisite_share if taken[0].requisites else -requisite_share
            self._balance = min(max(self._balance + step, -1.0), 1.0)
        return taken

    def _take_leading(
        self, queues: Sequence[PageQueue], now: float
    ) -> tuple[PageQueue, int] | None:
        """Take a page of the queues with the most urgent pages, else of any other.

        Of users of edited templates, that which is due first, whatever its site.
        """
        if len(queues) > 1:
            ranks = [queue.rank for queue in queues]
            last = _LEADING[min(ranks)]
            leading = [queue for queue, rank in zip(queues, ranks, strict=True) if rank <= last]
            if last is Rank.AFFECTED:
                due_at = [queue.affected_due_at(now) for queue in leading]
                until = min(due_at) + SAME_TIME_S
                leading = [queue for queue, at in zip(leading, due_at, strict=True) if at <= until]
            if len(leading) < len(queues) and (taken := self._take_of(leading, now)) is not None:
                return taken
        return self._take_of(queues, now)

    def _take_rest(self, queues: Sequence[PageQueue], now: float) -> tuple[PageQueue, int] | None:
        """Take a page without a due time that is missing, or may have changed."""
        waiting = [queue for queue in queues if queue.has_rest]
        # Requisites are missing here only after a failure; others are old, or for dense screens.
        waiting = [queue for queue in waiting if not queue.requisites] or waiting
        self._rest_turn += 1
        for offset in range(len(waiting)):
            queue = waiting[(self._rest_turn + offset) % len(waiting)]
            if (page := queue.take_rest(now)) is not None:
                return queue, page
        return None

    def _take_of(self, queues: Sequence[PageQueue], now: float) -> tuple[PageQueue, int] | None:
        return self._take_in_turn(queues, lambda queue: queue.take(now))

    def _take_in_turn(
        self, queues: Sequence[PageQueue], take: Callable[[PageQueue], int | None]
    ) -> tuple[PageQueue, int] | None:
        """Take a page of the queue whose turn it is, else of the next one that has any."""
        for offset in range(len(queues)):
            queue = queues[(self._turn + offset) % len(queues)]
            if (page := take(queue)) is not None:
                self._turn += offset + 1
                return queue, page
        return None


def _first_due(queues: Sequence[PageQueue], now: float) -> list[PageQueue]:
    """Return the queue whose page is due first, if any.

    Sites that fell far behind take turns with the others, so that these do not wait for them.
    """
    due_at = [queue.due_at(now) for queue in queues]
    first = min(due_at, default=math.inf)
    if AT_ONCE < first < now - OVERDUE_S:
        return [queue for queue, at in zip(queues, due_at, strict=True) if at < math.inf]
    return [queue for queue, at in zip(queues, due_at, strict=True) if at == first < math.inf]


def _active(held: dict[int, PageQueue], active: set[int]) -> list[PageQueue]:
    """Return the queues of active sites that have a page in scope."""
    return [
        queue
        for site_id, queue in held.items()
        if site_id in active and not queue.left_out.covers(queue.ahead)
    ]
