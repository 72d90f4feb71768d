"""Decisions on hosts from judged pairs."""

from dataclasses import replace

import pytest

from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.verdict import PairEvidence
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.plan import PlanInput
from crawld.daemon.jobs.replicas.planner import Planner, linked_pairs, plan
from crawld.daemon.jobs.replicas.storm import StormLimit
from crawld.store.replica.replica import RESTING, ReplicaRow
from tests.unit.steps import assert_linear

SURE = {"pages": (40, 40), "common": 40, "compared": 40, "equal": 38}


def pair(one, other, **more):
    return PairEvidence(names=(one, other), **{**SURE, **more})


def plan_input(names, evidence, **more):
    """Return a plan input for hosts 0, 1, …; evidence by pair of numbers."""
    fields = {
        "operator_words": {},
        "replicas": (),
        "hosts": len(names),
        **more,
    }
    return PlanInput(
        evidence={key: replace(value, names=tuple(names[at] for at in key)) for key, value in
                  evidence.items()},
        profiles={at: HostProfile(name=name) for at, name in enumerate(names)},
        **fields,
    )  # fmt: skip


def row(host_id, canonical_id, status="pruned", reason="the shorter name", **agreement):
    kept = ReplicaRow(
        host_id, "", canonical_id, "", status, reason, 0.0, 0.0, 0, 0.0, 0, 0, None, 0
    )
    return kept._replace(**agreement)


def decided(what):
    return {each.server_id: (each.canonical_id, each.status) for each in plan(what)}


NAMES = ("a.com", "www.a.com", "m.a.com")


BOTH = {(0, 1): pair("", ""), (1, 2): pair("", "")}


def agreement(agreeing, differing, root=True):
    return {"twins": 40, "agreeing": agreeing, "differing": differing, "root": root}


def test_a_host_is_declared_only_after_its_pages_were_compared():
    what = plan_input(NAMES[:2], {(0, 1): pair("", "")})
    assert plan(what) == [Decision(1, 0, "partly", "the shorter name")]
    for compared, status in (({}, "partly"), (agreement(38, 2), "pruned"),
                             (agreement(12, 28), "partly")):  # fmt: skip
        known = replace(what, replicas=[row(1, 0, "partly", **compared)])
        assert decided(known) == {1: (0, status)}
        assert Planner().is_overdue(known) is (status == "pruned")


def test_the_word_of_a_host_is_compared_with_its_pages():
    """A site that quotes another names it as canonical; one that moves redirects at first."""
    names = ("agency.com", "blog.net")
    for declaration in ({"canonicals": (0, 38)}, {"redirects": (0, 38)}):
        what = plan_input(names, {(0, 1): pair("", "", **declaration)})
        assert decided(what) == {1: (0, "partly")}
        for agreeing, differing, status in ((38, 2, "pruned"), (30, 10, "partly"),
                                            (0, 40, "partly")):  # fmt: skip
            for before in ("partly", "pruned"):
                rows = [row(1, 0, before, **agreement(agreeing, differing))]
                assert decided(replace(what, replicas=rows)) == {1: (0, status)}
        bare = {(0, 1): pair("", "", equal=0, compared=0, **declaration)}
        assert decided(plan_input(names, bare)) == {1: (0, "pruned")}


def test_the_name_to_which_the_other_leads_is_kept():
    """Its pages have redirects as their twins, which nothing can agree with."""
    names = ("www.a.com", "a.com")
    what = plan_input(names, {(0, 1): pair("", "", redirects=(15, 0))})
    known = replace(what, profiles={
        0: HostProfile(name=names[0], inlinks=9, kept=True), 1: HostProfile(name=names[1]),
    })  # fmt: skip
    assert plan(known) == [Decision(0, 1, "partly", "declared by www.a.com")]
    plain = replace(known, evidence={(0, 1): pair(*names)})
    assert decided(plain) == {1: (0, "partly")}


def test_few_equal_pages_of_one_site_stay_compared():
    few = {(0, 1): pair("", "", equal=1, pages=(300, 300))}
    for names, status in ((("srv1.a.com", "srv2.a.com"), "partly"),
                          (("one.a.com", "two.a.com"), "withdrawn")):  # fmt: skip
        rows = [row(1, 0, "partly", **agreement(1, 39, root=False))]
        assert decided(plan_input(names, few, replicas=rows)) == {1: (0, status)}


