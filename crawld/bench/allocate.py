"""`crawld bench allocate`: OPT_POLITE on a full-size web, and Wolf allocation on histogram pages.

Baselines in the same run: OPT_POLITE on a tenth of the pages (the cost per page must not grow), and
plain bisection of every host's price on a small web (which the price pools replace).
"""

from __future__ import annotations

import multiprocessing
import resource
import time

import numpy as np

from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.core.change.renewal import EDGES_S, Renewal, exponential_mass
from crawld.core.revisit.allocation import allocate, kkt_residual
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.price import revisit_frequency
from crawld.core.revisit.renewal_allocation import allocate_renewal
from crawld.lab.webbase import synthetic_web

_PAGES, _HOSTS = 14_500_000, 5_462
_BANDWIDTH_SHARE = 0.2
_BISECTIONS = 60


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    pages, hosts = (300_000, 500) if quick else (_PAGES, _HOSTS)
    ours: list[Metrics] = []
    linear: list[Metrics] = []
    for _ in range(1 if quick else 3):
        progress(f"allocating {pages:,} pages on {hosts:,} hosts")
        metrics = _in_own_process(pages, hosts)
        progress("allocating 10,000 histogram pages")
        ours.append({**metrics, "wolf_10k_s": _wolf_s()})
        progress("allocating a tenth of the pages")
        part = _in_own_process(pages // 10, max(hosts // 10, 1))
        linear.append({"opt_polite_page_ns": part["opt_polite_page_ns"]})
    progress("bisecting a small web host by host")
    small = synthetic_web(100_000, 200, 1)
    return build_result(
        "allocate",
        [{**run, **_small(small)} for run in ours],
        {"tenth": linear, "bisection": [_bisect(small)]},
    )


def _in_own_process(pages: int, hosts: int) -> Metrics:
    """Allocate in a separate process to measure its own peak memory."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_opt_polite, (pages, hosts))


def _opt_polite(pages: int, hosts: int) -> Metrics:
    web = synthetic_web(pages, hosts, 0)
    bandwidth = _BANDWIDTH_SHARE * float(web.ceiling.sum())
    began_s = time.perf_counter()
    allocation = allocate(web, bandwidth)
    spent_s = time.perf_counter() - began_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "opt_polite_14m_s": spent_s,
        "opt_polite_page_ns": spent_s / pages * 1e9,
        "kkt_residual": kkt_residual(web, bandwidth, allocation),
        "peak_rss_mb": peak_mb,
    }


def _wolf_s() -> float:
    rng = np.random.default_rng(0)
    rate = rng.lognormal(-13, 1, 10_000)
    mass = exponential_mass(rate) * rng.lognormal(0, 1, (10_000, len(EDGES_S) - 1))
    renewal = Renewal(EDGES_S, mass / mass.sum(axis=1, keepdims=True))
    began_s = time.perf_counter()
    allocate_renewal(renewal, 0.1 * 10_000 / 86_400)
    return time.perf_counter() - began_s


def _small(web: PagesByHost) -> Metrics:
    began_s = time.perf_counter()
    allocate(web, _BANDWIDTH_SHARE * float(web.ceiling.sum()))
    return {"opt_polite_100k_s": time.perf_counter() - began_s}


def _bisect(web: PagesByHost) -> Metrics:
    """Solve by nested bisection: common price outside, price of each limited host inside."""
    bandwidth = _BANDWIDTH_SHARE * float(web.ceiling.sum())
    host = web.host_of_page()
    began_s = time.perf_counter()
    own = _prices(web, host, web.ceiling)
    low, high = -60.0, 60.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        f = revisit_frequency(web.change_rate, np.exp(middle))
        spent = np.minimum(np.bincount(host, f, web.hosts), web.ceiling).sum()
        low, high = (middle, high) if spent > bandwidth else (low, middle)
    price = np.maximum(own, np.exp(high))
    revisit_frequency(web.change_rate, price[host])
    return {"opt_polite_100k_s": time.perf_counter() - began_s}


def _prices(web: PagesByHost, host: np.ndarray, target: np.ndarray) -> np.ndarray:
    low, high = np.full(web.hosts, -60.0), np.full(web.hosts, 60.0)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        f = revisit_frequency(web.change_rate, np.exp(middle)[host])
        above = np.bincount(host, f, web.hosts) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.exp(high))
