"""When the `analyse` job looks for copies."""

from types import SimpleNamespace

import trio

from crawld.daemon.clock import Clock
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.jobs.analyse_copies import AGE_S, AnalyseCopiesJob
from tests.unit.daemon.fake_hosts import on_autojump_clock


@on_autojump_clock
async def test_no_copy_is_looked_for_until_another_one_is_stored():
    stored = {"version": 3}

    async def read(*_, **__):
        return (), None

    database = SimpleNamespace(read=read, changes=stored.get)
    state = SimpleNamespace(settings=SimpleNamespace(once=False, analyse=True))
    job = AnalyseCopiesJob(CrawlContext(state, database, Clock(), None, None, None, None))
    assert job.has_work()
    await job.run()
    assert job.has_work()  # a copy may have been too young
    await trio.sleep(AGE_S / 2)
    await job.run()
    assert job.has_work()
    await trio.sleep(AGE_S)
    await job.run()
    assert not job.has_work()
    stored["version"] += 1
    assert job.has_work()
    await job.run()
    assert job.has_work()
