"""What the visits of a site with request profiles share."""

import random

import trio

from crawld.daemon.crawl.page_profiles import PageProfiles


class CountingWorkers:
    """Runs what it is given after a pass of the event loop, and counts how often."""

    def __init__(self):
        self.runs = 0

    async def run(self, function, *arguments):
        self.runs += 1
        await trio.lowlevel.checkpoint()
        return function(*arguments)


async def test_visits_at_a_time_load_one_detector():
    workers = CountingWorkers()
    profiles = PageProfiles(None, None, workers, random.Random(1))
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(profiles._detected, "A text")
    assert workers.runs == 1
