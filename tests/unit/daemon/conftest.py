"""A simulated web and the whole daemon in this process: real sockets, a real file."""

import pytest

from crawld.daemon.app import run_daemon
from crawld.daemon.clock import Clock
from crawld.simweb.server import SimWeb

from .world import Mirror, ShiftedTime, Web


@pytest.fixture
def serve(nursery):
    """Return a function that serves sites: `web = await serve(site_of())`."""

    async def start(*sites, **more):
        simweb = SimWeb(sites, **more)
        listening = await nursery.start(simweb.serve)
        return Web(simweb, listening.port)

    return start


@pytest.fixture
def mirror(tmp_path):
    """A mirror of this test alone."""
    return Mirror(tmp_path / "m.db")


@pytest.fixture
def wall(mirror):
    """The wall clock of the daemons of this test."""
    time = ShiftedTime()
    mirror.clock = Clock(wall=time)
    return time


@pytest.fixture
def daemon(nursery, mirror):
    """Return a function that starts a daemon that stays: `d = await daemon(url)`."""

    async def start(*seeds, **more):
        return await nursery.start(run_daemon, mirror.start_of(*seeds, once=False, **more))

    return start
