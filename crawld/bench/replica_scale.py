"""Candidate generation for 5 million pages on 200,000 hosts, in its own process to measure memory.

    python -m crawld.bench.replica_scale PAGES HOSTS

Prints JSON: seconds to build the index, milliseconds to add one batch, candidate pairs, and pairs
that the budget dropped. A tenth of the paths come from a pool shared by many hosts; most of those
are far above the cap, like `/index.html`.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from crawld.core.replica.candidates import CandidateIndex

_BATCH = 10_000


def main() -> None:
    """Build the index, then add a batch."""
    pages, count = int(sys.argv[1]), int(sys.argv[2])
    rng = np.random.default_rng(0)
    hosts = np.sort(rng.integers(count, size=pages))
    paths = rng.integers(1, 2**63, size=pages).astype(np.uint64)
    pool = rng.random(pages) < 0.1
    paths[pool] = (rng.random(int(pool.sum())) ** 3 * count * 0.4).astype(np.uint64) + 1
    signatures = rng.integers(1, 2**63, size=pages).astype(np.uint64)
    # One host in fifty is a copy of the host before it.
    copied = np.flatnonzero((hosts % 50 == 0) & (hosts > 0))
    original = np.searchsorted(hosts, hosts[copied] - 1)
    paths[copied], signatures[copied] = paths[original], signatures[original]
    began_s = time.perf_counter()
    index = CandidateIndex()
    index.add(hosts, paths, signatures)
    built_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    index.add(
        rng.integers(count, size=_BATCH),
        rng.choice(paths, _BATCH),
        rng.integers(1, 2**63, size=_BATCH).astype(np.uint64),
    )
    found = index.candidates()
    figures = {
        "candidates_s": built_s,
        "candidates_batch_ms": (time.perf_counter() - began_s) * 1e3,
        "candidate_pairs": len(found.keys),
        "dropped_pairs": found.dropped,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
