"""Decisions on hosts from judged pairs."""

from dataclasses import replace

from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.verdict import PairEvidence
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.plan import PlanInput, gated_pairs, plan
from crawld.daemon.jobs.replicas.storm import StormLimit
from crawld.store.replica.replica import ReplicaRow

SURE = {"pages": (40, 40), "common": 40, "compared": 40, "equal": 38}


def pair(one, other, **more):
    return PairEvidence(names=(one, other), **{**SURE, **more})


def plan_input(names, evidence, **more):
    """Return a plan input for hosts 0, 1, …; evidence by pair of numbers."""
    fields = {
        "operator_words": {},
        "replicas": (),
        "contradictions": (),
        "hosts": len(names),
        **more,
    }
    return PlanInput(
        evidence={key: replace(value, names=tuple(names[at] for at in key)) for key, value in
                  evidence.items()},
        profiles={at: HostProfile(name=name) for at, name in enumerate(names)},
        **fields,
    )  # fmt: skip


def row(host_id, canonical_id, status="pruned", reason="the shorter name"):
    return ReplicaRow(
        host_id, "", canonical_id, "", status, reason, 0.0, 0.0, 0, 0.0, 0, 0, None, 0
    )


def decided(what):
    return {each.host_id: (each.canonical_id, each.status) for each in plan(what)}


NAMES = ("a.com", "www.a.com", "m.a.com")


def test_a_gated_pair_prunes_the_other_host():
    found = plan(plan_input(NAMES[:2], {(0, 1): pair("", "")}))
    assert found == [Decision(1, 0, "pruned", "the shorter name")]


def test_groups_close_over_gated_pairs_only():
    weak = pair("", "", equal=2)
    assert decided(plan_input(NAMES, {(0, 1): pair("", ""), (1, 2): weak})) == {1: (0, "pruned")}
    both = {(0, 1): pair("", ""), (1, 2): pair("", "")}
    assert decided(plan_input(NAMES, both)) == {1: (0, "pruned"), 2: (0, "pruned")}


def test_a_contradiction_holds_the_group():
    both = {(0, 1): pair("", ""), (1, 2): pair("", "")}
    what = plan_input(NAMES, both, contradictions=[(0, 2)])
    assert set(decided(what).values()) == {(0, "held")}
    assert "a.com and m.a.com show different content" in {each.reason for each in plan(what)}
    spoken = plan_input(NAMES, both, contradictions=[(0, 2)], operator_words={(0, 2): "confirmed"})
    assert set(decided(spoken).values()) == {(0, "pruned")}


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
    assert decided(plan_input(names, evidence)) == {1: (0, "held")}
    assert decided(plan_input(names, evidence, operator_words={(0, 1): "confirmed"})) == {
        1: (0, "pruned")
    }


def test_an_owners_hosts_are_pruned_beside_a_foreign_host():
    names = ("a.com", "www.a.com", "b.net")
    every = {(0, 1): pair("", ""), (0, 2): pair("", ""), (1, 2): pair("", "")}
    assert decided(plan_input(names, every)) == {1: (0, "pruned"), 2: (0, "held")}
    given = plan_input(names, every, operator_words={(0, 2): "confirmed"})
    assert decided(given) == {1: (0, "pruned"), 2: (0, "pruned")}
    # A rejected host stays out although it is gated with another host of the group.
    given = plan_input(names, every, operator_words={(0, 2): "rejected"})
    assert decided(given) == {1: (0, "pruned"), 2: (0, "held")}
    assert plan(given)[-1].reason == "a.com and b.net are two hosts, as the operator says"


def test_a_pruned_host_stays_pruned_despite_old_copies():
    aged = {(0, 1): pair("", "", equal=0)}
    what = plan_input(NAMES[:2], aged, replicas=[row(1, 0)])
    assert gated_pairs(what) == {(0, 1)}
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
    return {each.host_id for each in plan(what) if each.status == "pruned"}


def test_a_storm_of_verdicts_is_pruned_in_parts():
    assert len(pruned(storm(10))) == 10
    what = storm(30)
    waiting = {each.host_id for each in plan(what) if each.waits_for == "turn"}
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
            before = rows.get(each.host_id)
            since = before.since if before and before.status == each.status else now
            rows[each.host_id] = ReplicaRow(
                each.host_id, what.profiles[each.host_id].name, each.canonical_id, "",
                each.status, "", since, 0.0, 0, 0.0, 0, 0, None, 0, each.waits_for,
            )  # fmt: skip
        done = sum(row.status == "pruned" for row in rows.values())
        assert done == min(10 * (1 + search // 3), 35)


def test_nothing_is_pruned_if_the_config_forbids_it():
    limit = StormLimit(prune=False)
    what = plan_input(NAMES[:2], {(0, 1): pair("", "")}, limit=limit)
    assert plan(what) == [Decision(1, 0, "held", "pruning is off in the config", "config")]