def test_one_statistic_withdraws_in_two_steps():
    names = ("a.com", "b.a.com")
    what = plan_input(names, {(0, 1): pair("", "")})

    def after(agreeing, differing, root=None):
        known = replace(what, replicas=[row(1, 0, **agreement(agreeing, differing, root))])
        statuses = [each.status for each in plan(known)]
        assert Planner().is_overdue(known) is (statuses != ["pruned"])
        return statuses

    assert after(32, 8) == ["pruned"]
    assert after(39, 1, root=False) == ["pruned"]
    assert after(37, 3, root=False) == ["partly"]
    assert after(31, 9) == ["partly"]
    assert after(3, 37) == ["partly"]
    assert after(1, 39) == ["withdrawn"]
    gone = replace(what, replicas=[row(1, 0, **agreement(1, 39))])
    assert plan(gone) == [Decision(1, 0, "withdrawn", "39 of 40 compared pages differ")]
    # A withdrawn host is judged anew by what its pages show since.
    fresh = replace(what, replicas=[row(1, 0, "withdrawn", **agreement(1, 39))])
    assert decided(fresh) == {1: (0, "partly")}
    assert plan(replace(fresh, evidence={(0, 1): pair(*names, equal=2)})) == []


def test_without_a_clear_victory_a_host_is_not_declared():
    """A few more inlinks can be bought: the pages that agree rest, but the host is no replica."""
    names, evidence = ("one.a.com", "two.a.com"), {(0, 1): pair("", "")}

    def known(inlinks, *rows):
        profiles = {
            at: HostProfile(name=names[at], inlinks=inlinks[at]) for at in range(len(names))
        }
        return replace(plan_input(names, evidence), profiles=profiles, replicas=rows)

    whole = agreement(40, 0)
    assert decided(known((3, 3))) == {1: (0, "held")}
    assert decided(known((2, 1))) == {1: (0, "held")}
    assert decided(known((4, 3))) == {1: (0, "held")}
    assert decided(known((5, 3))) == {1: (0, "partly")}
    for inlinks, before, after in (
        ((5, 3), "partly", "partly"),
        ((8, 3), "partly", "pruned"),
        ((5, 3), "pruned", "pruned"),
        ((3, 5), "pruned", "pruned"),
    ):
        what = known(inlinks, row(1, 0, before, **whole))
        assert decided(what) == {1: (0, after)}
        assert Planner().is_overdue(what) is (before != after)
    assert decided(known((3, 5), row(1, 0, "partly", **whole))) == {1: (0, "partly")}


def test_a_declaration_needs_no_comparison():
    moved = {(0, 1): pair("", "", equal=0, compared=0, redirects=(0, 40))}
    assert decided(plan_input(("a.com", "b.net"), moved)) == {1: (0, "pruned")}


def test_nothing_follows_from_the_pages_of_a_third_host():
    # law ≈ portal ≈ arts, but law and arts share nothing.
    names = ("portal.uni.com", "law.uni.com", "arts.uni.com")
    star = {(0, 1): pair("", ""), (0, 2): pair("", "")}
    inlinks = {at: HostProfile(name=name, inlinks=9 * (at == 0)) for at, name in enumerate(names)}
    centre = replace(plan_input(names, star), profiles=inlinks)
    assert decided(centre) == {1: (0, "partly"), 2: (0, "partly")}
    chain = replace(plan_input(NAMES, BOTH), profiles=plan_input(NAMES, {}).profiles)
    assert decided(chain) == {1: (0, "partly")}  # m.a.com was compared with www.a.com only
    every = {**BOTH, (0, 2): pair("", "")}
    assert decided(plan_input(NAMES, every)) == {1: (0, "partly"), 2: (0, "partly")}


def test_a_host_rests_under_the_first_host_with_which_it_shares_pages():
    two = {(0, 2): pair("", ""), (1, 2): pair("", "")}
    assert decided(plan_input(("a.com", "m.a.com", "www.m.a.com"), two)) == {2: (0, "partly")}


def in_letters(number):
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:04}")


@pytest.mark.parametrize("shape", ["chain", "star"])
def test_a_large_group_takes_time_linear_in_its_links(shape):
    """Each link is looked at once from either side, whatever the shape of the group."""

    def made(hosts):
        pairs = [(at if shape == "chain" else 0, at + 1) for at in range(hosts - 1)]
        names = [f"{in_letters(at)}.a.com" for at in range(hosts)]
        evidence = {each: pair("", "") for each in pairs}
        return plan_input(names, evidence, hosts=hosts, limit=StormLimit(share=None))

    found = decided(made(600))
    assert len(found) == (300 if shape == "chain" else 599)
    assert {status for _, status in found.values()} == {"partly"}
    assert_linear(made, plan, size=40)


