"""The choice of the kept host."""

from crawld.core.replica.canonical import HostProfile, choose_canonical

DAY_S = 86_400.0


def profiles(**hosts):
    return {
        at: HostProfile(name=name.replace("_", "."), **facts)
        for at, (name, facts) in enumerate(hosts.items())
    }


def test_the_operators_choice_comes_first():
    found = choose_canonical(profiles(a_com={}, b_com={"preferred": True}), {0: {1}, 1: set()})
    assert (found.host, found.reason) == (1, "preferred by the operator")


def test_a_redirect_retires_its_sender():
    found = choose_canonical(profiles(a_com={"https": True}, b_net={}), {0: set(), 1: {0}})
    assert (found.host, found.reason) == (1, "declared by a.com")


def test_hosts_of_one_owner_are_chosen_by_merit():
    hosts = profiles(www_a_com={"https": True}, a_com={"inlinks": 90})
    assert choose_canonical(hosts, {}).host == 0
    found = choose_canonical(profiles(www_a_com={}, a_com={}), {})
    assert (found.host, found.reason) == (1, "the shorter name")


def test_a_copy_cannot_make_itself_canonical():
    # https, more pages, fresher: everything a copier can fake.
    copier = {"https": True, "pages": 500, "changed_at": 9e9, "first_seen_at": 100 * DAY_S}
    hosts = profiles(victim_com={"pages": 90}, copy_net=copier)
    assert choose_canonical(hosts, {}).host is None
    known = profiles(victim_com={"pages": 90, "inlinks": 40}, copy_net=copier)
    assert choose_canonical(known, {}).host == 0
    # It does not win by equal age, nor by links from its own farm.
    farm = profiles(
        victim_com={"inlinks": 40, "first_seen_at": 0.0}, copy_net={**copier, "inlinks": 900}
    )
    assert choose_canonical(farm, {}).host is None


def test_a_declaring_copy_retires_only_itself():
    hosts = profiles(victim_com={}, copy_net={"https": True, "inlinks": 900}, other_org={})
    found = choose_canonical(hosts, {0: {1}, 1: set(), 2: set()})
    assert found.host is None  # victim.com and other.org still have different owners
    assert choose_canonical({at: hosts[at] for at in (0, 1)}, {0: {1}, 1: set()}).host == 0


def test_two_hosts_that_declare_each_other_are_left_to_the_operator():
    hosts = profiles(a_com={}, b_net={})
    assert choose_canonical(hosts, {0: {1}, 1: {0}}).host is None
