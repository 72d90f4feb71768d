"""Accepted Host headers: a defense against DNS rebinding."""

import pytest
import trio

from crawld.web.allowed_hosts import AllowedHosts
from crawld.web.app import asgi_request
from tests.unit.web.conftest import make_app

FOREIGN = ("evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "xn--e1afmkfd.test", "local")
OWN = ("localhost", "mirror.localhost", "LOCALHOST.:80", "box", "box:1", "box.local", "Box.Local:9")
ADDRESSES = ("127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "192.0.2.7:", "[2001:db8::7]")
NONE = ("", "a/b", "a b", "[::1", "::1", "a@b", "a:b", "<x>", "a" * 300, "[::zz]", "a\x00")


@pytest.mark.parametrize("host", [*ADDRESSES, *OWN, None])
def test_hosts_allowed_by_default(host):
    assert AllowedHosts(machine="Box").allows(host)


@pytest.mark.parametrize("host", ["box.lan.example", "Box:8080", "box.local"])
def test_the_name_of_the_machine_is_allowed_in_full_and_up_to_the_first_dot(host):
    hosts = AllowedHosts(machine="Box.lan.example")
    assert hosts.allows(host)
    assert not hosts.allows("lan.example")


@pytest.mark.parametrize("host", [*FOREIGN, *NONE])
def test_other_hosts_are_refused(host):
    assert not AllowedHosts(machine="box").allows(host)
    assert not AllowedHosts(["mirror.example.org"]).allows(host)


@pytest.mark.parametrize(
    ("pattern", "host", "allowed"),
    [
        ("mirror.example.org", "Mirror.Example.org:80", True),
        ("mirror.example.org", "a.mirror.example.org", False),
        ("*.example.org", "mirror.example.org", True),
        ("*.example.org", "example.org", False),
        ("*", "anything.test", True),
        ("*", "a/b", False),
    ],
)
def test_configured_patterns(pattern, host, allowed):
    assert AllowedHosts([pattern]).allows(host) is allowed


def respond(host, *, hosts=()):
    """Send a POST with a Host header; an accepted one gets 405."""
    lines = [] if host is None else [(b"host", host.encode())]
    scope = {"method": "POST", "raw_path": b"/", "query_string": b"", "headers": lines}
    return trio.run(make_app(hosts=hosts)._reply, asgi_request(scope))


def test_a_foreign_host_gets_421_and_the_remedy():
    reply = respond("evil.test:8080")
    assert reply.status == 421
    assert b"--host evil.test" in reply.body
    assert b'hosts = ["evil.test"]' in reply.body
    assert respond("evil.test:8080", hosts=["evil.test"]).status == 405
    assert respond("127.0.0.1").status == 405


def test_an_invalid_host_is_not_echoed():
    reply = respond("<script>")
    assert reply.status == 421
    assert b"script&" not in reply.body