def test_the_operator_overrules_the_evidence():
    evidence = {(0, 1): pair("", "")}
    assert plan(plan_input(NAMES[:2], evidence, operator_words={(0, 1): "rejected"})) == []
    nothing = {(0, 1): pair("", "", equal=0, compared=0)}
    assert decided(plan_input(NAMES[:2], nothing, operator_words={(0, 1): "confirmed"})) == {
        1: (0, "pruned")
    }


def test_different_owners_are_held_unless_confirmed():
    names = ("a.com", "b.net")
    evidence = {(0, 1): pair("", "")}
    held = plan_input(names, evidence)
    assert plan(held) == [Decision.held(1, 0, "a.com and b.net may have different owners")]
    assert decided(replace(held, operator_words={(0, 1): "confirmed"})) == {1: (0, "pruned")}
    # Shared pages alone are no question, but a question that was asked stays.
    some = plan_input(names, {(0, 1): pair("", "", equal=25)})
    assert plan(some) == []
    assert decided(replace(some, replicas=[row(1, 0, "held")])) == {1: (0, "held")}


def test_the_word_of_a_host_needs_several_pages_that_agree():
    """Most pages of a host may name another as canonical, of which few pages were visited yet."""
    declared = {(0, 1): pair("", "", pages=(4, 15), common=1, compared=1, equal=1,
                             canonicals=(0, 11))}  # fmt: skip
    what = plan_input(("site.com", "copy.net"), declared)
    for agreeing, unvisited, status in ((1, 26, "partly"), (5, 26, "partly"), (6, 26, "pruned"),
                                        (3, 0, "pruned")):  # fmt: skip
        known = {"twins": agreeing, "agreeing": agreeing, "unvisited": unvisited}
        assert decided(replace(what, replicas=[row(1, 0, "partly", **known)])) == {1: (0, status)}
    # What is declared stays so: pages may be lost from a site.
    known = {"twins": 4, "agreeing": 4, "unvisited": 9}
    assert decided(replace(what, replicas=[row(1, 0, **known)])) == {1: (0, "pruned")}


def test_a_domain_that_gives_names_to_anybody_has_many_owners():
    names = ("one.farm.com", "two.farm.com")
    what = plan_input(names, {(0, 1): pair("", "")})
    assert decided(what) == {1: (0, "partly")}
    assert decided(replace(what, crowded={"farm.com"})) == {1: (0, "held")}


def test_mirrors_of_a_crowded_domain_rest_under_its_site():
    names = ("farm.com", "one.farm.com", "two.farm.com")
    copies = {(0, 1): pair("", ""), (0, 2): pair("", ""), (1, 2): pair("", "")}
    copies = {key: replace(one, root=True) for key, one in copies.items()}
    what = replace(plan_input(names, copies), crowded={"farm.com"})
    assert decided(what) == {1: (0, "partly"), 2: (0, "partly")}
    # Page by page the root decides, until a host is declared: then its verdict does.
    for root, before, status in (
        (True, "partly", "pruned"),
        (None, "partly", "pruned"),
        (False, "partly", "held"),
        (False, "pruned", "pruned"),
    ):
        rows = [row(at, 0, before, **agreement(40, 0, root)) for at in (1, 2)]
        assert decided(replace(what, replicas=rows)) == {1: (0, status), 2: (0, status)}
    # A user of the platform, whose pages are below a path of its site or at a name of it.
    for root in (False, None):
        other_root = {key: replace(one, root=root) for key, one in copies.items()}
        users = replace(what, evidence=plan_input(names, other_root).evidence)
        assert {status for _, status in decided(users).values()} <= {"held"}
    no_site = plan_input(names[1:], {(0, 1): copies[1, 2]})
    assert decided(replace(no_site, crowded={"farm.com"})) == {1: (0, "held")}


