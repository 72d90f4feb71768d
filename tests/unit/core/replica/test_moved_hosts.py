"""Which pairs of hosts are measured again, and which are not.

`tests/property/test_replica_search.py` shows that no more are needed.
"""

from dataclasses import replace

import numpy as np
import pytest

from crawld.core.replica.features import Background, HostFeatures
from crawld.core.replica.hosts import Hosts, pair_hosts, pair_keys, sketch_keys
from crawld.core.replica.identities import Identities
from crawld.core.replica.moved_hosts import HostPrints, MovedHosts

IDS = np.array([10, 20, 30, 40])
PAIRS = np.sort(pair_keys(*(np.array(side) for side in ([0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]))))
TEXTS = {
    # Host, path: text. All have path 1; 10 and 20 have 2, 30 and 40 have 3.
    (0, 1): 5,
    (1, 1): 6,
    (2, 1): 7,
    (3, 1): 8,
    (0, 2): 9,
    (1, 2): 9,
    (2, 3): 11,
    (3, 3): 12,
}
FAR = {text: bytes([text * 8 + at for at in range(8)] * 16) for text in range(1, 30)}


def hosts_with(texts, sketches=FAR, **more):
    """Return four hosts that show texts, given by host and path; texts have sketches."""
    places, shown = list(texts), list(texts.values())
    keys = np.array([sketch_keys(sketches[text]) for text in shown], dtype=np.uint64)
    return Hosts(
        names=("a.test", "b.test", "c.test", "d.test"),
        addresses=("1.0.0.1", "2.0.0.1", "", ""),
        page_host=np.array([host for host, _ in places]),
        page_path=np.array([path for _, path in places], dtype=np.uint64),
        page_signature=np.array(shown, dtype=np.uint64),
        page_likeness=keys[:, 0],
        page_bins=keys[:, 1:],
        link_host=np.array([0, 1]),
        link_target=np.array([77, 78], dtype=np.uint64),
        **more,
    )


def concerned(before, now):
    """Return the pairs of host indexes that are measured again."""
    background = Background.of(before)
    old, new = HostFeatures.of(before, background), HostFeatures.of(now, background)
    moved = MovedHosts.between(HostPrints.of(IDS, before, old), HostPrints.of(IDS, now, new))
    which = moved.concerned(new, *pair_hosts(PAIRS))
    return {(key >> 32, key & 0xFFFFFFFF) for key in PAIRS[which].tolist()}


def of(*hosts):
    """Return all pairs with one of some hosts."""
    return {pair for pair in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)) if {*pair} & {*hosts}}


def test_nothing_moved():
    assert concerned(hosts_with(TEXTS), hosts_with(TEXTS)) == set()


def test_a_page_that_moved_concerns_the_hosts_with_its_path():
    assert concerned(hosts_with(TEXTS), hosts_with(TEXTS | {(0, 2): 20})) == {(0, 1)}
    assert concerned(hosts_with(TEXTS), hosts_with(TEXTS | {(0, 1): 21})) == of(0)


def test_a_path_that_a_third_host_has_concerns_the_two_that_had_it():
    # It was rare: only two hosts had it.
    assert concerned(hosts_with(TEXTS), hosts_with(TEXTS | {(2, 2): 27})) == of(2) | {(0, 1)}


def test_a_page_without_a_text_by_now_concerns_them_too():
    assert concerned(hosts_with(TEXTS), hosts_with(TEXTS | {(3, 3): 0}, FAR | {0: b""})) == {(2, 3)}


@pytest.mark.parametrize(
    "later",
    [
        hosts_with(TEXTS | {(0, 4): 22}),
        replace(hosts_with(TEXTS), link_target=np.array([79, 78], dtype=np.uint64)),
        replace(hosts_with(TEXTS), addresses=("1.0.0.2", "2.0.0.1", "", "")),
        replace(hosts_with(TEXTS), certificates=(frozenset({"a.test"}), *[frozenset()] * 3)),
    ],
    ids=["a new page", "links", "address", "certificate"],
)
def test_a_host_that_moved_as_a_whole_concerns_all_others(later):
    before = hosts_with(TEXTS)
    if later.certificates:
        before = replace(before, certificates=(frozenset(),) * 4)
    assert concerned(before, later) == of(0)


def test_a_text_that_more_hosts_show_concerns_those_of_which_texts_agree_by_it():
    # The first two show text 9 under one path. Now a third shows it elsewhere: it proves less.
    assert concerned(hosts_with(TEXTS), hosts_with(TEXTS | {(3, 3): 9})) == {(0, 1), (2, 3)}


def test_so_does_a_text_that_resembles():
    near = bytes(FAR[9][:14]) + FAR[9][:2] + FAR[9][16:]
    sketches = FAR | {9: FAR[9], 24: bytes([*FAR[9][:8], *FAR[24][8:10], *FAR[9][10:]]), 25: near}
    texts = TEXTS | {(1, 2): 24}
    # 9 and 24 resemble; a third text has the beginning of both.
    third = bytes([*FAR[9][:8], *FAR[25][8:]])
    assert concerned(
        hosts_with(texts, sketches), hosts_with(texts | {(3, 3): 25}, sketches | {25: third})
    ) == {(0, 1), (2, 3)}


def test_a_text_that_more_hosts_show_concerns_nobody_who_has_another():
    texts = {place: text for place, text in TEXTS.items() if place != (1, 2)} | {(1, 2): 26}
    assert concerned(hosts_with(texts), hosts_with(texts | {(3, 3): 9})) == {(2, 3)}


def test_identities_are_made_anew_where_they_moved_only():
    before = hosts_with(TEXTS)
    counts = {"1.0.0.1": 5, "2.0.0.1": 3}
    known = Identities.of(before, counts, {})
    assert Identities.of(before, counts, {}, known) is known
    later = replace(
        before,
        names=(*before.names, "e.test"),
        addresses=("2.0.0.1", "2.0.0.1", "", "", ""),
        certificates=(frozenset({"a.test", "e.test"}), *[frozenset()] * 4),
    )
    found, anew = Identities.of(later, counts, {}, known), Identities.of(later, counts, {})
    assert found.labels == anew.labels
    assert found.keys.tolist() == anew.keys.tolist()
    assert (found.keys[:4] == known.keys).tolist() == [False, True, True, True]
    for one, same in ((found.addresses, anew.addresses), (found.networks, anew.networks)):
        assert [column.tolist() for column in one] == [column.tolist() for column in same]
    one, other = np.array([0, 0, 2]), np.array([1, 2, 3])
    assert found.addresses.similarity(one, other).tolist() == [1 / 2, 0.0, 0.0]
    assert found.certified.at(pair_keys(np.array([0]), np.array([4]))).tolist() == [1.0]
    assert Identities.of(before, counts, {}, found).keys.tolist() == known.keys.tolist()
