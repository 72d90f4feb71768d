"""The polled sources of one host, and which of them is polled next."""

from __future__ import annotations

import math
from typing import Final

from crawld.daemon.clock import Clock
from crawld.daemon.hints.source import Source
from crawld.sources.mediawiki_changes import PendingTemplates, ProbeProgress
from crawld.store.changes.hint_source import SourceRow

HELD_PAUSE_S: Final = 15.0
"""Pause before a source that must not be asked now is tried again, if its host names no time."""

FIRST_KIND: Final = "recent_changes"
"""The kind of source that is polled before all others of its host: it shows all that changed."""

PATIENT_KIND: Final = "probe"
"""The kind of source that waits while copies are known to be stale, beside recent changes: a visit
of one of them is worth more."""

MAX_PATIENCE_S: Final = 600.0
"""Longest wait of such a source, so that a storm of edits does not put it off for ever."""

LISTING_KIND: Final = "fan_out"
"""The kind of source that waits while edited pages do: what it lists is visited after them. The
first request for a template waits for a poll of the recent changes, too, which takes it along,
while anything is known to be stale."""

LISTING_PATIENCE_S: Final = 20.0
"""Longest wait of such a source."""

LOOK_S: Final = 1.0
"""Pause before it is checked again whether edited pages wait."""

FLOOR_FACTOR: Final = 5.0
"""The recent changes delay the next poll of another source at most so many times longer than the
share alone does."""


class ScheduledSource:
    """A polled source.

    Attributes:
        next_at: when it is due (trio's clock).
        allowed_at: from when it may be polled.
        put_off_at: since when it is due but waits for better work, or waited for its budget before;
            None: it does not wait.
        listed: the template whose users it lists next, when it was put off last; None: it had none.
        asked: whether its last poll sent a request.
        is_priced: whether `next_at` follows from what its last poll cost.
        is_urgent: whether it takes turns of the recent changes: a probe after a gap in them.
    """

    def __init__(self, source: Source, next_at: float, allowed_at: float) -> None:
        self.source = source
        self.next_at = next_at
        self.allowed_at = allowed_at
        self.put_off_at: float | None = None
        self.listed: str | None = None
        self.asked = False
        self.is_priced = False
        self.is_urgent = False

    def reschedule(self, cursor: str | None, now: float) -> None:
        """Make it due as soon as it may be polled: another source has changed its cursor."""
        is_probe = self.source.row.kind == PATIENT_KIND
        self.is_urgent = is_probe and ProbeProgress.from_json(cursor).urgent
        self.next_at = max(now, self.allowed_at)

    def advance(self, cursor: str | None) -> None:
        """Take the cursor after its poll; at the end of its round a probe is urgent no longer."""
        self.is_urgent = self.is_urgent and ProbeProgress.from_json(cursor).urgent

    @property
    def is_first(self) -> bool:
        """Whether it is polled before all others of its host."""
        return self.source.row.kind == FIRST_KIND