def test_an_owners_hosts_are_pruned_beside_a_foreign_host():
    names = ("a.com", "www.a.com", "b.net")
    every = {(0, 1): pair("", ""), (0, 2): pair("", ""), (1, 2): pair("", "")}
    assert decided(plan_input(names, every)) == {1: (0, "partly"), 2: (0, "held")}
    given = plan_input(names, every, operator_words={(0, 2): "confirmed"})
    assert decided(given) == {1: (0, "partly"), 2: (0, "pruned")}
    # A rejected host is not asked about again because of the copy of the other.
    given = plan_input(names, every, operator_words={(0, 2): "rejected"})
    assert decided(given) == {1: (0, "partly")}


def test_a_copy_whose_own_host_comes_first_rests_under_that():
    names = ("b.net", "a.com", "www.b.net")
    every = {(0, 1): pair("", ""), (0, 2): pair("", ""), (1, 2): pair("", "")}
    what = plan_input(names, every)
    first = {**what.profiles, 1: HostProfile(name="a.com", inlinks=9)}
    assert decided(replace(what, profiles=first)) == {0: (1, "held"), 2: (0, "partly")}


def test_a_pruned_host_stays_pruned_despite_old_copies():
    aged = {(0, 1): pair("", "", equal=0)}
    what = plan_input(NAMES[:2], aged, replicas=[row(1, 0)])
    assert linked_pairs(what) == {(0, 1): True}
    assert plan(what) == [Decision(1, 0, "pruned", "the shorter name")]


def test_the_canonical_host_stays_even_if_another_has_more_pages():
    what = plan_input(NAMES[:2], {(0, 1): pair("", "")}, replicas=[row(0, 1, reason="https")])
    assert plan(what) == [Decision(0, 1, "pruned", "https")]
    told = replace(what, profiles={**what.profiles, 0: HostProfile(name="a.com", preferred=True)})
    assert decided(told) == {1: (0, "pruned")}


def test_a_canonical_host_that_redirects_away_is_replaced():
    moved = {(0, 1): pair("", "", redirects=(40, 0))}
    assert decided(plan_input(NAMES[:2], moved, replicas=[row(1, 0)])) == {0: (1, "pruned")}


def storm(copies, hosts=200, **more):
    """Return a plan input for many domains, each with a host and its copy."""
    names = [name for at in range(copies) for name in (f"s{at}.com", f"www.s{at}.com")]
    evidence = {(2 * at, 2 * at + 1): pair("", "") for at in range(copies)}
    return plan_input(names, evidence, hosts=hosts, **more)


def pruned(what):
    return {each.server_id for each in plan(what) if each.status in RESTING}


def test_a_storm_of_verdicts_is_pruned_in_parts():
    assert len(pruned(storm(10))) == 10
    what = storm(30)
    waiting = {each.server_id for each in plan(what) if each.waits_for == "turn"}
    assert len(pruned(what)) == 10
    assert pruned(what) | waiting == set(range(1, 60, 2))
    # Earlier replicas and confirmed pairs are not affected.
    calm = replace(what, replicas=[row(1, 0)], operator_words={(2, 3): "confirmed"})
    assert pruned(calm) >= {1, 3}
    assert len(pruned(calm)) == 12
    # The config limits how many; the operator may allow all.
    for share in (0.5, None):
        assert len(pruned(replace(what, limit=StormLimit(share=share)))) == 30


