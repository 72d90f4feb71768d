"""When requests to the API of a wiki take a turn of its host."""

import math
from types import SimpleNamespace

import pytest
import trio

from crawld.config.model import Config
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.api_client import CALM_S, IDLE_FLOOR, ApiClient
from crawld.daemon.crawl.context import CrawlContext
from tests.unit.daemon.fake_hosts import NoSharedRates, on_autojump_clock

DELAY_S = 1.0


class Host:
    """A host with a delay of a second, and whether copies of it are known to be stale."""

    def __init__(self):
        self.slot = SimpleNamespace(host="wiki.test", next_at=0.0)
        self.hinted_at = -math.inf
        self.stale = False

    def delay_s(self):
        return DELAY_S

    def has_stale(self, active):
        return self.stale


def make_client(host, *, wanted_at):
    """Return a client that has just asked the host."""
    crawl = SimpleNamespace(wanted_at=lambda slot: wanted_at)
    state = SimpleNamespace(active={1}, hosts={"wiki.test": host}, rates=NoSharedRates())
    context = CrawlContext(state, None, Clock(), None, None, None, Config)
    client = ApiClient(context, crawl, None)
    client._asked_at["wiki.test"] = trio.current_time()
    return client


async def waited_s(client, host, *, idle):
    began_at = trio.current_time()
    await client._wait_share(host, idle=idle)
    return trio.current_time() - began_at


@pytest.mark.parametrize("idle", [False, True])
@on_autojump_clock
async def test_all_turns_of_a_calm_host_without_due_pages_are_free(idle):
    host = Host()
    assert await waited_s(make_client(host, wanted_at=None), host, idle=idle) == 0.0


@on_autojump_clock
async def test_beside_due_pages_requests_keep_to_their_share():
    host = Host()
    client = make_client(host, wanted_at=trio.current_time())
    share = Config().jobs.backfill_share
    assert await waited_s(client, host, idle=True) == pytest.approx(DELAY_S / share)


@on_autojump_clock
async def test_histories_wait_while_copies_are_stale_except_for_a_floor():
    host = Host()
    host.stale = True
    client = make_client(host, wanted_at=None)
    assert await waited_s(client, host, idle=False) == 0.0
    assert await waited_s(client, host, idle=True) == pytest.approx(DELAY_S / IDLE_FLOOR)


@pytest.mark.parametrize(("stale", "least_s"), [(True, DELAY_S / IDLE_FLOOR), (False, 0.0)])
@on_autojump_clock
async def test_the_first_history_after_a_start_waits_as_others_do(stale, least_s):
    host = Host()
    host.stale = stale
    client = make_client(host, wanted_at=None)
    client._asked_at.clear()
    assert await waited_s(client, host, idle=True) == pytest.approx(least_s)
    assert await waited_s(client, host, idle=False) == 0.0


@on_autojump_clock
async def test_histories_go_on_when_the_last_stale_copy_is_replaced():
    host = Host()
    host.stale = True
    client = make_client(host, wanted_at=None)
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def visit_the_page():
            await trio.sleep(20.0)
            host.stale = False

        assert 20.0 <= await waited_s(client, host, idle=True) <= 22.0


@on_autojump_clock
async def test_between_the_edits_of_a_storm_histories_keep_to_their_share():
    host = Host()
    host.hinted_at = trio.current_time()
    client = make_client(host, wanted_at=None)
    share = Config().jobs.backfill_share
    assert await waited_s(client, host, idle=True) == pytest.approx(DELAY_S / share)
    client._asked_at["wiki.test"] = trio.current_time()
    await trio.sleep(CALM_S)
    client._asked_at["wiki.test"] = trio.current_time()
    assert await waited_s(client, host, idle=True) == 0.0
