"""Holds that a page rests only while its twin, the page at its path of another host, agrees.

A page that was visited after its twin had lost the text differs, and comes back. What the daemon
knows of a twin are its copies: a change that no visit has seen is held against nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

import apsw

from crawld.core.page import PageState
from crawld.universe.file_rows import own_url, rows_of
from crawld.universe.findings import Findings
from crawld.universe.plan import START_AT, HostPlan, UniversePlan

LAG_S: Final = 61.0
"""Two visits so close together may see a page before and after a change."""

COMPARED_S: Final = 8_000.0
"""A visit of a page is compared by the next two searches for replicas, an hour apart."""

RevisionOf = Callable[[apsw.Connection, str, int], int | None]
"""Returns the revision of a copy by its URL and version_id; None: none that was served."""


def check_replicas(
    plan: UniversePlan,
    found: Findings,
    connection: apsw.Connection,
    revision_of: RevisionOf,
    at_s: float,
) -> None:
    """Check the pages at rest of a file."""
    twins = _twins(plan)
    resting = [own_url(url) for url in _resting(connection)] if twins else []
    resting = [url for url in resting if _host(url) in twins]
    if not resting:
        return
    copies: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for row in rows_of(connection, "versions"):
        copies[own_url(row["url"])].append((row["visited_at"], row["version_id"]))
    shown: dict[str, float] = {}
    for row in rows_of(connection, "visits"):
        if row["status"] in (200, 304):
            shown[own_url(row["url"])] = row["visited_at"]
    for url in resting:
        shown_at, host = shown.get(url), _host(url)
        if shown_at is None or shown_at - START_AT > at_s - COMPARED_S or not copies[url]:
            continue  # it was never visited, or not compared yet
        own = revision_of(connection, url, max(copies[url])[1])
        there = [
            (at, revision_of(connection, url.replace(host, twins[host], 1), number))
            for at, number in sorted(copies[url.replace(host, twins[host], 1)])
        ]
        lost = [at for at, number in there if number is not None and number > (own or 0)]
        if own not in {number for _, number in there}:
            found.add("replica_rests", at_s, f"{url} rests; its twin never had revision {own}")
        elif lost and shown_at > lost[0] + LAG_S:
            late_s = shown_at - lost[0]
            what = f"{url} rests with revision {own}, which its twin had lost {late_s:.0f} s before"
            found.add("replica_rests", at_s, what)


def _twins(plan: UniversePlan) -> dict[str, str]:
    """Return the other host of each host with the same pages whose copies tell its revision."""
    if plan.steps or plan.keep_versions is not None:
        return {}
    by_seed: defaultdict[int, list[HostPlan]] = defaultdict(list)
    for host in plan.hosts:
        by_seed[host.site_seed].append(host)
    return {
        one.name: other.name
        for pair in by_seed.values()
        if len(pair) == 2 and not any(each.noise or each.events or each.faults for each in pair)
        for one, other in (pair, pair[::-1])
    }


def _resting(connection: apsw.Connection) -> list[str]:
    pages = rows_of(connection, "pages")
    return [row["url"] for row in pages if row["state"] == PageState.SUSPENDED]


def _host(url: str) -> str:
    return url.split("/", 3)[2]
