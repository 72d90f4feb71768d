"""Routes about notifications: state of the rules, a test message, another try."""

from __future__ import annotations

from fastapi import APIRouter

from crawld.config.notify import NotifyConfig
from crawld.daemon.api.parameters import Served
from crawld.daemon.api.schemas.notify import NotifyStatus, NotifyTest
from crawld.daemon.api.schemas.status import Done
from crawld.store.notification import RuleState


def add_notify_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get("/notify")
    async def rules(daemon: Served) -> list[NotifyStatus]:
        """The rules of notification and what became of their messages."""
        states = {state.name: state for state in await daemon.background.notifier.states()}
        return [
            notify_status(rule, states[rule.name])
            for rule in daemon.config.notify
            if rule.name in states
        ]

    @router.post("/notify/{name}/test")
    async def test(daemon: Served, name: str) -> NotifyTest:
        """Send a test message now, by the way of all messages of the rule."""
        result = await daemon.background.notifier.test(name)
        return NotifyTest(name=name, delivered=result.delivered, trouble=result.trouble)

    @router.post("/notify/{name}/retry")
    async def retry(daemon: Served, name: str) -> Done:
        """Send what waits now."""
        state = await daemon.background.notifier.retry(name)
        waiting = state.waiting if state is not None else 0
        if not waiting:
            return Done(done=f"nothing waits for {name}")
        return Done(done=f"{waiting:,} waiting for {name} are sent now; see: crawlctl notify")


def notify_status(rule: NotifyConfig, state: RuleState) -> NotifyStatus:
    """Return the state of a rule."""
    names = NotifyStatus.model_fields.keys() & set(RuleState._fields)
    return NotifyStatus(
        **{name: getattr(state, name) for name in names},
        receiver=rule.receiver,
        when=rule.when,
    )
