"""Fixtures: a receiver of webhooks, and daemons with rules of notification."""

import pytest

from tests.daemon.harness import until
from tests.daemon.notify.story import Story
from tests.daemon.notify.webhook_receiver import Receiver

NOBODY = "http://c.test:9/"
"""A seed of which no visit makes an event: the port belongs to another service."""


@pytest.fixture
async def receiver(nursery):
    return await nursery.start(Receiver().run)


@pytest.fixture
def begin(paused_daemon, receiver, wall, mirror):
    """Return a function that starts a daemon with rules."""

    async def start(*rules, seed=NOBODY, **tables):
        given = [
            {"name": "team", "webhook": receiver.url(), "allow_private": True, **rule}
            if not {"mail_to", "webhook_file", "apprise_file"} & rule.keys()
            else {"name": "team", **rule}
            for rule in rules or ({},)
        ]
        running = await paused_daemon(seed, notify=given, **tables)
        story = Story(running, receiver, wall, mirror)
        names = {each["name"] for each in given}
        await until(
            lambda: {row[0] for row in mirror.rows("SELECT name FROM notify_rule")} == names
        )
        return story

    return start
