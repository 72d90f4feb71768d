"""The search for replicas judges only what moved, and finds what judging everything finds."""

import copy
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawld.daemon.jobs.replicas import search as search_module
from crawld.daemon.jobs.replicas.search import ReplicaSearch
from crawld.store.replica.inputs import FetchedPage, SourceHost

NAMES = ("a.com", "www.a.com", "b.org", "b.net", "shop.c.org", "10.0.0.1")
HOSTS = range(len(NAMES))
PATHS = 9

host = st.integers(0, len(NAMES) - 1)
edits = st.lists(
    st.one_of(
        st.tuples(st.just("page"), host, st.integers(0, PATHS), st.integers(0, 2)),
        st.tuples(st.just("sketch"), host, st.integers(0, PATHS), st.integers(0, 2)),
        st.tuples(st.just("link"), host, st.integers(1, 4), st.just(0)),
        st.tuples(st.just("redirect"), host, host, st.integers(0, 8)),
        st.tuples(st.just("canonical"), host, host, st.integers(0, 8)),
        st.tuples(st.just("address"), host, st.integers(0, 2), st.just(0)),
        st.tuples(st.just("stale"), host, st.integers(0, 3), st.just(0)),
        st.tuples(st.just("certificate"), host, host, st.just(0)),
        st.tuples(st.just("known"), host, st.just(0), st.just(0)),
    ),
    min_size=1,
    max_size=4,
)
starts = st.lists(st.integers(0, 2), min_size=6 * PATHS, max_size=6 * PATHS)


class World:
    """Hosts, their pages and what they declare; every edit is a step."""

    def __init__(self, texts):
        self.pages, self.links = {}, {host: {1, host + 1} for host in HOSTS}
        self.redirects, self.canonicals, self.stale = {}, {}, {}
        self.addresses, self.certificates = [""] * len(NAMES), [""] * len(NAMES)
        self.known, self.at = set(HOSTS), 0
        for number, text in enumerate(texts):
            self.put_page(number // PATHS, number % PATHS, text)

    def put_page(self, host, path, text, words=None):
        """Let a host show a text on a path; 0 is no text. `words` differ in the sketch."""
        page_id = host * 100 + path
        self.pages[page_id] = FetchedPage(
            page_id=page_id,
            server_id=host + 1,
            url=f"http://h{host}.test/{path}",
            # A text on one path of a host is no error page.
            cleaned_digest=bytes([path, text] * 8) if text else None,
            last_visit_at=float(self.at),
            referrer_host_id=None,
            version_id=self.at * 1000 + page_id,
            sketch=bytes([path + 1] * 120 + [text if words is None else words] * 8),
        )
        return self.pages[page_id]

    def edit(self, kind, one, other, number):
        """Apply an edit; return the pages that it changed."""
        self.at += 1
        if kind == "sketch":
            return [self.put_page(one, other, 1 + one % 2, number)]
        if kind == "page":
            return [self.put_page(one, other, number)]
        if kind == "link":
            self.links[one] = self.links[one] ^ {other}
        elif kind == "address":
            self.addresses[one] = ["", "1.2.3.4", "1.2.3.9"][other]
        elif kind == "stale":
            self.stale[one + 1] = float(other)
        elif kind == "known":
            self.known ^= {one}
        elif kind == "certificate":
            self.certificates[one] = f"{NAMES[one]} {NAMES[other]}"
        elif one != other:
            counts = self.redirects if kind == "redirect" else self.canonicals
            counts[one + 1, other + 1] = number
        return []

    def judge(self, search):
        for one in HOSTS:
            search.set_links({one + 1: np.array(sorted(self.links[one]), dtype=np.uint64)})
        hosts = [
            SourceHost(
                one + 1, NAMES[one], self.addresses[one] or None, 0.0, False, self.certificates[one]
            )
            for one in sorted(self.known)
        ]
        return search.judge(
            hosts, dict(self.redirects), dict(self.canonicals), stale_before=dict(self.stale)
        )


def measured(search):
    features = search._measured.features
    return features.keys, features.values, *features.content


def evidence(found):
    return {(pair.one_id, pair.other_id): pair.evidence for pair in found.pairs}


@settings(max_examples=60)
@given(starts, edits)
def test_judging_what_moved_equals_judging_everything(texts, changes):
    world, search = World(texts), ReplicaSearch()
    search.add(list(world.pages.values()))
    world.judge(search)
    for change in changes:
        search.add(world.edit(*change))
        with mock.patch.object(search_module, "GROWTH", 1e9):  # the first epoch does not end
            anew = copy.deepcopy(search)
            anew._measured, anew._promising = None, {}
            found, expected = world.judge(search), world.judge(anew)
        for got, wanted in zip(measured(search), measured(anew), strict=True):
            assert got.tolist() == wanted.tolist()
        assert found.pairs == expected.pairs
        assert found.undecided == expected.undecided
        # The evidence, which does not depend on the epoch, equals that of a new search.
        fresh = ReplicaSearch()
        fresh.add(list(world.pages.values()))
        assert evidence(found) == evidence(world.judge(fresh))


@settings(max_examples=30)
@given(starts, edits)
def test_only_pairs_of_hosts_that_moved_are_judged(texts, changes):
    world, search = World(texts), ReplicaSearch()
    search.add(list(world.pages.values()))
    for change in changes:
        search.add(world.edit(*change))
    world.judge(search)
    with mock.patch.object(search_module, "GROWTH", 1e9):
        search.add(list(world.pages.values()))
        assert world.judge(search).judged == 0
        search.set_links({1: np.array([77], dtype=np.uint64)})
        world.links[0] = {77}
        assert world.judge(search).judged < len(NAMES)
