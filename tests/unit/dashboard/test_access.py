"""Browsers on the machine of the daemon see the dashboard, those behind a proxy on it do not."""

import pytest

from crawld.dashboard.access import PROXY_HEADERS, is_from_here


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost", "crawld.localhost", "127.0.0.1", "::1"])
def test_a_browser_on_this_machine_is_let_in(address, host):
    assert is_from_here(address, host, {"host", "accept"})


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "", None])
def test_another_machine_is_refused(address):
    assert not is_from_here(address, "localhost", {"host"})


@pytest.mark.parametrize(
    "host", ["mirror.example.org", "localhost.example.org", "192.0.2.1", "127.0.0.1.example", None]
)
def test_a_name_of_another_machine_is_refused(host):
    assert not is_from_here("127.0.0.1", host, {"host"})


@pytest.mark.parametrize("name", sorted(PROXY_HEADERS))
def test_a_request_through_a_proxy_is_refused(name):
    assert not is_from_here("127.0.0.1", "localhost", {"host", name})
