"""Verdicts: the cost that is told is the cost, more agreement never withdraws, no closure."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.owners import owner_of
from crawld.core.replica.verdict import (
    HostAgreement,
    PairEvidence,
    is_replica,
    may_be_replica,
    pages_to_probe,
    shares_pages,
)
from crawld.daemon.jobs.replicas.plan import PlanInput
from crawld.daemon.jobs.replicas.planner import Planner, linked_pairs, plan
from crawld.daemon.jobs.replicas.storm import StormLimit
from crawld.store.replica.replica import ReplicaRow

counts = st.tuples(st.integers(0, 80), st.integers(0, 80), st.integers(0, 80)).map(sorted)


@st.composite
def evidences(draw):
    equal, compared, common = draw(counts)
    pages = [common + draw(st.integers(0, 60)) for _ in range(2)]
    partial = draw(st.floats(0.0, 1.0)) * (compared - equal)
    weight = draw(st.floats(0.1, 1.0)) * (equal + partial)
    return PairEvidence(
        names=("a.com", "b.a.com"),
        pages=(pages[0], pages[1]),
        common=common,
        compared=compared,
        equal=equal,
        weight=weight,
        partial=partial,
    )


@given(evidences())
def test_the_pages_asked_for_show_that_a_host_may_be_a_replica(evidence):
    needed = pages_to_probe(evidence)
    assert may_be_replica(evidence) is (needed == 0)
    assert shares_pages(evidence) or needed != 0
    if not needed:
        return
    after = replace(
        evidence,
        pages=(evidence.pages[0] + needed, evidence.pages[1] + needed),
        common=evidence.common + needed,
        compared=evidence.compared + needed,
        equal=evidence.equal + needed,
        weight=evidence.weight + evidence.rarity * needed,
    )
    assert may_be_replica(after)


@given(evidences(), st.integers(0, 100), st.integers(0, 100), st.integers(0, 100),
       st.sampled_from([None, True, False]))  # fmt: skip
def test_more_agreement_never_withdraws(evidence, agreeing, differing, rest, root):
    now = HostAgreement(agreeing + differing + rest, agreeing, differing, root)
    if is_replica(evidence, now, declared=False):
        assert is_replica(evidence, now, declared=True)
        if rest:
            assert is_replica(evidence, now._replace(agreeing=agreeing + 1), declared=True)
        if differing:
            better = now._replace(agreeing=agreeing + 1, differing=differing - 1)
            assert is_replica(evidence, better, declared=True)


NAMES = ("a.com", "www.a.com", "m.a.com", "staging.a.com", "b.net", "www.b.net", "10.1.7.9",
         "10.2.7.9", "x.farm.test", "y.farm.test")  # fmt: skip
SURE = PairEvidence(names=("", ""), pages=(40, 40), common=40, compared=40, equal=40)


@given(
    st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1])),
    st.lists(st.integers(0, 5), min_size=10, max_size=10),
    st.sets(st.integers(0, 9), max_size=2),
)
def test_a_host_rests_only_under_a_host_of_its_owner_with_which_it_shares_pages(
    pairs, inlinks, preferred
):
    given_ = PlanInput(
        evidence={(one, other): replace(SURE, names=(NAMES[one], NAMES[other]))
                  for one, other in pairs},
        operator_words={},
        replicas=(),
        profiles={at: HostProfile(name=name, inlinks=inlinks[at], preferred=at in preferred)
                  for at, name in enumerate(NAMES)},
        hosts=10,
        limit=StormLimit(share=None),
    )  # fmt: skip
    links = linked_pairs(given_)
    decisions = plan(given_)
    resting = {each.server_id: each.canonical_id for each in decisions if each.status != "held"}
    for each in decisions:
        assert tuple(sorted((each.server_id, each.canonical_id))) in links
        assert each.canonical_id not in resting
        if each.status != "held" and each.canonical_id not in preferred:
            assert owner_of(NAMES[each.server_id]) == owner_of(NAMES[each.canonical_id])
        assert each.status == "held" or each.server_id not in preferred
    # No host that could rest is left: its possible hosts rest themselves.
    for one, other in links:
        if owner_of(NAMES[one]) == owner_of(NAMES[other]) and not {one, other} & preferred:
            assert one in resting or other in resting


hosts = st.integers(0, 5)
pairs = st.tuples(hosts, hosts).filter(lambda pair: pair[0] < pair[1])


def row_of(host, canonical, status="pruned", reason="https", agreeing=40):
    names = NAMES[host], NAMES[canonical]
    kept = ReplicaRow(
        host, names[0], canonical, names[1], status, reason, 0.0, 0.0, 0, 0.0, 0, 0, None, 0
    )
    return kept._replace(twins=40, agreeing=agreeing, differing=40 - agreeing)


@st.composite
def plan_inputs(draw):
    """Draw what a plan is made from, over six hosts of three owners."""
    equal = draw(st.dictionaries(pairs, st.sampled_from((0, 20, 40)), max_size=6))
    rows = [
        row_of(host, canonical, status, reason, agreeing)
        for (host, canonical), (status, reason, agreeing) in draw(st.dictionaries(
            pairs,
            st.tuples(st.sampled_from(("pruned", "partly", "held", "withdrawn")),
                      st.sampled_from(("https", "more inlinks")),
                      st.sampled_from((2, 30, 40))),
            max_size=3)).items()
    ]  # fmt: skip
    inlinks = draw(st.lists(st.sampled_from((0, 9)), min_size=6, max_size=6))
    return PlanInput(
        evidence={
            (one, other): replace(SURE, names=(NAMES[one], NAMES[other]), equal=count)
            for (one, other), count in equal.items()
        },
        operator_words=draw(
            st.dictionaries(pairs, st.sampled_from(("confirmed", "rejected")), max_size=1)
        ),
        replicas=list({row.server_id: row for row in rows}.values()),
        profiles={at: HostProfile(name=NAMES[at], inlinks=inlinks[at]) for at in range(6)},
        hosts=10,
        crowded=draw(st.sampled_from(((), ("a.com",)))),
        limit=StormLimit(share=None),
    )


PARTS = ("evidence", "operator_words", "replicas", "profiles", "crowded")


@given(plan_inputs(), st.lists(st.tuples(st.sampled_from(PARTS), plan_inputs()), max_size=4))
def test_a_plan_does_not_depend_on_the_plans_before_it(step, changes):
    planner = Planner()
    for part, other in (("evidence", step), *changes):
        step = replace(step, **{part: getattr(other, part)})
        found = planner.plan(step)
        assert found == plan(step)
        before = planner.decided
        assert planner.plan(step) == found
        assert planner.decided == before, "nothing moved, so nothing is decided again"
        assert not planner.is_overdue(step)


def two_groups():
    """Return the input of a plan of two groups; in each the first host has most inlinks."""
    names = (*NAMES[:8], "x.farm.com", "y.farm.com")
    return PlanInput(
        evidence={
            pair: replace(SURE, names=(names[pair[0]], names[pair[1]]))
            for pair in ((0, 2), (2, 3), (0, 3), (8, 9))
        },
        operator_words={},
        replicas=(),
        profiles={
            at: HostProfile(name=name, inlinks=9 * (at in (0, 8))) for at, name in enumerate(names)
        },
        hosts=10,
        limit=StormLimit(share=None),
    )


@pytest.mark.parametrize("part", PARTS)
def test_whatever_moves_in_a_group_it_is_decided_again(part):
    before = two_groups()
    after = {
        "evidence": {pair: one for pair, one in before.evidence.items() if pair != (0, 3)},
        "operator_words": {(0, 3): "rejected"},
        "replicas": [row_of(0, 2)],
        "profiles": dict(before.profiles) | {3: HostProfile(name=NAMES[3], preferred=True)},
        "crowded": ("farm.com",),
    }
    moved = replace(before, **{part: after[part]})
    planner = Planner()
    assert planner.plan(before) != planner.plan(moved)
    assert planner.plan(moved) == plan(moved)


def test_only_the_groups_that_moved_are_decided_again():
    before, planner = two_groups(), Planner()
    planner.plan(before)
    assert planner.decided == 2
    evidence = before.evidence | {(8, 9): replace(before.evidence[8, 9], equal=30)}
    planner.plan(replace(before, evidence=evidence))
    assert planner.decided == 3
