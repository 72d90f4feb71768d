"""Replicas: batches equal one batch, counts equal a rebuild, domination as defined, storms end."""

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.replica.candidates import CandidateIndex
from crawld.core.replica.em import TrainingVectors, em_passes
from crawld.core.replica.lac import Rules
from crawld.core.replica.pareto import count_dominated
from crawld.core.replica.storm import NewReplica, released, storm_limit

pages = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=60
)


@given(pages, st.integers(1, 6), st.lists(st.integers(0, 60), max_size=6))
def test_candidates_do_not_depend_on_batches(rows, cap, cuts):
    table = np.array(rows, dtype=np.int64)
    whole, parts = CandidateIndex(cap=cap), CandidateIndex(cap=cap)
    for index, batches in (
        (whole, [table]),
        (parts, np.split(table, sorted(min(cut, len(table)) for cut in cuts))),
    ):
        for batch in batches:
            index.add(batch[:, 0], batch[:, 1].astype(np.uint64), batch[:, 2].astype(np.uint64))
    assert whole.candidates().keys.tolist() == parts.candidates().keys.tolist()
    assert whole.candidates().shared.tolist() == parts.candidates().shared.tolist()
    expected = {}
    for column in (1, 2):
        lists = {}
        for row in rows:
            if row[column]:
                lists.setdefault(row[column], set()).add(row[0])
        for hosts in lists.values():
            if len(hosts) <= cap:
                for one, other in combinations(sorted(hosts), 2):
                    key = one << 32 | other
                    expected[key] = expected.get(key, 0) + 1
    got = whole.candidates()
    assert dict(zip(got.keys.tolist(), got.shared.tolist(), strict=True)) == expected


vectors_and_counts = st.lists(
    st.tuples(
        st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 20),
        st.integers(0, 90),
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip


@given(vectors_and_counts, st.booleans())
def test_updated_rule_counts_equal_a_rebuild_at_every_pass(rows, positive):
    table = {row[:3]: row[3:] for row in rows}
    vectors = np.array(sorted(table))
    counts = np.array([table[tuple(row)] for row in vectors.tolist()])
    certain, unlabelled = counts[:, 0], counts[:, 1]
    for state in em_passes(TrainingVectors(vectors, certain, unlabelled, positive=positive)):
        certain_now = certain + np.where(state.flipped, unlabelled, 0)
        rebuilt = Rules(vectors)
        rebuilt.count(
            certain + unlabelled, certain_now if positive else certain + unlabelled - certain_now
        )
        assert state.rules.total.tolist() == rebuilt.total.tolist()
        assert state.rules.positive.tolist() == rebuilt.positive.tolist()
        assert state.rules.scores().tolist() == rebuilt.scores().tolist()


points = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=40
)


@given(points, points)
def test_count_dominated_agrees_with_the_definition(reference, asked):
    a, b, weight = (np.array(column) for column in zip(*reference, strict=True))
    c, d, _ = (np.array(column) for column in zip(*asked, strict=True))
    got = count_dominated(
        c.astype(float), d.astype(float), (a.astype(float), b.astype(float), weight)
    )
    expected = [
        sum(w for x, y, w in reference if x <= p and y <= q and (x, y) != (p, q))
        for p, q, _ in asked
    ]
    assert got.tolist() == expected


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=120),
    st.integers(1, 400),
    st.floats(0.0, 0.3),
    st.randoms(use_true_random=False),
)
def test_a_storm_ends_within_its_limits_and_nobody_waits_out_of_turn(domains, hosts, share, rng):
    """Search after search: never more than the limits, the longest waiting of a domain first."""
    since = {host: rng.choice((None, 1.0, 2.0, 3.0)) for host in range(len(domains))}
    size = Counter(str(domain) for domain in domains)
    left = set(since)
    for _ in range(1 + len(domains)):
        new = [
            NewReplica(host_id=host, domain=str(domains[host]), waiting_since=since[host])
            for host in left
        ]
        gone = released(new, hosts=hosts, domain_hosts=size, share=share)
        assert gone <= left
        assert len(gone) <= storm_limit(hosts, share)
        for domain, count in Counter(str(domains[host]) for host in gone).items():
            assert count <= storm_limit(size[domain], share)
            of_domain = [host for host in left if str(domains[host]) == domain]
            order = sorted(of_domain, key=lambda host: (since[host] or 9.0, host))
            assert set(order[:count]) == {host for host in gone if str(domains[host]) == domain}
        assert gone or not left
        left -= gone
    assert not left
