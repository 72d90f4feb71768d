"""Bugs of the kinds that crawlers, schedulers and stores have had, each in one place of a copy."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final, NamedTuple

from crawld.universe.plan import EndKind, FaultKind, UniversePlan
from tests.mutants.mutant import Mutant


class Bug(NamedTuple):
    """A planted bug.

    Attributes:
        patch: what is replaced in the copy.
        invariants: those of the auditor that may find it.
        can_show: whether it can do anything in a plan; a seed of another plan is counted without
            a run.
    """

    patch: Mutant
    invariants: frozenset[str]
    can_show: Callable[[UniversePlan], bool]


def _always(_plan: UniversePlan) -> bool:
    return True


def _bug(
    name: str,
    module: str,
    old: str,
    new: str,
    *invariants: str,
    can_show: Callable[[UniversePlan], bool] = _always,
) -> Bug:
    return Bug(Mutant(name, module, old, new, ()), frozenset(invariants), can_show)


def _lasts_a_day(plan: UniversePlan) -> bool:
    return plan.days > 1.0


def _deletes_copies(plan: UniversePlan) -> bool:
    return plan.keep_versions is not None


def _has_single_pages(plan: UniversePlan) -> bool:
    """Whether a healthy host has one page: nothing else is due while its visit is committed."""
    return any(host.pages == 1 and not host.faults for host in plan.hosts)


def _stops_with_visits_under_way(plan: UniversePlan) -> bool:
    """Whether a clean stop comes just after an answer, before its visit is committed."""
    return any(end.kind is EndKind.STOP and end.answers for end in plan.ends)


def _steps_while_closed(plan: UniversePlan) -> bool:
    """Whether the clock goes forward while a host may be closed by a Retry-After."""
    periods = [
        fault
        for host in plan.hosts
        for fault in host.faults
        if fault.kind in (FaultKind.BUSY, FaultKind.TOO_MANY)
    ]
    return any(
        step.by_s > 0 and fault.from_s < step.at_s < fault.until_s + fault.retry_after_s
        for step in plan.steps
        for fault in periods
    )


def _names_private(plan: UniversePlan) -> bool:
    names = [edition for host in plan.hosts for edition in host.names]
    return any(each.fault is None and not ip_address(each.address).is_global for each in names)


def _has_replica(plan: UniversePlan) -> bool:
    """Whether two hosts of one owner have the same pages, and the pages of one may rest."""
    domains = [host.name.split(".")[-2] for host in plan.hosts]
    return plan.prune and len(plan.hosts) == 2 and domains[0] == domains[1]


def _forgets_changes(plan: UniversePlan) -> bool:
    """Whether a wiki has forgotten some changes when its outage ends."""
    return any(host.keeps_changes_s is not None for host in plan.hosts)


def _moves_between_addresses(plan: UniversePlan) -> bool:
    """Whether a host moves, and another one is at its old address."""
    at = {host.name: {each.address for each in host.names} for host in plan.hosts}
    return any(
        len(addresses) > 1 and any(addresses & at[other] for other in at if other != name)
        for name, addresses in at.items()
    )


BUGS: Final = (
    _bug(
        "a delay forgotten over a restart",
        "crawld/daemon/crawl/restore.py",
        "    _first_waits(state, hosts, database.opened_at)\n",
        "",
        "host_delay",
        "address_delay",
    ),
    _bug(
        "a visit acknowledged before its commit is safe",
        "crawld/store/engine/connection.py",
        '"PRAGMA synchronous = FULL"',
        '"PRAGMA synchronous = OFF"',
        "visit_lost",
        "copy_lost",
        "file",
    ),
    _bug(
        "a robots.txt used past its life",
        "crawld/core/robots.py",
        "ROBOTS_MAX_AGE_S = 86_400\n",
        "ROBOTS_MAX_AGE_S = 864_000\n",
        "robots_expired",
        can_show=_lasts_a_day,
    ),
    _bug(
        "an off-by-one in Retry-After",
        "crawld/core/politeness.py",
        "        seconds = float(text)\n",
        "        seconds = float(text) - 1.0\n",
        "retry_after",
    ),
    _bug(
        "a lost wake-up of a host",
        "crawld/daemon/crawl/visitor.py",
        "        self._state.schedule.wake(responder.host.slot)\n        self.leases",
        "        self.leases",
        "host_starved",
        "slot_idle",
        can_show=_has_single_pages,
    ),
    _bug(
        "a version delta based on a purged body",
        "crawld/store/versions/retention.py",
        "            if each not in doomed:\n                return each\n",
        "            return each\n",
        "file",
        "error_logged",
        "bodies_left",
        can_show=_deletes_copies,
    ),
    _bug(
        "a double visit after a cancelled turn",
        "crawld/daemon/visit/recorder.py",
        "        self._drains += 1\n",
        "        self._drains += 1\n        self._waiting += self._waiting[-1:]\n",
        "visit_invented",
        "visits_miscounted",
        can_show=_stops_with_visits_under_way,
    ),
    _bug(
        "a clock step that frees all hosts",
        "crawld/daemon/frontier/host.py",
        "        rested_at = self._closed_until\n",
        "        rested_at = clock.to_monotonic(self.backoff.closed_until or 0.0)\n",
        "retry_after",
        can_show=_steps_while_closed,
    ),
    _bug(
        "a connection kept to an address that its host has left",
        "crawld/net/fetcher.py",
        "            return address in await self._resolver.resolve(host)\n",
        "            return bool(await self._resolver.resolve(host))\n",
        "address_delay",
        can_show=_moves_between_addresses,
    ),
    _bug(
        "a hint dropped at a gap",
        "crawld/daemon/hints/wikis.py",
        "            cursor_updates.append((number, progress.to_json()))\n",
        "            progress.to_json()\n",
        "change_unseen",
        can_show=_forgets_changes,
    ),
    _bug(
        "a replica suspended after its twin changed",
        "crawld/core/replica/agreement.py",
        "        is_behind = lag_s > LEAST_LAG_S\n",
        "        is_behind = lag_s > MAX_LAG_S\n",
        "replica_rests",
        can_show=_has_replica,
    ),
    _bug(
        "an address of a private network reached",
        "crawld/net/address.py",
        "    if allow_private or _is_public(parsed):\n",
        "    if allow_private or parsed.is_private or _is_public(parsed):\n",
        "address_fence",
        can_show=_names_private,
    ),
)
