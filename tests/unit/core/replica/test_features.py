"""Features of pairs, computed by hand."""

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest

from crawld.core.replica.features import ALL, FIVE, Feature, HostFeatures, discretise
from crawld.core.replica.hosts import Hosts, pair_keys, path_key, sketch_keys
from crawld.core.replica.identities import network_of
from crawld.core.replica.names import (
    NameTable,
    difference_in_words,
    edit_distance,
    registered_label,
)
from tests.unit.core.replica.sample_hosts import hosts_of


def measured(hosts, one=0, other=1):
    got = HostFeatures.of(hosts).pairs(pair_keys(np.array([one]), np.array([other])))
    return dict(zip((feature.name for feature in ALL), got.values[0].tolist(), strict=True)), got


def plain_distance(one, other):
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, against in enumerate(other, 1):
            cost = before + (letter != against)
            before, row[place] = row[place], min(cost, row[place] + 1, row[place - 1] + 1)
    return row[-1]


def test_edit_distance_agrees_with_dynamic_programming():
    rng = np.random.default_rng(2)
    names = ["", "a", *("".join(rng.choice(list("ab.-"), rng.integers(1, 30))) for _ in range(60))]
    table = NameTable.of(names)
    one, other = (side.ravel() for side in np.meshgrid(range(len(names)), range(len(names))))
    got = edit_distance(table, one, other)
    assert got.tolist() == [
        plain_distance(names[a], names[b]) for a, b in zip(one, other, strict=True)
    ]


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("www.a.com", "a.com", "names differ by www."),
        ("a.com", "a.co.uk", "names differ by the top-level domain"),
        ("de.a.com", "fr.a.com", "both under a.com"),
        ("a.com", "b.com", None),
        ("a.com", "a.com:8080", "one name, two ports"),
        ("localhost", "127.0.0.1", None),
        ("10.1.7.9", "10.2.7.9", None),
    ],
)
def test_difference_of_names_in_words(one, other, words):
    assert difference_in_words(one, other) == words


def test_registered_label():
    assert registered_label("www.shop.example.co.uk") == "example"
    assert registered_label("10.1.7.9") == ""


def test_fullpath_weights_rare_paths_more():
    # Path 1 in two hosts, path 2 in three: maxdf = 3.
    hosts = hosts_of("abc", [(0, 1, 0), (1, 1, 0), (0, 2, 0), (1, 2, 0), (2, 2, 0), (1, 3, 0)])
    common, rare, own = 1 + log(3 / 3), 1 + log(3 / 2), 1 + log(3 / 1)
    dot = common**2 + rare**2
    expected = dot / (sqrt(dot) * sqrt(dot + own**2))
    assert measured(hosts)[0]["fullpath"] == pytest.approx(expected)


def test_a_host_without_a_vector_has_cosine_zero():
    hosts = hosts_of("ab", [(0, 1, 5), (1, 2, 6)])
    values, _ = measured(hosts)
    assert (values["fullpath"], values["links"], values["equal"]) == (0, 0, 0)


def test_ip_features_depend_on_the_size_of_the_group():
    hosts = hosts_of(
        "abcd",
        [(host, 1, 0) for host in range(4)],
        addresses=["10.0.0.1", "10.0.0.1", "10.0.0.9", ""],
    )
    values, _ = measured(hosts)
    assert (values["ip4"], values["ip3"]) == (1.0, 0.5)
    values, _ = measured(hosts, 0, 2)
    assert (values["ip4"], values["ip3"]) == (0.0, 0.5)
    values, _ = measured(hosts, 0, 3)
    assert (values["ip4"], values["ip3"]) == (0.0, 0.0)
    assert network_of("2001:db8:1:2::5") == "2001:db8:1"


def test_equal_is_over_paths_where_both_have_a_text():
    hosts = hosts_of(
        "ab", [(0, 1, 5), (0, 2, 6), (0, 3, 0), (1, 1, 5), (1, 2, 7), (1, 3, 8), (1, 4, 9)]
    )
    values, got = measured(hosts)
    assert values["equal"] == 0.5
    content = got.content
    assert [int(part[0]) for part in (content.common, content.compared, content.equal)] == [3, 2, 1]
    assert content.expected[0] == 3.0


