"""The end of a mirror that is made once, when nobody is at its seeds."""

import socket

import pytest
import trio

from crawld.daemon.run import run_daemon
from tests.daemon.harness import TIMEOUT_S, make_site
from tests.daemon.name_server import NXDOMAIN, NameServer

NOBODY_LISTENS = "connection refused"


@pytest.fixture
def closed_port():
    """A port of this machine on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


async def absences(mirror, *seeds, **tables):
    """Run a mirror once to its end; return by host why nobody is there."""
    with trio.fail_after(TIMEOUT_S):
        daemon = await run_daemon(mirror.make_start(*seeds, **tables))
    return {name: host.absence for name, host in daemon.state.hosts.items()}


async def test_a_mirror_of_seeds_where_nobody_is_ends_with_the_reasons(
    mirror, nursery, closed_port
):
    names = await nursery.start(NameServer(lambda name: NXDOMAIN).serve)
    seeds = [
        *(f"http://a.test:{closed_port}/", "https://a.test:9/", "http://b.test:9/"),
        "http://none.test/",
    ]
    dns = {"nameservers": ["127.0.0.1"], "nameserver_port": names.port}
    found = await absences(mirror, *seeds, dns=dns)
    assert found.pop("a.test")
    assert found == {
        "b.test": "port 9 belongs to another service",
        "none.test": "DNS: no such name",
    }


async def test_a_host_where_nobody_is_does_not_hold_another(mirror, serve, closed_port):
    web = await serve(make_site(pages=5))
    found = await absences(mirror, web.url(), f"http://b.test:{closed_port}/")
    assert found["a.test"] is None
    assert NOBODY_LISTENS in found["b.test"]
    states = mirror.rows("SELECT state, count(*) FROM page GROUP BY state")
    assert dict(states) == {"visited": 5, "discovered": 1}
