"""The task of one rule: looks at new events, and delivers what it reports.

Its state is in the file only. Each pass looks at events that it has not seen, then tries the
message under way if that is due, or makes one of what waits. A message is recorded as delivered
after its receiver has it, so that a kill in between sends it again, with the same key.
"""

from __future__ import annotations

import math
from typing import Final

import structlog
import tenacity
import trio

from crawld.config.derive import rule_filter
from crawld.config.notify import NotifyConfig
from crawld.core.event import EventKind
from crawld.core.notify.rule import RuleFilter
from crawld.core.notify.timing import next_digest
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.notify.composer import Composer
from crawld.daemon.notify.courier import Courier
from crawld.store import notification
from crawld.store.mirror import events
from crawld.store.mirror.events import ChangeEvent, EventFilter, EventList
from crawld.store.notification import RuleState

log = structlog.get_logger(__name__)

BATCH_EVENTS: Final = 100
"""Events looked at in one read and one transaction."""

MAX_EVENTS_PER_MESSAGE: Final = 500
"""As many wait in the queue at most; the events after them are looked at later."""

FIRST_RETRY_S: Final = 10.0
MAX_RETRY_S: Final = 3_600.0
JITTER_SHARE: Final = 0.5
"""A pause is shorter by up to this share, so that rules do not retry together."""

MIN_TRIES: Final = 5
"""No message is given up after fewer, whatever the clock says."""

MAX_WAIT_S: Final = 3_600.0
"""Longest wait for a time of day: the clock may be set."""

MAX_TROUBLE_CHARACTERS: Final = 500

MAX_SEARCHED_HERE: Final = 20_000
"""Characters that a rule searches on the event loop, a millisecond; longer texts on a thread."""

_BACK_OFF: Final = tenacity.wait_exponential(multiplier=FIRST_RETRY_S, max=MAX_RETRY_S)


