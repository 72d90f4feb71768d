"""The generated web of replicas: reproducible, with the truth and look-alikes."""

from dataclasses import replace

import numpy as np
import pytest

from crawld.core.replica.hosts import pair_hosts
from crawld.simweb.replica_parameters import STANDARD, WEBS, Cause
from crawld.simweb.replica_web import make_web

SMALL = replace(
    STANDARD,
    hosts=900,
    groups=dict.fromkeys(Cause, 20),
    languages=10,
    topics=2,
    platforms=1,
    parkings=1,
    families=10,
    broken=10,
)


@pytest.fixture(scope="module")
def web():
    return make_web(SMALL, 3)


def test_the_same_seed_makes_the_same_web(web):
    again = make_web(SMALL, 3)
    assert again.hosts.names == web.hosts.names
    assert np.array_equal(again.hosts.page_signature, web.hosts.page_signature)
    assert make_web(SMALL, 4).hosts.names != web.hosts.names


def test_names_are_unique_and_every_host_was_crawled(web):
    assert len(set(web.hosts.names)) == len(web.hosts) >= 900
    assert np.bincount(web.hosts.page_host, minlength=len(web.hosts)).min() >= 1


def test_true_pairs_include_every_cause(web):
    keys, causes = web.true_pairs()
    assert set(causes) == set(Cause)
    one, other = pair_hosts(keys)
    assert (web.group[one] == web.group[other]).all()
    assert (one < other).all()
    assert (web.group[one] >= 0).all()


def test_www_copies_differ_by_the_prefix(web):
    keys, causes = web.true_pairs()
    for key, cause in zip(keys.tolist(), causes, strict=True):
        if cause is Cause.WWW:
            one, other = sorted(
                (web.hosts.names[key >> 32], web.hosts.names[key & 0xFFFFFFFF]), key=len
            )
            assert other == f"www.{one}"


def test_copies_share_texts_under_equal_paths_and_others_do_not(web):
    hosts = web.hosts
    pages = [
        set(zip(hosts.page_path[at].tolist(), hosts.page_signature[at].tolist(), strict=True))
        for at in (np.flatnonzero(hosts.page_host == host) for host in range(len(hosts)))
    ]
    keys, _ = web.true_pairs()
    one, other = pair_hosts(keys)
    shared = [len(pages[a] & pages[b]) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    plain = np.flatnonzero(web.group < 0)[:200].tolist()
    strange = [len(pages[a] & pages[b]) for a in plain[::2] for b in plain[1::2]]
    assert np.mean(shared) > 5 > 0.5 > np.mean(strange)


def test_every_web_has_21_500_hosts():
    assert {parameters.hosts for parameters in WEBS.values()} == {21_500}
    assert [parameters.dynamic for parameters in WEBS.values()] == sorted(
        parameters.dynamic for parameters in WEBS.values()
    )