def test_two_copies_that_were_crawled_in_part_have_fewer_paths_in_common():
    pages = [(host, path, path) for host in (0, 1) for path in range(1, 9)]
    hosts = hosts_of("ab", pages)

    def expected(*unvisited):
        return measured(replace(hosts, unvisited=np.array(unvisited)))[1].content.expected[0]

    assert expected(0, 0) == 8.0
    assert expected(8, 8) == 4.0  # of each half of sixteen pages
    assert expected(0, 8) == 4.0


def test_declared_is_a_share_of_the_declaring_hosts_pages():
    pages = [(0, path, 5 + path) for path in range(4)] + [(1, 9, 99)]
    hosts = hosts_of("ab", pages, redirects={(0, 1): 3}, canonicals={(1, 0): 0})
    assert measured(hosts)[0]["declared"] == 0.75


@pytest.mark.parametrize(
    ("certificates", "similarity"),
    [
        (("abc", "abc"), 0.5),  # one over the other names
        (("", "ab"), 1.0),  # that of either host counts
        (("ab", ""), 1.0),
        (("cb", ""), 0.0),  # it does not name the host itself
    ],
)
def test_a_certificate_that_names_both_hosts(certificates, similarity):
    hosts = hosts_of("ab", [(0, 1, 0), (1, 2, 0)], certificates=tuple(map(frozenset, certificates)))
    assert measured(hosts)[0]["certificate"] == similarity


def test_shared_outlinks():
    links = [(0, 1), (1, 1), (0, 2), (1, 2)]
    hosts = hosts_of("ab", [(0, path_key("/"), 0), (1, 4, 0)], links=links)
    assert measured(hosts)[0]["links"] == pytest.approx(1.0)


def test_zero_has_its_own_bin_and_the_others_equal_width():
    feature = (Feature("fullpath", 1.0, 4),)
    values = np.array([[0.0], [1e-9], [0.25], [0.26], [1.0], [7.0]])
    assert discretise(feature, values).ravel().tolist() == [0, 1, 1, 2, 4, 4]


def test_the_published_features_come_first():
    assert [feature.name for feature in FIVE] == ["ndist", "nmatch", "ip4", "ip3", "fullpath"]
    assert ALL[:5] == FIVE
    assert all(feature.bins in range(6, 11) for feature in FIVE)


def test_rare_texts_weigh_more_than_common_ones():
    # Path 1: a text of all five hosts; path 2: one that only hosts 0 and 1 show; path 3: differs.
    rows = [(host, 1, 100) for host in range(5)]
    rows += [(0, 2, 200), (1, 2, 200), (0, 3, 300), (1, 3, 301)]
    host, path, text = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(0, dtype=np.int64)
    hosts = Hosts(
        names=tuple(f"h{number}.test" for number in range(5)), addresses=("",) * 5,
        page_host=host, page_path=path.astype(np.uint64), page_signature=text.astype(np.uint64),
        link_host=none, link_target=none.astype(np.uint64), roots=frozenset((2, 9)),
    )  # fmt: skip
    content = HostFeatures.of(hosts).pairs(pair_keys(np.array([0, 0]), np.array([1, 4]))).content
    assert content.compared.tolist() == [3, 1]
    assert content.equal.tolist() == [2, 1]
    common = 1.0 / (1.0 + np.log(4))
    assert content.weight.tolist() == pytest.approx([1.0 + common, common])
    assert content.rare.tolist() == [2, 0]
    assert content.rare_equal.tolist() == [1, 0]
    assert content.root.tolist() == [1, -1]


def sketched(texts, sketches):
    """Return two hosts with one page each on every path, by text and sketch."""
    count = len(texts[0])
    keys = np.array([sketch_keys(one) for side in sketches for one in side], dtype=np.uint64)
    none = np.zeros(0, dtype=np.int64)
    return Hosts(
        names=("a.test", "b.test"), addresses=("", ""), page_host=np.repeat([0, 1], count),
        page_path=np.tile(np.arange(1, count + 1), 2).astype(np.uint64),
        page_signature=np.array([*texts[0], *texts[1]], dtype=np.uint64),
        link_host=none, link_target=none.astype(np.uint64), roots=frozenset((3,)),
        page_likeness=keys[:, 0], page_bins=keys[:, 1:],
    )  # fmt: skip