class RuleTask(BackgroundWork):
    """Works for one rule until the config has none of its name.

    Args:
        name: of the rule.
        limiter: bounds how many rules deliver at once.
    """

    def __init__(
        self,
        context: CrawlContext,
        name: str,
        composer: Composer,
        courier: Courier,
        limiter: trio.CapacityLimiter,
    ) -> None:
        super().__init__(context)
        self.name = name
        self.trouble: str | None = None
        self._composer = composer
        self._courier = courier
        self._limiter = limiter
        self._wake = trio.Event()
        self._examined_to = -1
        self._filter: tuple[NotifyConfig, RuleFilter] | None = None

    def wake(self) -> None:
        """Look again: there are new events, another config, or what waits is due."""
        self._wake.set()

    async def run(self) -> None:
        """Work until the config has no rule of this name."""
        while (rule := self._rule()) is not None:
            self._wake = trio.Event()
            with trio.move_on_after(await self._pass(rule)):
                await self._wake.wait()

    def _rule(self) -> NotifyConfig | None:
        return next((each for each in self._config().notify if each.name == self.name), None)

    async def _pass(self, rule: NotifyConfig) -> float:
        """Do what is due and return after how many seconds more may be, unless woken."""
        state = await self._read_state()
        if state is None:
            return math.inf
        self.trouble = state.trouble
        more = await self._examine(rule, state)
        state = await self._read_state() or state
        now = self._clock.now()
        if state.next_try_at is not None:
            left_s = state.next_try_at - now
            # No pause is longer, unless the clock was set back.
            if 0.0 < left_s <= MAX_RETRY_S:
                return 0.0 if more else left_s
            await self._try(rule, state)
            return 0.0
        if more:
            return 0.0
        if not state.waiting:
            return math.inf
        due_at = self._due_at(rule, state, now)
        if due_at > now:
            return min(due_at - now, MAX_WAIT_S)
        merged = rule.when != "at once" or state.waiting > rule.merge_above
        count = MAX_EVENTS_PER_MESSAGE if merged else 1
        await self._database.write(notification.seal, state.notify_rule_id, count, now)
        return 0.0

    async def _read_state(self) -> RuleState | None:
        return await self._database.read(notification.by_name, self.name)

    def _due_at(self, rule: NotifyConfig, state: RuleState, now: float) -> float:
        if state.waiting >= MAX_EVENTS_PER_MESSAGE or state.due_at is None:
            return now
        # It is later than the next digest only if the clock was set back, or the rule changed.
        return state.due_at if state.due_at <= self._next_digest(rule, now) else now

    def _next_digest(self, rule: NotifyConfig, now: float) -> float:
        return next_digest(rule.when, now, daily_at=rule.daily_at, zone=rule.timezone)

    # --- events ----------------------------------------------------------------------------------

    async def _examine(self, rule: NotifyConfig, state: RuleState) -> bool:
        """Look at the next events; return whether there may be more to look at now."""
        room = MAX_EVENTS_PER_MESSAGE - state.waiting
        newest_id = self._database.look_up(events.newest_id)
        examined_to = max(state.examined_id, self._examined_to)
        if room <= 0 or newest_id <= examined_to:
            return False
        kinds = EventFilter(kinds=frozenset(map(EventKind, rule.kinds)))
        found: EventList = await self._database.read(
            events.list_after, state.examined_id, min(BATCH_EVENTS, room), kinds
        )
        wanted = [each.event_id for each in found.events if await self._wants(rule, each)]
        if found.ended and not wanted:
            # Nothing is lost if that is not stored: these events are of no kind of the rule.
            self._examined_to = newest_id
        if found.last_id > state.examined_id:
            await self._database.write(
                notification.add_events,
                state.notify_rule_id,
                wanted,
                examined_id=found.last_id,
                due_at=self._next_digest(rule, self._clock.now()),
            )
        return not found.ended

    async def _wants(self, rule: NotifyConfig, event: ChangeEvent) -> bool:
        wanted = self._rule_filter(rule)
        if not wanted.may_want(event.kind, event.site, event.url, event.difference):
            return False
        change = await self._composer.change_of(event) if wanted.needs_text else None
        title = event.title or ""
        if change is not None and len(change.added_text) > MAX_SEARCHED_HERE:
            return await self._workers.run(wanted.wants, event.kind, title, change)
        return wanted.wants(event.kind, title, change)

    def _rule_filter(self, rule: NotifyConfig) -> RuleFilter:
        if self._filter is None or self._filter[0] != rule:
            self._filter = rule, rule_filter(rule)
            self._examined_to = -1
        return self._filter[1]

    # --- messages --------------------------------------------------------------------------------

    async def _try(self, rule: NotifyConfig, state: RuleState) -> None:
        """Try to deliver the message under way, and record what became of it."""
        rule_id = state.notify_rule_id
        async with self._limiter:
            ids = await self._database.read(notification.sealed_events, rule_id)
            message = await self._composer.compose(rule, ids)
            if message is None:
                await self._database.write(notification.drop_message, rule_id)
                return
            result = await self._courier.deliver(self._config(), rule, message)
        now = self._clock.now()
        trouble = result.trouble[:MAX_TROUBLE_CHARACTERS] or None
        if result.delivered:
            await self._database.write(notification.record_delivery, rule_id, now, trouble)
            log.info("notified", rule=self.name, events=len(ids), tries=state.tries + 1)
            return
        asked_s = min(result.retry_after_s, MAX_RETRY_S)
        await self._record_failure(rule, state, now, trouble or "not delivered", asked_s)

    async def _record_failure(
        self, rule: NotifyConfig, state: RuleState, now: float, trouble: str, asked_s: float
    ) -> None:
        tries = state.tries + 1
        tried_s = 0.0 if state.first_try_at is None else now - state.first_try_at
        if tries >= MIN_TRIES and tried_s >= rule.give_up_s:
            log.error("notification_given_up", rule=self.name, events=state.sealed, why=trouble)
            rule_id = state.notify_rule_id
            await self._database.write(notification.give_up, rule_id, now, trouble)
            return
        pause_s = max(self.pause_s(tries), asked_s)
        if state.tries == 0:
            log.warning("notification_failed", rule=self.name, why=trouble)
        await self._database.write(
            notification.record_failure, state.notify_rule_id, now, trouble, now + pause_s
        )

    def pause_s(self, tries: int) -> float:
        """Return the pause after so many failed tries, seconds."""
        state = tenacity.RetryCallState(None, None, (), {})  # type: ignore[arg-type]
        state.attempt_number = tries
        return _BACK_OFF(state) * self._rng.uniform(1.0 - JITTER_SHARE, 1.0)
