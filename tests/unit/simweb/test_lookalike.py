"""The web of look-alikes: reproducible, true by page and by host, rendered as it is true."""

from collections import defaultdict

import numpy as np
import pytest

from crawld.simweb.lookalike.attackers import ATTACKS
from crawld.simweb.lookalike.host import NO_GROUP
from crawld.simweb.lookalike.render import render_page
from crawld.simweb.lookalike.web import LookalikeParameters, make_lookalike_web

SMALL = LookalikeParameters(hosts=600)
DAYS = (0.0, 30.0, 60.0)


@pytest.fixture(scope="module")
def web():
    return make_lookalike_web(SMALL, 3)


def families_of(web):
    families = defaultdict(list)
    for host in web.hosts:
        families[host.family].append(host)
    return [members for members in families.values() if len(members) > 1]


def test_the_same_seed_makes_the_same_web(web):
    again, other = make_lookalike_web(SMALL, 3), make_lookalike_web(SMALL, 4)
    assert [host.name for host in again.hosts] == [host.name for host in web.hosts]
    for here, there in zip(again.hosts, web.hosts, strict=True):
        assert np.array_equal(
            here.pages.content_at(here.number, 9.5), there.pages.content_at(there.number, 9.5)
        )
        assert np.array_equal(here.visited, there.visited)
        assert here.linked_from == there.linked_from
    assert [host.name for host in other.hosts] != [host.name for host in web.hosts]


def test_names_and_paths_are_unique_and_numbers_are_indexes(web):
    assert len({host.name for host in web.hosts}) == len(web.hosts) >= SMALL.hosts
    assert [host.number for host in web.hosts] == list(range(len(web.hosts)))
    for host in web.hosts:
        assert host.pages.paths[0] == "/"
        assert len(set(host.pages.paths)) == len(host.pages) == len(host.pages.text)


def test_a_full_crawl_has_every_page_and_a_partial_one_has_not(web):
    assert all(host.visited.all() for host in web.hosts)
    partial = make_lookalike_web(LookalikeParameters(hosts=600, coverage=0.25), 3)
    shares = [host.visited.mean() for host in partial.hosts]
    assert 0.2 < np.mean([share == 1 for share in shares]) < 0.45
    assert 0.4 < np.mean(shares) < 0.75
    assert all(host.visited[0] for host in partial.hosts)


def test_true_copies_agree_unless_they_diverge_or_stop_following(web):
    for members in families_of(web):
        kind = members[0].kind
        if kind not in ("www", "mirrors", "ports", "staging", "countries", "bare_addresses"):
            continue
        for other in members[1:]:
            assert web.are_copies(members[0].number, other.number)
            for day in DAYS:
                count, share = web.equal_share(members[0].number, other.number, day)
                assert count >= 10
                assert share >= 0.8


def test_look_alikes_never_agree_on_nearly_all_of_their_pages(web):
    looked_at = 0
    for members in families_of(web):
        for at, one in enumerate(members):
            for other in members[at + 1 :]:
                if one.group != NO_GROUP or one.victim >= 0 or other.victim >= 0:
                    continue
                looked_at += 1
                for day in DAYS[::2]:
                    assert web.equal_share(one.number, other.number, day)[1] <= 0.95, one.kind
    assert looked_at > 300


def test_each_attack_has_a_victim_of_another_owner_that_it_resembles(web):
    kinds = set()
    for host in web.hosts:
        if host.victim >= 0:
            kinds.add(host.kind)
            victim = web.hosts[host.victim]
            assert victim.owner != host.owner
            assert victim.family == host.family
            assert host.group == NO_GROUP or not web.are_copies(host.number, host.victim)
    assert kinds == set(ATTACKS)


def test_every_group_of_copies_has_one_original(web):
    groups = defaultdict(list)
    for host in web.hosts:
        groups[host.group].append(host)
    del groups[NO_GROUP]
    assert all(sum(host.original for host in members) == 1 for members in groups.values())
    assert all(len(members) > 1 for members in groups.values())


def test_diverging_copies_begin_to_differ_on_their_day():
    web = make_lookalike_web(LookalikeParameters(0, kinds=("diverging_copies",), groups=20), 3)
    assert {host.kind for host in web.hosts} == {"diverging_copies"}
    assert len(web.hosts) == 40
    fell = []
    for one, other in families_of(web):
        assert web.equal_share(one.number, other.number, 7.9)[1] == 1.0
        turned = other.pages.own_from <= 41.0
        count, share = web.equal_share(one.number, other.number, 41.0)
        assert round(count * (1 - share)) == turned.sum() == (other.pages.own_from < 99.0).sum()
        fell.append(share)
    assert min(fell) < 0.5
    assert max(fell) < 1.0


def test_pages_that_differ_are_rendered_with_other_words(web):
    one, other = next(m for m in families_of(web) if m[0].kind == "small_changes")
    truth = one.pages.content_at(one.number, 1.0) == other.pages.content_at(other.number, 1.0)
    shown = [
        [render_page(web, host.number, at, 1.0).html for at in range(len(truth))]
        for host in (one, other)
    ]
    same = [a == b for a, b in zip(*shown, strict=True)]
    assert same == truth.tolist()
    assert not all(same)


def test_decorated_copies_are_rendered_with_links_dates_and_counters(web):
    host = next(
        host
        for host in web.hosts
        if host.decoration.absolute_links and host.decoration.date and host.decoration.counter
    )
    first, second = (render_page(web, host.number, 0, day).html for day in (1.0, 1.5))
    assert f"://{host.name}/" in first
    assert first != second


def test_a_redirecting_copy_leads_to_the_same_path_of_its_original(web):
    host = next(host for host in web.hosts if (host.pages.redirect_to >= 0).all())
    target = web.hosts[int(host.pages.redirect_to[1])]
    answer = render_page(web, host.number, 1, 5.0)
    assert answer.redirect_url is not None
    assert answer.redirect_url.endswith(f"://{target.name}{host.pages.paths[1]}")
