"""`crawld bench select`: time of one pick of each policy, against the simulation of the thesis.

A pick is `select` plus `record_visit`, on a host in the middle of its life: pages with change
models, last visited at random times, slots spaced by the budget. All times are CPU time of the
thread: on a busy machine others differ by a factor of two. The baseline estimates GREEDY's
gain as published, from three simulated renewals per page and pick, in vectorized numpy.

Source: PUC-Rio dissertation, 6.2.2 (three samples).
"""

from __future__ import annotations

import time

import numpy as np

from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.core.change.record import RECORD_DTYPE, Records
from crawld.core.change.renewal import EDGES_S, Renewal, exponential_mass
from crawld.core.revisit.policies import Policy, VisitObservation
from crawld.core.revisit.policies_frequency import MergePolicy, merge_schedule
from crawld.core.revisit.policies_greedy import GreedyPolicy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.units import DAY_S

_NOW = 1.7e9
_VISITS_PER_PAGE_DAY = 0.3
_SAMPLES = 3
_MAX_GAPS = 8


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    largest = 100_000 if quick else 1_000_000
    picks = 2_000 if quick else 20_000
    ours, baseline = [], []
    for _ in range(1 if quick else 5):
        metrics: Metrics = {}
        progress("schedule of MERGE in bulk")
        metrics["merge_pick_bulk_ns"] = _bulk_ns(picks * 10)
        for pages, name in ((10_000, "10k"), (100_000, "100k"), (largest, "1m")):
            progress(f"MERGE and INDEX on {pages:,} pages")
            metrics[f"merge_pick_{name}_us"] = _pick_us(_merge(pages), pages, picks)
            metrics[f"index_pick_{name}_us"] = _pick_us(_index(pages), pages, picks)
        progress("hints of 10,000 pages")
        metrics["index_hint_us"] = _hint_us(10_000, picks)
        progress("GREEDY on 10,000 pages")
        metrics["greedy_pick_10k_us"] = _pick_us(_greedy(10_000), 10_000, picks // 4)
        ours.append(metrics)
        progress("three simulated renewals per page and pick")
        simulated_us = _simulation_us(10_000, 4 if quick else 12)
        baseline.append({"greedy_pick_10k_us": simulated_us, "index_pick_10k_us": simulated_us})
    return build_result("select", ours, {"thesis_simulation": baseline})


def _bulk_ns(picks: int) -> float:
    pages = np.arange(10_000)
    frequency = np.random.default_rng(0).lognormal(-13, 1, len(pages))
    began_s = time.thread_time()
    merge_schedule(pages, frequency, picks)
    return (time.thread_time() - began_s) / picks * 1e9


def _merge(pages: int) -> MergePolicy:
    policy = MergePolicy()
    policy.load(np.arange(pages))
    policy.set_frequencies(np.arange(pages), np.random.default_rng(0).lognormal(-13, 1, pages))
    return policy


def _index(pages: int) -> IndexPolicy:
    records = _records(pages)
    policy = IndexPolicy()
    policy.load(np.arange(pages), records["last_visit_at"])
    policy.set_models(np.arange(pages), records)
    # The first pick computes the price of every page; it belongs to loading.
    policy.release(policy.select(_NOW) or 0)
    return policy


def _hint_us(pages: int, hints: int) -> float:
    """Return the time of one hint with uncertain trust, several hints per page."""
    policy = _index(pages)
    policy.set_coverage(0.1, 30.0)
    hinted = np.random.default_rng(3).integers(0, pages, hints).tolist()
    began_s = time.thread_time()
    for k, page in enumerate(hinted):
        policy.record_hint(page, _NOW + k * 1e-4, trust=0.9)
    return (time.thread_time() - began_s) / hints * 1e6


def _greedy(pages: int) -> GreedyPolicy:
    policy = GreedyPolicy()
    policy.load(np.arange(pages), _records(pages)["last_visit_at"])
    policy.set_renewals(np.arange(pages), _renewals(pages))
    # After one round every page has its own gain table.
    for page in range(pages):
        visited_at = _NOW - (pages - page) * _step_s(pages)
        policy.record_visit(page, visited_at, VisitObservation(changed=True))
    return policy


def _step_s(pages: int) -> float:
    return DAY_S / (_VISITS_PER_PAGE_DAY * pages)


def _pick_us(policy: Policy, pages: int, picks: int) -> float:
    step_s = _step_s(pages)
    changed = np.random.default_rng(1).random(picks) < 0.5
    seen = [VisitObservation(changed=bool(value)) for value in changed]
    began_s = time.thread_time()
    for k in range(picks):
        now = _NOW + k * step_s
        page = policy.select(now)
        if page is not None:
            policy.record_visit(page, now, seen[k])
    return (time.thread_time() - began_s) / picks * 1e6


def _simulation_us(pages: int, picks: int) -> float:
    """Estimate E[A − t | ε]·Pr[ε] of every page from three simulated renewals, as published."""
    rng = np.random.default_rng(2)
    mass = _renewals(pages).mass
    cumulative = mass.cumsum(axis=1)
    records = _records(pages)
    base, visited = records["last_change_at"], records["last_visit_at"]
    widths = np.diff(EDGES_S)
    began_s = time.thread_time()
    for k in range(picks):
        now = _NOW + k
        gain = np.zeros(pages)
        for _ in range(_SAMPLES):
            at, first = base.copy(), np.full(pages, np.inf)
            for _gap in range(_MAX_GAPS):
                drawn = rng.random(pages)
                cell = np.minimum((cumulative < drawn[:, None]).sum(axis=1), len(widths) - 1)
                gap = EDGES_S[cell] + widths[cell] * rng.random(pages)
                at = np.where(at <= now, at + gap, at)
                first = np.minimum(first, np.where(at > visited, at, np.inf))
            gain += np.where((first <= now) & (at > now), at - now, 0.0)
        int(gain.argmax())
    return (time.thread_time() - began_s) / picks * 1e6


def _renewals(pages: int) -> Renewal:
    rng = np.random.default_rng(0)
    mass = exponential_mass(rng.lognormal(-14, 1, pages))
    mass = mass * rng.lognormal(0, 0.5, mass.shape) + 1e-4
    return Renewal(EDGES_S, mass / mass.sum(axis=1, keepdims=True))


def _records(pages: int) -> Records:
    """Return models of pages on a host in the middle of its life."""
    rng = np.random.default_rng(0)
    interval_s = rng.lognormal(np.log(20 * DAY_S), 1.5, pages)
    records = np.zeros(pages, RECORD_DTYPE)
    records["last_visit_at"] = _NOW - rng.uniform(0, 2 / _VISITS_PER_PAGE_DAY * DAY_S, pages)
    records["last_change_at"] = records["last_visit_at"] - interval_s * rng.exponential(1, pages)
    records["first_at"] = _NOW - 1e9
    days = np.array([1.0, 10.0, 90.0]) * DAY_S
    records["counts"] = days / interval_s[:, None]
    records["gaps_s"] = interval_s[:, None]
    return records
