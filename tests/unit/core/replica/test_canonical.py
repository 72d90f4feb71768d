"""The order in which hosts are kept, and which hosts may rest under which."""

from itertools import permutations

from crawld.core.replica.canonical import (
    HostProfile,
    agreement_with_others,
    may_rest_under,
    order_to_keep,
    why_kept,
)
from crawld.core.replica.verdict import PairEvidence

DAY_S = 86_400.0


def profiles(**hosts):
    return {
        at: HostProfile(name=name.replace("_", "."), **facts)
        for at, (name, facts) in enumerate(hosts.items())
    }


def kept(hosts, declared=None):
    """Return the host that is kept; the order of the table does not matter."""
    declared = declared or dict.fromkeys(hosts, ())
    orders = {
        tuple(order_to_keep({host: hosts[host] for host in some}, declared))
        for some in permutations(hosts)
    }
    assert len(orders) == 1
    return orders.pop()[0]


def test_the_operators_choice_comes_first():
    hosts = profiles(a_com={}, b_com={"preferred": True}, c_com={"kept": True, "inlinks": 9})
    assert kept(hosts, {0: {1}, 1: set(), 2: set()}) == 1
    assert why_kept(hosts[1], hosts[0], (), copy_declares=False) == "preferred by the operator"
    assert may_rest_under(hosts[0], hosts[1], copy_declares=False)
    assert not may_rest_under(hosts[1], hosts[0], copy_declares=True)


def test_a_redirect_retires_its_sender():
    hosts = profiles(a_com={"https": True, "kept": True, "inlinks": 9}, b_net={})
    assert kept(hosts, {0: set(), 1: {0}}) == 1
    assert why_kept(hosts[1], hosts[0], ("a.com",), copy_declares=True) == "declared by a.com"
    assert may_rest_under(hosts[0], hosts[1], copy_declares=True)


def test_merits_in_their_order():
    """Each merit decides although every later one speaks for the other host."""
    better = [
        ({"name": "a.com"}, {"name": "staging.a.com"}),
        ({"agreement": 0.9}, {"agreement": 0.6}),
        ({"inlinks": 3}, {"inlinks": 2}),
        ({"https": True}, {}),
        ({"pages": 100}, {"pages": 50}),
        ({"changed_at": 9 * DAY_S}, {"changed_at": 2 * DAY_S}),
        ({"name": "ab.com"}, {"name": "abc.com"}),
        ({"first_seen_at": 0.0}, {"first_seen_at": 9 * DAY_S}),
    ]
    words = ["the name of the public site", "agrees best with the other names", "more inlinks",
             "https", "more complete", "fresher", "the shorter name", "known longer"]  # fmt: skip
    names = {0: {"name": "a.com"}, 1: {"name": "b.com"}}
    for at, (more, less) in enumerate(better):
        one, other = dict(names[0], **more), dict(names[1], **less)
        for later_more, later_less in better[at + 1 :]:
            for fields, values in ((one, later_less), (other, later_more)):
                for key, value in values.items():
                    if key != "name" or at == 1:
                        fields.setdefault(key, value)
        hosts = {0: HostProfile(**one), 1: HostProfile(**other)}
        assert kept(hosts) == 0
        assert why_kept(hosts[0], hosts[1], (), copy_declares=False) == words[at]


def test_production_is_kept_though_staging_was_met_first():
    hosts = profiles(
        staging_a_com={"https": True, "first_seen_at": 0.0, "inlinks": 2000},
        a_com={"first_seen_at": DAY_S, "inlinks": 900},
    )
    assert kept(hosts) == 1
    assert kept({0: HostProfile(name="a.com:8080", inlinks=9), 1: HostProfile(name="a.com")}) == 1


def test_the_kept_host_stays():
    hosts = profiles(a_com={"kept": True}, www_a_com={"inlinks": 900, "https": True})
    assert kept(hosts) == 0
    assert why_kept(hosts[0], hosts[1], (), copy_declares=False) == "kept so far"


def test_a_copy_never_retires_its_victim():
    # Everything that a copier can fake: https, age, pages, freshness, inlinks.
    copier = HostProfile(
        name="copy.net", https=True, pages=500, changed_at=9e9, inlinks=900, kept=True
    )
    for victim in ("victim.com", "10.1.7.9", "victim.farm.test", "victim.blogspot.com"):
        for name in ("copy.net", "10.2.7.9", "copy.farm.test", "copy.blogspot.com"):
            thief = HostProfile(name=name, https=copier.https, inlinks=900, kept=True)
            assert not may_rest_under(HostProfile(name=victim), thief, copy_declares=False)
    crowded = {"farm.com"}
    one, other = HostProfile(name="victim.farm.com"), HostProfile(name="copy.farm.com")
    assert not may_rest_under(one, other, copy_declares=False, crowded=crowded)
    assert may_rest_under(one, HostProfile(name="www.victim.farm.com"), copy_declares=False,
                          crowded=crowded)  # fmt: skip


