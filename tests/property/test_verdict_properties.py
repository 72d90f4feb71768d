"""Verdicts: the cost that is told is the cost, more agreement never withdraws, no closure."""

from dataclasses import replace

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
from crawld.daemon.jobs.replicas.plan import PlanInput, linked_pairs, plan
from crawld.daemon.jobs.replicas.storm import StormLimit

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
    resting = {each.host_id: each.canonical_id for each in decisions if each.status != "held"}
    for each in decisions:
        assert tuple(sorted((each.host_id, each.canonical_id))) in links
        assert each.canonical_id not in resting
        if each.status != "held" and each.canonical_id not in preferred:
            assert owner_of(NAMES[each.host_id]) == owner_of(NAMES[each.canonical_id])
        assert each.status == "held" or each.host_id not in preferred
    # No host that could rest is left: its possible hosts rest themselves.
    for one, other in links:
        if owner_of(NAMES[one]) == owner_of(NAMES[other]) and not {one, other} & preferred:
            assert one in resting or other in resting
