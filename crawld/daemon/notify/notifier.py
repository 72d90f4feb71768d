"""Runs a task for each rule of notification of the config in force.

A loop looks for new events by their largest id, which costs some microseconds, and wakes the tasks.
Without a rule nothing runs.
"""

from __future__ import annotations

from typing import Final

import trio

from crawld.config.notify import NotifyConfig
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.notify.composer import Composer
from crawld.daemon.notify.courier import Courier, Delivery, Notifiers
from crawld.daemon.notify.rule_task import RuleTask
from crawld.daemon.supervise import supervise
from crawld.errors import OperatorError
from crawld.net.network import Network
from crawld.net.resolver import Resolver
from crawld.store import notification
from crawld.store.mirror import events
from crawld.store.notification import RuleState

POLL_S: Final = 1.0
"""Longest time until a rule looks at a new event."""

DELIVERIES_AT_ONCE: Final = 8


class Notifier(BackgroundWork):
    """Tells receivers about events."""

    def __init__(
        self, context: CrawlContext, resolver: Resolver, network: Network, notifiers: Notifiers
    ) -> None:
        super().__init__(context)
        self._composer = Composer(context)
        self._courier = Courier(resolver, network, context.workers, context.clock, notifiers)
        self._limiter = trio.CapacityLimiter(DELIVERIES_AT_ONCE)
        self._tasks: dict[str, RuleTask] = {}
        self._changed = trio.Event()

    async def run(self) -> None:
        """Run the rules of the config until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._changed = trio.Event()
                await self._adopt(nursery)
                if self._tasks:
                    await self._poll()
                else:
                    await self._changed.wait()

    def config_changed(self) -> None:
        """Adopt the rules of the config in force."""
        self._changed.set()

    async def _adopt(self, nursery: trio.Nursery) -> None:
        names = [rule.name for rule in self._config().notify]
        newest_id = self._database.look_up(events.newest_id)
        await self._database.write(notification.adopt, names, newest_id, self._clock.now())
        for name in names:
            if name not in self._tasks:
                task = RuleTask(self._context, name, self._composer, self._courier, self._limiter)
                self._tasks[name] = task
                nursery.start_soon(self._run_task, task)
        for task in self._tasks.values():
            task.wake()

    async def _run_task(self, task: RuleTask) -> None:
        try:
            await supervise(f"notify {task.name}", task.run)
        finally:
            del self._tasks[task.name]
            self._changed.set()  # the rule may be back already

    async def _poll(self) -> None:
        """Wake the tasks at each new event, until the config changes."""
        newest_id = self._database.look_up(events.newest_id)
        while not self._changed.is_set():
            with trio.move_on_after(POLL_S):
                await self._changed.wait()
            found = self._database.look_up(events.newest_id)
            if found != newest_id:
                newest_id = found
                for task in self._tasks.values():
                    task.wake()

    # --- commands --------------------------------------------------------------------------------

    def troubles(self) -> dict[str, str]:
        """Return what is wrong with rules, by their names."""
        return {name: task.trouble for name, task in sorted(self._tasks.items()) if task.trouble}

    async def states(self) -> list[RuleState]:
        """Return the state of each rule, by name."""
        return await self._database.read(notification.list_rules)

    async def test(self, name: str) -> Delivery:
        """Send a message that reports nothing, now and once.

        Raises:
            OperatorError: there is no such rule.
        """
        rule = self._known(name)
        message = await self._composer.test_message(rule)
        return await self._courier.deliver(self._config(), rule, message)

    async def retry(self, name: str) -> RuleState | None:
        """Make what waits of a rule due now; return its state before.

        Raises:
            OperatorError: there is no such rule.
        """
        rule = self._known(name)
        state = await self._database.read(notification.by_name, rule.name)
        if state is not None:
            now = self._clock.now()
            await self._database.write(notification.retry_now, state.notify_rule_id, now)
            if (task := self._tasks.get(name)) is not None:
                task.wake()
        return state

    def _known(self, name: str) -> NotifyConfig:
        rules = {rule.name: rule for rule in self._config().notify}
        if name not in rules:
            known = ", ".join(sorted(rules)) or "none: add [[notify]] to the config"
            raise OperatorError(f"there is no notification {name}", hint=f"known are: {known}")
        return rules[name]