def test_a_storm_ends_by_itself_and_repeated_searches_do_not_hasten_it():
    what, rows = storm(35), {}
    for search in range(12):
        now = 1_000.0 * (search // 3)
        what = replace(what, replicas=list(rows.values()), limit=StormLimit(since=now - 900.0))
        for each in plan(what):
            before = rows.get(each.server_id)
            since = before.since if before and before.status == each.status else now
            rows[each.server_id] = ReplicaRow(
                each.server_id, what.profiles[each.server_id].name, each.canonical_id, "",
                each.status, "", since, 0.0, 0, 0.0, 0, 0, None, 0, each.waits_for,
            )  # fmt: skip
        done = sum(row.status in RESTING for row in rows.values())
        assert done == min(10 * (1 + search // 3), 35)


def test_nothing_is_pruned_if_the_config_forbids_it():
    limit = StormLimit(prune=False)
    what = plan_input(NAMES[:2], {(0, 1): pair("", "")}, limit=limit)
    assert plan(what) == [Decision(1, 0, "held", "pruning is off in the config", "config")]


def test_of_the_names_of_one_site_the_odd_one_is_not_kept():
    """Three machines show the same pages; the fourth, with most inlinks, a third of its own."""

    def kept(names, compared=12):
        what = plan_input(
            names,
            {
                (one, other): pair(
                    "",
                    "",
                    common=compared,
                    compared=compared,
                    equal=compared * (8 - 3 * (one == 0)) // 8,
                )
                for one in range(4)
                for other in range(one + 1, 4)
            },
        )
        inlinks = {0: 11, 1: 2, 2: 6, 3: 2}
        profiles = {
            at: replace(profile, inlinks=inlinks[at], pages=40)
            for at, profile in what.profiles.items()
        }
        found = decided(replace(what, profiles=profiles))
        assert len(found) == 3
        return {canonical for canonical, _ in found.values()}

    machines = [f"cache{number}.a.com" for number in range(4)]
    assert kept(machines) == {2}
    # A few pages tell nothing; other names may be those of an attacker.
    assert kept(machines, compared=5) == {0}
    assert kept(["en.a.com", *machines[1:]]) == {0}


def test_a_host_of_which_most_was_never_visited_is_not_declared():
    """Ten pages near the root are those of another host; the others may be its own."""

    def what(status, agreeing, unvisited):
        seen = {"twins": agreeing, "agreeing": agreeing, "differing": 0, "unvisited": unvisited}
        rows = (row(1, 0, status, **seen),)
        return plan_input(("a.com", "m.a.com"), {(0, 1): pair("", "")}, replicas=rows)

    for before, agreeing, unvisited, after in (
        ("partly", 10, 0, "pruned"),
        ("partly", 10, 40, "partly"),
        ("partly", 30, 9_000, "pruned"),
        # What a replica finds later does not undo the verdict.
        ("pruned", 10, 40, "pruned"),
    ):
        found = what(before, agreeing, unvisited)
        assert decided(found) == {1: (0, after)}
        assert Planner().is_overdue(found) is (before != after)


def branches(*rows, **inlinks):
    """Return the plan input of four branches: most pages of two agree."""
    names = [f"{name}.a.com" for name in ("leeds", "turin", "paris", "berlin")]
    equal = {(0, 1): 10, (0, 2): 11, (0, 3): 10, (1, 2): 36, (1, 3): 12, (2, 3): 9}
    what = plan_input(
        names, {key: pair("", "", equal=count) for key, count in equal.items()}, replicas=rows
    )
    known = {"leeds": 8, "turin": 7, "paris": 2, "berlin": 3} | inlinks
    profiles = {
        at: replace(profile, inlinks=known[profile.name.partition(".")[0]])
        for at, profile in what.profiles.items()
    }
    return replace(what, profiles=profiles)


def test_branches_rest_under_the_one_with_which_most_pages_agree():
    """Not under the first in the order, with which few do."""
    assert decided(branches()) == {2: (1, "partly"), 3: (1, "partly")}
    # Also where they rested under another, as long as it is not for little.
    resting = [row(at, 0, "partly") for at in (2, 3)]
    assert decided(branches(*resting)) == {2: (1, "partly"), 3: (1, "partly")}
    # Whoever is kept rests under no other, and needs as many inlinks as before.
    assert decided(branches(leeds=20)) == {2: (1, "partly"), 3: (1, "partly")}
    assert decided(branches(turin=3)) == {2: (0, "partly"), 3: (0, "partly"), 1: (0, "partly")}


def test_branches_stay_where_they_rest_for_little():
    close = branches(row(2, 0, "partly"), row(3, 0, "partly"))
    equal = {(0, 2): 20, (0, 3): 10, (1, 2): 24, (1, 3): 12}
    evidence = close.evidence | {key: pair("", "", equal=count) for key, count in equal.items()}
    evidence = {key: replace(one, names=close.evidence[key].names) for key, one in evidence.items()}
    found = decided(replace(close, evidence=evidence))
    assert {found[at][0] for at in (2, 3)} == {0}
    moved = decided(replace(close, evidence=evidence, replicas=()))
    assert {moved[at][0] for at in (2, 3)} == {1}


def test_branches_do_not_move_with_a_verdict():
    """Declared or not, a branch rests where most pages agree."""
    resting = row(2, 1, "partly", **agreement(36, 4))
    for status in ("partly", "pruned"):
        declared = resting._replace(status=status, **agreement(40, 0))
        for one in (resting, declared):
            assert decided(branches(one))[2][0] == 1
    told = branches()
    preferred = {**told.profiles, 0: replace(told.profiles[0], preferred=True)}
    assert decided(replace(told, profiles=preferred))[2] == (0, "partly")