class HostSources:
    """The polled sources of one host; one is polled at a time.

    Attributes:
        paid_at: when (trio's clock) the requests of past polls have used up their share; sources
            other than the recent changes wait for it.
        floor_at: when they wait no longer, where the recent changes alone use up the share.
        price_s: seconds of its share that a request took when it was looked at last; 0: not yet.
    """

    __slots__ = ("busy", "floor_at", "paid_at", "polled", "price_s")

    def __init__(self) -> None:
        self.polled: dict[int, ScheduledSource] = {}
        self.busy = False
        self.paid_at = -math.inf
        self.floor_at = math.inf
        self.price_s = 0.0

    def due_at(self, each: ScheduledSource) -> float:
        """Return when (trio's clock) a source is polled at the earliest."""
        unpaid = each.is_first or each.is_urgent or each.source.is_free
        return each.next_at if unpaid else max(each.next_at, min(self.paid_at, self.floor_at))

    def next(self, now: float) -> ScheduledSource | None:
        """Return the source to poll next: of those due now, the recent changes."""

        def order(each: ScheduledSource) -> tuple[float, bool, float]:
            return max(self.due_at(each), now), not each.is_first, each.next_at

        return min(self.polled.values(), key=order, default=None)

    def pay(self, polled: ScheduledSource, now: float, price_s: float) -> None:
        """Count a poll that takes the share of so many seconds.

        An urgent probe takes it from the recent changes: after a gap these tell of the few edits
        since, a probe of fifty pages of which many may have changed.
        """
        self.paid_at = max(self.paid_at, now) + price_s
        if not polled.is_first or math.isinf(self.floor_at):
            self.floor_at = now + FLOOR_FACTOR * price_s
        if polled.is_urgent:
            for first in (each for each in self.polled.values() if each.is_first):
                first.next_at = max(first.next_at, now) + price_s

    def relax(self, now: float, price_s: float) -> bool:
        """Take the present price of a request; return whether waits are shorter by it.

        In a back-off a request may take hours of its share. When the back-off ends, what was paid
        by its delay must not keep the sources from being polled.
        """
        ratio = price_s / self.price_s if self.price_s else 1.0
        self.price_s = price_s
        if ratio >= 1.0:
            return False

        def sooner(at: float) -> float:
            return now + (at - now) * ratio if at > now else at

        self.paid_at, self.floor_at = sooner(self.paid_at), sooner(self.floor_at)
        for each in self.polled.values():
            each.allowed_at = sooner(each.allowed_at)
            if each.is_priced:
                each.next_at = sooner(each.next_at)
        return True

    def first_at(self) -> float:
        """Return when (trio's clock) the recent changes are due, −∞ if none are polled here."""
        return min(
            (each.next_at for each in self.polled.values() if each.is_first and each.asked),
            default=-math.inf,
        )

    @property
    def has_recent_changes(self) -> bool:
        """Whether the recent changes of a wiki are polled here."""
        return any(each.is_first and each.asked for each in self.polled.values())

    def puts_off(
        self, polled: ScheduledSource, row: SourceRow, now: float, *, stale: bool, edited: bool
    ) -> float | None:
        """Return how long a source waits for better work on its host, seconds; None: it does not.

        Args:
            row: the row of the source as stored now.
            now: trio's clock.
            stale: whether copies of the host are known to be stale.
            edited: whether edited pages wait.
        """
        pause_s, most_s = None, 0.0
        if row.kind == LISTING_KIND and (listed := _first_listed(row)) != polled.listed:
            # Before, it waited with nothing to list, or with another template.
            polled.listed, polled.put_off_at = listed, None
        if row.kind == PATIENT_KIND and stale and not ProbeProgress.from_json(row.cursor).urgent:
            pause_s, most_s = HELD_PAUSE_S, MAX_PATIENCE_S
        elif row.kind == LISTING_KIND and self._lists_later(row, now, stale=stale, edited=edited):
            pause_s, most_s = LOOK_S, LISTING_PATIENCE_S
        if pause_s is None or not self.has_recent_changes:
            polled.put_off_at = None
            return None
        if polled.put_off_at is None:
            polled.put_off_at = min(polled.next_at, now)  # it may have waited for its budget
        if now - polled.put_off_at >= most_s:
            polled.put_off_at = None
            return None
        return pause_s

    def _lists_later(self, row: SourceRow, now: float, *, stale: bool, edited: bool) -> bool:
        """Whether the next poll of a listing sends a request that had better wait."""
        pending = PendingTemplates.from_json(row.cursor)
        if pending.pages:  # they are known: it reports them without a request
            return False
        is_first = bool(pending.templates) and not pending.continuation
        # On a host that has nothing to do it would wait for nobody.
        return edited or (stale and is_first and self.first_at() <= now + LISTING_PATIENCE_S)


def _first_listed(row: SourceRow) -> str | None:
    """Return the template whose users a listing asks for next, None if there is none."""
    templates = PendingTemplates.from_json(row.cursor).templates
    return templates[0][0] if templates else None


def restored(source: Source, next_at: float, allowed_at: float, clock: Clock) -> ScheduledSource:
    """Return a source as of a start; how long it was put off before is not stored.

    A listing has waited since the first change of which it has the users to list.
    """
    polled = ScheduledSource(source, next_at, allowed_at)
    if source.row.kind == LISTING_KIND:
        changed_at = [at for _, at in PendingTemplates.from_json(source.row.cursor).templates]
        if changed_at:
            polled.put_off_at = min(next_at, clock.to_monotonic(min(changed_at)))
            polled.listed = _first_listed(source.row)
    return polled
