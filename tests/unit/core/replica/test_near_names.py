"""Pairs that no number of other names hides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.replica.candidates import CAP, find_candidates
from crawld.core.replica.features import HostFeatures
from crawld.core.replica.hosts import Hosts, pair_keys
from crawld.core.replica.names import registered_label
from crawld.core.replica.near_names import WINDOW, name_order, near_pairs

PAGES = 12


def crowd(names):
    """Return hosts that all show one site."""
    count = len(names)
    paths = np.tile(np.arange(1, PAGES + 1, dtype=np.uint64), count)
    none = np.zeros(0, dtype=np.int64)
    return Hosts(
        names=tuple(names), addresses=("",) * count,
        page_host=np.repeat(np.arange(count), PAGES), page_path=paths,
        page_signature=paths + np.uint64(1_000), link_host=none,
        link_target=none.astype(np.uint64),
    )  # fmt: skip


def near(hosts):
    measure = HostFeatures.of(hosts)
    order = name_order(hosts.names, [registered_label(name) for name in hosts.names])
    return near_pairs(order, measure.page_begin, measure.path, measure.signature)


@pytest.mark.parametrize("throw_away", [CAP - 1, 4 * CAP])
def test_throw_away_names_do_not_hide_a_replica(throw_away):
    names = [f"x{number}.example" for number in range(throw_away)]
    victim = ["victim.com", *names, "www.victim.com", "victim.org"]
    hosts = crowd(victim)
    wanted = pair_keys(np.array([0, 0]), np.array([len(victim) - 2, len(victim) - 1])).tolist()
    assert set(wanted).isdisjoint(find_candidates(hosts).candidates().keys.tolist())
    pairs = near(hosts).tolist()
    assert set(wanted) <= set(pairs)
    # Each host has at most so many neighbours in each of four orders, and the oldest in three.
    assert len(pairs) <= (4 * WINDOW + 3) * len(victim)


def test_hosts_known_before_the_throw_away_names_stay_neighbours():
    names = ["shop.com", "moved-shop.net", *(f"x{number}.example" for number in range(CAP))]
    assert pair_keys(np.array([0]), np.array([1]))[0] in near(crowd(names))


LABELS = st.text("ab-0", min_size=1, max_size=3)
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)


@given(st.lists(NAMES, max_size=30))
def test_names_are_ordered_by_label_and_then_from_their_end(names):
    labels = [name.partition(".")[0] if len(name) > 4 else "" for name in names]
    order, group = name_order(names, labels)
    keys = [(labels[at], names[at].split(".")[::-1]) for at in order]
    assert keys == sorted(keys)
    assert sorted(order.tolist()) == list(range(len(names)))
    assert [value == -1 for value in group.tolist()] == [labels[at] == "" for at in order]


@pytest.mark.parametrize("throw_away", [CAP - 1, 4 * CAP])
def test_a_copy_met_after_the_throw_away_names_still_meets_the_oldest_host(throw_away):
    names = ["shop.com", *(f"x{at}.example" for at in range(throw_away)), "moved-shop.net"]
    assert pair_keys(np.array([0]), np.array([throw_away + 1]))[0] in near(crowd(names))


def test_hosts_without_texts_and_addresses_have_no_neighbours():
    hosts = crowd(["10.0.0.1", "10.0.0.2"])
    empty = Hosts(
        hosts.names, hosts.addresses, hosts.page_host, hosts.page_path,
        np.zeros_like(hosts.page_signature), hosts.link_host, hosts.link_target,
    )  # fmt: skip
    measure = HostFeatures.of(empty)
    order = name_order(empty.names, ["", ""])
    assert not len(near_pairs(order, measure.page_begin, measure.path, measure.signature))
