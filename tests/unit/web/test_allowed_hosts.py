"""Which Host headers are answered: a foreign name may have been led here to read the mirror."""

import pytest
import trio

from crawld.web.allowed_hosts import AllowedHosts
from crawld.web.app import MirrorApp, asgi_request
from crawld.web.mirror import DisplayOptions

FOREIGN = ("evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "xn--e1afmkfd.test", "local")
OWN = ("localhost", "mirror.localhost", "LOCALHOST.:80", "box", "box:1", "box.local", "Box.Local:9")
ADDRESSES = ("127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "192.0.2.7:", "[2001:db8::7]")
NONE = ("", "a/b", "a b", "[::1", "::1", "a@b", "a:b", "<x>", "a" * 300, "[::zz]", "a\x00")


@pytest.mark.parametrize("host", [*ADDRESSES, *OWN, None])
def test_answered_without_being_named(host):
    assert AllowedHosts(machine="Box").allow(host)


@pytest.mark.parametrize("host", ["box.lan.example", "Box:8080", "box.local"])
def test_a_machine_answers_to_its_whole_name_and_to_the_first_part_of_it(host):
    names = AllowedHosts(machine="Box.lan.example")
    assert names.allow(host)
    assert not names.allow("lan.example")


@pytest.mark.parametrize("host", [*FOREIGN, *NONE])
def test_refused_unless_named(host):
    assert not AllowedHosts(machine="box").allow(host)
    assert not AllowedHosts(["mirror.example.org"]).allow(host)


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
def test_named_ones(pattern, host, allowed):
    assert AllowedHosts([pattern]).allow(host) is allowed


def answer(host, *, hosts=()):
    """Ask the application by a name; what it lets through would read a file, and there is none."""
    app = MirrorApp(None, lambda: 0.0, DisplayOptions(), lambda *_: None, AllowedHosts(hosts))
    lines = [] if host is None else [(b"host", host.encode())]
    scope = {"method": "POST", "raw_path": b"/", "query_string": b"", "headers": lines}
    return trio.run(app._reply, asgi_request(scope))


def test_a_foreign_name_is_misdirected_and_told_what_to_do():
    reply = answer("evil.test:8080")
    assert reply.status == 421
    assert b"--host evil.test" in reply.body
    assert b'hosts = ["evil.test"]' in reply.body
    assert answer("evil.test:8080", hosts=["evil.test"]).status == 405
    assert answer("127.0.0.1").status == 405


def test_what_is_no_name_is_not_repeated():
    reply = answer("<script>")
    assert reply.status == 421
    assert b"script&" not in reply.body