def test_texts_that_differ_by_the_targets_of_links_are_equal_and_others_agree_in_part():
    same, dated = bytes(range(1, 129)), bytes([99] * 2 + list(range(3, 129)))
    other = bytes(range(100, 228))
    sketches = ([same, same[::-1], same, same], [same, same[::-1], dated, other])
    hosts = sketched(([1, 2, 3, 4], [11, 12, 13, 14]), sketches)
    content = HostFeatures.of(hosts).pairs(pair_keys(np.array([0]), np.array([1]))).content
    assert content.equal.tolist() == [2]
    assert content.compared.tolist() == [4]
    # 14 of 16 bins are equal: the texts resemble by .875.
    assert content.partial.tolist() == pytest.approx([(0.875 - 0.5) / 0.45])
    assert content.root.tolist() == [1]


def test_pages_that_resemble_agree_only_where_hardly_any_is_equal():
    """What a host adds to its pages is on all of them; shops of one owner differ on most."""
    same, dated = bytes(range(1, 129)), bytes([99] * 2 + list(range(3, 129)))

    def agreeing(equal, alike):
        texts = [list(range(1, 1 + equal + alike))] * 2
        texts[1] = [text + 100 * (at >= equal) for at, text in enumerate(texts[0])]
        sketches = [
            [one[:5] + bytes([at + 1]) + one[6:] for at in range(equal + alike)]
            for one in (same, dated)
        ]
        hosts = sketched(texts, sketches)
        content = HostFeatures.of(hosts).pairs(pair_keys(np.array([0]), np.array([1]))).content
        assert content.compared.tolist() == [equal + alike]
        assert (content.sample_agreeing <= content.agreeing[:, None]).all()
        return content.agreeing.tolist()[0]

    assert agreeing(0, 12) == 12
    assert agreeing(1, 12) == 13
    assert agreeing(3, 12) == 3


def test_texts_that_resemble_those_of_many_hosts_prove_little():
    """Parked names: one page each, with the name in it, so that no two texts are equal."""
    count, none = 12, np.zeros(0, dtype=np.int64)
    sketches = [bytes([host + 1, *range(2, 129)]) for host in range(count)]
    sketches[:2] = [bytes([host + 1, *range(100, 227)]) for host in range(2)]
    keys = np.array([sketch_keys(one) for one in sketches], dtype=np.uint64)
    hosts = Hosts(
        names=tuple(f"h{number}.test" for number in range(count)), addresses=("",) * count,
        page_host=np.arange(count), page_path=np.full(count, 5, dtype=np.uint64),
        page_signature=np.arange(1, count + 1).astype(np.uint64),
        link_host=none, link_target=none.astype(np.uint64), roots=frozenset((5,)),
        page_likeness=keys[:, 0], page_bins=keys[:, 1:],
    )  # fmt: skip
    one, other = np.array([0, 2]), np.array([1, 3])
    content = HostFeatures.of(hosts).pairs(pair_keys(one, other)).content
    assert (content.equal.tolist(), content.agreeing.tolist()) == ([0, 0], [1, 1])
    rarity = 1.0 / (1.0 + np.log(9))
    assert content.telling.tolist() == pytest.approx([1.0, rarity])
    assert content.weight.tolist() == pytest.approx(
        [content.partial[0], rarity * content.partial[1]]
    )


def test_one_sketch_on_many_paths_of_a_host_proves_nothing():
    wall = [bytes([7] * 128)] * 5
    hosts = sketched(([1, 2, 3, 4, 5], [11, 12, 13, 14, 15]), (wall, wall))
    content = HostFeatures.of(hosts).pairs(pair_keys(np.array([0]), np.array([1]))).content
    assert (content.equal.tolist(), content.partial.tolist()) == ([0], [0.0])
