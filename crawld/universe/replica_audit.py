"""Holds that a page rests only while its twin, the page at its path of another host, agrees.

A page that was visited after its twin had lost the text differs, and comes back. What the daemon
knows of a twin are its copies: a change that no visit has seen is held against nobody.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Set
from typing import Final

import apsw

from crawld.core.page import PageState
from crawld.store.versions.version import read_body
from crawld.universe.file_rows import own_url, rows_of
from crawld.universe.findings import Findings
from crawld.universe.plan import START_AT, HostPlan, UniversePlan

LAG_S: Final = 61.0
"""Two visits so close together may see a page before and after a change."""

COMPARED_S: Final = 4_200.0
"""A visit of a page is compared by the next search for replicas, an hour after the last."""

RevisionsOf = Callable[[apsw.Connection, str, int], Set[int]]
"""Returns the revisions that a copy may be, by its URL and version_id: an edit may be undone."""


def check_replicas(
    plan: UniversePlan,
    found: Findings,
    connection: apsw.Connection,
    revisions_of: RevisionsOf,
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
        held = max(copies[url])[1]
        own, text = revisions_of(connection, url, held), _text(connection, held, host)
        twin, lost_at = url.replace(host, twins[host], 1), -math.inf
        for at, number in sorted(copies[twin]):
            # Two edits of the twin may lead to a text that it never had under its first number.
            has_it = own & revisions_of(connection, twin, number) or text == _text(
                connection, number, twins[host]
            )
            lost_at = math.inf if has_it else min(lost_at, at)
        if shown_at > lost_at + LAG_S:
            what = f"{url} was seen at {shown_at - START_AT:.0f}, and its twin without its text"
            found.add("replica_rests", at_s, f"{what} at {lost_at - START_AT:.0f}")


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


def _text(connection: apsw.Connection, version_id: int, host: str) -> bytes:
    """Return a stored body without the name of its host."""
    return (read_body(connection, version_id) or b"").replace(host.encode(), b"")


def _host(url: str) -> str:
    return url.split("/", 3)[2]
