"""How many hosts one search may prune."""

from crawld.core.replica.storm import NewReplica, released, storm_limit


def new(host_id, domain=None, waiting_since=None):
    return NewReplica(host_id=host_id, domain=domain or f"d{host_id}", waiting_since=waiting_since)


def test_the_limit_is_a_share_and_at_least_ten():
    assert [storm_limit(hosts) for hosts in (0, 20, 200, 220, 20_000)] == [10, 10, 10, 11, 1_000]
    assert storm_limit(20, 1.0) == 20


def test_a_storm_is_released_in_parts_the_longest_waiting_first():
    found_now = [new(at) for at in range(30)]
    assert released(found_now, hosts=100, domain_hosts={}) == set(range(10))
    waiting = [new(at, waiting_since=100.0 - at) for at in range(12)]
    assert released([*found_now[12:], *waiting], hosts=100, domain_hosts={}) == set(range(2, 12))


def test_a_domain_with_very_many_names_delays_only_its_own_hosts():
    farm = [new(at, "farm.com", waiting_since=1.0) for at in range(500)]
    others = [new(1_000 + at) for at in range(20)]
    assert released([*farm, *others], hosts=2_000, domain_hosts={"farm.com": 600}) == {
        *range(30), *(1_000 + at for at in range(20))
    }  # fmt: skip


def test_hosts_pruned_lately_count():
    lately = [*["farm.com"] * 9, "other.com"]
    assert released([new(1), new(2)], hosts=50, domain_hosts={}, pruned_lately=lately) == set()
    lately = ["farm.com"] * 10
    found = [new(1, "farm.com"), new(2)]
    assert released(found, hosts=240, domain_hosts={}, pruned_lately=lately) == {2}
