"""Hosts of a web of replicas."""

import re

import numpy as np
import pytest

from crawld.core.replica.hosts import NO_SIGNATURE
from crawld.simweb.message import SimRequest
from crawld.simweb.replica_host import loopback_addresses_of, page_target, replica_hosts
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import make_web

PORT = 4321


@pytest.fixture(scope="module")
def web():
    return make_web(scale_web(STANDARD, 700, 0.3), 2)


@pytest.fixture(scope="module")
def hosts(web):
    return list(replica_hosts(web))


def ask(host, target):
    origin = f"http://{host.name}:{PORT}"
    return host.handle(SimRequest("GET", target, {}, host.name, origin, 0.0, 0))


def redirecting_pages(host):
    return [target for target in host.targets if host.redirect_url(target, PORT)]


def test_parameters_are_scaled_to_hosts_and_replicas():
    parameters = scale_web(STANDARD, 3_000, 0.3)
    assert parameters.hosts == 3_000
    assert (make_web(parameters, 1).group >= 0).mean() == pytest.approx(0.3, abs=0.05)
    assert scale_web(STANDARD, 3_000, 0.0).groups == dict.fromkeys(STANDARD.groups, 0)
    assert scale_web(STANDARD, STANDARD.hosts) == STANDARD
    double = scale_web(STANDARD, 2 * STANDARD.hosts)
    assert double.groups == {cause: 2 * count for cause, count in STANDARD.groups.items()}


def test_every_page_is_reachable_from_the_root(hosts):
    for host in hosts[:50]:
        found, waiting = {"/"}, ["/"]
        while waiting:
            body = ask(host, waiting.pop()).to_bytes().decode()
            links = set(re.findall('href="(/[^"]*)"', body)) - found
            found |= links
            waiting += links
        if not redirecting_pages(host):
            assert found == set(host.targets)


def test_pages_with_equal_signatures_have_equal_texts(web, hosts):
    def shown(page):
        host = hosts[int(web.hosts.page_host[page])]
        answer = ask(host, page_target(int(web.hosts.page_path[page])))
        return answer.status, answer.to_bytes().partition(b"<p>")[2].partition(b"</p>")[0]

    signature = web.hosts.page_signature
    values, first, count = np.unique(signature, return_index=True, return_counts=True)
    twice = values[(count == 2) & (values != NO_SIGNATURE)][:20]
    for value in twice:
        one, other = (shown(page) for page in np.flatnonzero(signature == value))
        assert one == other
        assert one[1]
    assert len({shown(page)[1] for page in first[values != NO_SIGNATURE][:100]}) == 100


def test_copies_redirect_and_name_their_original(web, hosts):
    (source, to), count = next(iter(web.hosts.redirects.items()))
    answer = ask(hosts[source], hosts[source].targets[0])
    assert answer.status == 301
    assert f"http://{web.hosts.names[to]}:{PORT}/".encode() in answer.to_bytes()
    assert ask(hosts[source], "/no-such").status == 404
    assert redirecting_pages(hosts[source]) == hosts[source].targets[:count]
    (source, to), _ = next(iter(web.hosts.canonicals.items()))
    if not redirecting_pages(hosts[source]):
        named = f'<link rel="canonical" href="http://{web.hosts.names[to]}:{PORT}/">'
        assert named.encode() in ask(hosts[source], "/").to_bytes()


def test_mapped_addresses_keep_shared_addresses_and_networks():
    one, same, near, far = loopback_addresses_of(("1.2.3.4", "1.2.3.4", "1.2.3.9", "7.2.3.4"))
    assert one == same != near
    assert one.rpartition(".")[0] == near.rpartition(".")[0] != far.rpartition(".")[0]
    assert all(address.startswith("127.") for address in (one, near, far))