def test_a_host_rests_under_the_site_of_its_crowded_domain():
    """Who has the domain gave all of its names; its root page shows whose site it is."""
    crowded = {"farm.com"}

    def may(kept, copy="word.farm.com", *, inlinks=(0, 12), shows_site=True, **more):
        return may_rest_under(
            HostProfile(name=copy, inlinks=inlinks[0]),
            HostProfile(name=kept, inlinks=inlinks[1]),
            copy_declares=False,
            crowded=crowded,
            shows_site=shows_site,
            **more,
        )

    assert may("farm.com")
    assert may("www.farm.com")
    assert may("farm.com", "deep.word.farm.com")
    assert may("farm.com", inlinks=(5, 5))
    assert may("farm.com", rests=True)
    # Anybody may have any other name, and a path of the site of the domain.
    for thief in ("copy.farm.com", "www2.farm.com", "beta.farm.com", "www.copy.farm.com"):
        assert not may(thief, pages_only=True)
    assert not may("farm.com:8080")
    assert not may("farm.com", shows_site=False)
    assert not may("farm.com", shows_site=False, pages_only=True, rests=True)
    # A name that is clearly known better is not given up, resting or not.
    assert not may("farm.com", inlinks=(9, 1))
    assert not may("farm.com", inlinks=(9, 1), rests=True)
    # Below a top-level domain that the list does not know, nobody knows what the domain is.
    assert not may("farm.test", "word.farm.test")
    assert not may("10.0.0.1", "10.0.0.1:8080.farm.com")
    assert not may("blogspot.com", "word.blogspot.com")


def test_names_of_a_site_agree_by_what_is_known_of_many_pages():
    """Under a name with seven pages, seven of the 23 of another can rest, though all agree."""
    names = dict(enumerate(("www1.a.com", "www2.a.com", "www3.a.com", "www4.a.com")))
    known = {(0, 1): (23, 20), (0, 2): (23, 20), (1, 2): (23, 20)}  # the fourth is little known
    known |= {(at, 3): (7, 7) for at in range(3)}
    shown = agreement_with_others(names, evidence_of(names, known))
    assert shown[3] < 0.2 < 0.7 < shown[0]
    assert shown[0] == shown[1] == shown[2]
    known |= {(at, 3): (23, 8) for at in range(3)}  # stale
    stale = agreement_with_others(names, evidence_of(names, known))
    assert stale[3] < 0.4 < stale[0]
    known |= {(at, 3): (5, 5) for at in range(3)}
    assert 3 not in agreement_with_others(names, evidence_of(names, known))


def evidence_of(names, known):
    """Return evidence by pair of hosts, from how many pages were compared and are equal."""
    return {
        pair: PairEvidence(names=(names[pair[0]], names[pair[1]]), pages=(23, max(7, compared)),
                           common=compared, compared=compared, equal=equal)
        for pair, (compared, equal) in known.items()
    }  # fmt: skip


def test_the_last_tie_is_broken_by_the_alphabet():
    hosts = profiles(b_com={}, a_com={})
    assert kept(hosts) == 1
    assert why_kept(hosts[1], hosts[0], (), copy_declares=False) == "first in the alphabet"


def test_names_of_one_domain_need_a_clear_victory():
    """A platform that is missing in the public suffix list gives a thief a name beside another."""

    def may(inlinks, kept_inlinks, **more):
        copy = HostProfile(name="word.platform.com", inlinks=inlinks)
        kept = HostProfile(name="other.platform.com", inlinks=kept_inlinks, https=True)
        return may_rest_under(copy, kept, copy_declares=False, **more)

    assert may(0, 0)
    assert not may(0, 1)
    assert may(0, 2)
    assert not may(3, 3)
    assert not may(3, 1)
    assert may(3, 8)
    # Of a host that is no replica only pages rest whose texts agree; they need less.
    assert may(5, 7, pages_only=True)
    assert not may(5, 6, pages_only=True)
    assert may(5, 6, pages_only=True, margin=1)
    assert may(1, 3, pages_only=True)
    assert not may(2, 3, pages_only=True)
    assert not may(1, 2, pages_only=True, margin=1)
    assert not may(0, 1, pages_only=True)
    # It stays where it rests, until it is clearly known better itself.
    assert may(1, 1, rests=True)
    assert not may(4, 1, rests=True)
    www = HostProfile(name="www.platform.com", inlinks=9)
    assert may_rest_under(www, HostProfile(name="platform.com"), copy_declares=False)
