"""Fixtures: a simulated web, and the whole daemon in the test process."""

import pytest

from crawld.daemon.clock import Clock
from crawld.daemon.run import run_daemon
from crawld.simweb.server import SimWeb
from crawld.store import visit
from crawld.store.frontier import frontier
from crawld.store.frontier.frontier import Discovery
from tests.daemon.harness import (
    Mirror,
    ShiftedTime,
    Web,
    make_site,
    paused_at_start,
    until_first_retention,
)
from tests.daemon.page_history import BEGIN, visit_record


@pytest.fixture
def serve(nursery):
    """Return a function that serves sites: `web = await serve(make_site())`."""

    async def start(*sites, **more):
        simweb = SimWeb(sites, **more)
        listening = await nursery.start(simweb.serve)
        return Web(simweb, listening.port)

    return start


@pytest.fixture
def mirror(tmp_path):
    """A mirror in a new database."""
    return Mirror(tmp_path / "m.db")


@pytest.fixture
def wall(mirror):
    """The wall clock of the daemons of this test; it can be shifted."""
    time = ShiftedTime()
    mirror.clock = Clock(wall=time)
    return time


@pytest.fixture
def daemon(nursery, mirror):
    """Return a function that starts a daemon without `--once`: `d = await daemon(url)`."""

    async def start(*seeds, **more):
        return await nursery.start(run_daemon, mirror.make_start(*seeds, once=False, **more))

    return start


@pytest.fixture
def paused_daemon(daemon):
    """Return a function that starts a daemon that is paused before its first turn."""

    async def start(*seeds, **more):
        with paused_at_start():
            return await daemon(*seeds, **more)

    return start


@pytest.fixture
async def edited_page(serve, paused_daemon, mirror):
    """A paused daemon, and the number and URL of a page with five copies, one day apart."""
    web = await serve(make_site(pages=2))
    running = await paused_daemon(web.url(), site={"keep_versions": 2})
    await until_first_retention(mirror)
    url = web.url("/page")
    discovery = Discovery.of(url, site_id=1, at=BEGIN, depth=1)
    [page] = await running.database.write(frontier.discover, [discovery])
    for number in range(5):
        await running.database.write(visit.record, visit_record(page.page_id, number))
    return running, page.page_id, url
