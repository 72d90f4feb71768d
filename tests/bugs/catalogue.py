"""Bugs of the kinds that crawlers, schedulers and stores have had, each in one place of a copy."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.mutants.mutant import Mutant


class Bug(NamedTuple):
    """A planted bug.

    Attributes:
        patch: what is replaced in the copy.
        invariants: those of the auditor that may find it.
    """

    patch: Mutant
    invariants: frozenset[str]


def _bug(name: str, module: str, old: str, new: str, *invariants: str) -> Bug:
    return Bug(Mutant(name, module, old, new, ()), frozenset(invariants))


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
    ),
    _bug(
        "a version delta based on a purged body",
        "crawld/store/versions/retention.py",
        "            if each not in doomed:\n                return each\n",
        "            return each\n",
        "file",
        "error_logged",
    ),
    _bug(
        "a double visit after a cancelled turn",
        "crawld/daemon/visit/recorder.py",
        "        self._waiting.append(entry)\n",
        "        self._waiting += [entry, entry] if self._drains else [entry]\n",
        "visit_invented",
        "visits_miscounted",
    ),
    _bug(
        "a clock step that frees all hosts",
        "crawld/daemon/frontier/host.py",
        "        rested_at = self._closed_until\n",
        "        rested_at = clock.to_monotonic(self.backoff.closed_until or 0.0)\n",
        "retry_after",
    ),
    _bug(
        "a connection kept to an address that its host has left",
        "crawld/net/fetcher.py",
        "                return address in await self._resolver.resolve(host)\n",
        "                return bool(await self._resolver.resolve(host))\n",
        "address_delay",
    ),
    _bug(
        "an address of a private network reached",
        "crawld/net/address.py",
        "    if allow_private or _is_public(parsed):\n",
        "    if allow_private or parsed.is_private or _is_public(parsed):\n",
        "address_fence",
    ),
)
