"""Resolves host names, with a cache, a bounded number of lookups, and one at a time per name.

There are two lookups. `SystemLookup` calls the C library in threads, so that /etc/hosts, nsswitch
and search rules apply; a hung name server can block only these threads. `NameserverLookup` queries
the configured name servers.

Lookups run in tasks of `CachedResolver.run`, not in those of their callers: a name waits for a slot
(`lookup_slots.py`), and its time limit starts when its lookup starts. After the limit the callers
get a timeout, and the lookup runs on: it holds a thread anyway, and its result is cached.

Invariants: at most one lookup per name at a time; at most `CACHE_NAMES` cached names; a result is
cached for at least `MIN_TTL_S` and at most `MAX_TTL_S` seconds.

Addresses are not checked here but when the connection is opened, because cached results serve sites
with and without permission for private addresses.
"""

from __future__ import annotations

import errno
import math
import os
import socket
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import tenacity
import trio

from crawld.net.address import literal_address
from crawld.net.lookup_slots import LOOKUPS_AT_ONCE, LookupSlots, QueuedLookup
from crawld.workers import THREADS, Workers

MIN_TTL_S = 30.0
MAX_TTL_S = 3600.0
SYSTEM_TTL_S = 300.0
"""The C library does not report a time to live; browsers cache results for at most five minutes."""
NXDOMAIN_TTL_S = 60.0
_CACHED_LITERALS = 4_096
FAULT_TTL_S = 2.0
"""Long enough for the waiters of one lookup to share its failure, short enough to try again."""
CACHE_NAMES = 100_000
MAX_ADDRESSES = 16
LOOKUP_THREADS = 2 * LOOKUPS_AT_ONCE
"""Those within their time limit and those beyond it; `LookupSlots` starts no more."""
LOOKUP_S = 10.0
NAMESERVER_ROUNDS = 2
NAMESERVER_PAUSE_S = 0.5
"""A name server that has just started answers SERVFAIL or nothing; later it may know the name."""
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})
NO_FILES = "too many open files"

ResolutionKind = Literal["nxdomain", "temporary", "timeout", "no_files"]


class ResolutionError(Exception):
    """A name has no address.

    Args:
        kind: `nxdomain`: the name does not exist; `no_files`: there is no open file left for the
            lookup; otherwise the resolver or the network failed.
        detail: short text for a person.
    """

    def __init__(self, kind: ResolutionKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class Resolver(Protocol):
    """Resolves host names for the fetcher."""

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, best first, or raise `ResolutionError`."""


class Lookup(Protocol):
    """Looks up names, without a cache."""

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Return addresses and their time to live in seconds, or raise `ResolutionError`."""


class FixedResolver:
    """Resolves only the names in a table."""

    def __init__(self, hosts: Mapping[str, str | Sequence[str]]) -> None:
        self._hosts = {
            host: (addresses,) if isinstance(addresses, str) else tuple(addresses)
            for host, addresses in hosts.items()
        }

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses in the table; for a literal address, that address."""
        known = self.known(host)
        if known is None:
            raise ResolutionError("nxdomain", f"{host} is not in the table of hosts")
        return known

    def known(self, host: str) -> tuple[str, ...] | None:
        """Return what `resolve` does; None: the host is not in the table."""
        return _literal(host) or self._hosts.get(host)


@lru_cache(maxsize=_CACHED_LITERALS)
def _literal(host: str) -> tuple[str, ...] | None:
    """Return the address that a host is written as; None: it is a name."""
    literal = literal_address(host)
    return None if literal is None else (str(literal),)


class SystemLookup:
    """Looks up names with the C library, in a limited number of threads."""

    def __init__(self, workers: Workers = THREADS) -> None:
        self._workers = workers
        self._limiter = trio.CapacityLimiter(LOOKUP_THREADS)

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Call getaddrinfo; see `Lookup`."""
        try:
            found = await self._workers.run(
                _getaddrinfo, host, limiter=self._limiter, abandon_on_cancel=True
            )
        except socket.gaierror as error:
            if _lacks_files():
                # The C library then finds no server, or no name.
                raise ResolutionError("no_files", NO_FILES) from error
            absent = error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            raise ResolutionError(
                "nxdomain" if absent else "temporary", str(error.strerror)
            ) from error
        except UnicodeError as error:
            raise ResolutionError("nxdomain", "not a host name") from error
        except OSError as error:
            raise _os_fault(error) from error
        return found, SYSTEM_TTL_S


def _os_fault(error: OSError) -> ResolutionError:
    if error.errno in OUT_OF_FILES:
        return ResolutionError("no_files", NO_FILES)
    return ResolutionError("temporary", str(error))


def _lacks_files() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in OUT_OF_FILES
    return False


def _getaddrinfo(host: str) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_temporary(error: BaseException) -> bool:
    return isinstance(error, ResolutionError) and error.kind == "temporary"


class NameserverLookup:
    """Queries given name servers (IP addresses) over UDP and TCP, one after the other.

    If none has an answer, all are asked once more after a pause, within the time limit of a lookup.

    Its library is imported here, since few daemons use it and it takes a thirtieth of a start.
    """

    def __init__(self, nameservers: Sequence[str], port: int = 53) -> None:
        import dns.asyncresolver

        self._resolver = dns.asyncresolver.Resolver(configure=False)
        self._resolver.nameservers = list(nameservers)
        self._resolver.port = port

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Query A and AAAA records; see `Lookup`."""
        return await self._ask_all(host, trio.current_time() + LOOKUP_S)

    @tenacity.retry(
        retry=tenacity.retry_if_exception(_is_temporary),
        wait=tenacity.wait_fixed(NAMESERVER_PAUSE_S),
        stop=tenacity.stop_after_attempt(NAMESERVER_ROUNDS),
        sleep=trio.sleep,
        reraise=True,
    )
    async def _ask_all(self, host: str, until: float) -> tuple[tuple[str, ...], float]:
        """Ask the name servers in turn until one has an answer; `until` is on trio's clock."""
        import dns.exception
        import dns.resolver

        left_s = until - trio.current_time()
        try:
            answers = await self._resolver.resolve_name(host, lifetime=left_s)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer) as error:
            raise ResolutionError("nxdomain", "no such name") from error
        except dns.exception.DNSException as error:
            if _lacks_files():
                raise ResolutionError("no_files", NO_FILES) from error
            if isinstance(error, dns.resolver.LifetimeTimeout):
                raise ResolutionError("timeout", "no name server answered") from error
            raise ResolutionError("temporary", str(error)) from error
        except OSError as error:
            raise _os_fault(error) from error
        # IPv4 first: whether IPv6 works is unknown here.
        addresses = sorted(answers.addresses(), key=lambda address: ":" in address)
        ttl_s = min(answer.rrset.ttl for answer in answers.values() if answer.rrset is not None)
        return tuple(addresses), float(ttl_s)


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    addresses: tuple[str, ...]
    error: ResolutionError | None
    expires_at: float

    def get(self) -> tuple[str, ...]:
        if self.error is not None:
            # A new object each time: a shared one would collect the tracebacks of all callers.
            raise ResolutionError(self.error.kind, self.error.detail)
        return self.addresses


class _Lookup(QueuedLookup):
    """A lookup and its waiters."""

    __slots__ = ("answer", "deadline", "ended", "late", "started", "waiters")

    def __init__(self, host: str, *, known: bool) -> None:
        super().__init__(host, known=known)
        self.started = trio.Event()
        self.ended = trio.Event()
        self.deadline = math.inf
        self.late = False
        self.waiters = 0
        self.answer: _CachedAnswer | None = None


class CachedResolver:
    """The resolver of the daemon; fixed `hosts` are used before any lookup.

    Lookups wait until `run` runs.
    """

    def __init__(
        self,
        lookup: Lookup | None = None,
        *,
        hosts: Mapping[str, str | Sequence[str]] | None = None,
        lookup_s: float = LOOKUP_S,
        at_once: int = LOOKUPS_AT_ONCE,
    ) -> None:
        """Make a resolver with an empty cache.

        Args:
            lookup: finds names; None: the C library.
            hosts: fixed addresses.
            lookup_s: time limit of a lookup, from its start.
            at_once: most lookups at once that are within their time limit.
        """
        self._lookup: Lookup = SystemLookup() if lookup is None else lookup
        self._table = FixedResolver(hosts or {})
        self._lookup_s = lookup_s
        self._cache: OrderedDict[str, _CachedAnswer] = OrderedDict()
        self._lookups: dict[str, _Lookup] = {}
        self._slots: LookupSlots[_Lookup] = LookupSlots(at_once)
        self._changed = trio.Event()

    @property
    def waiting(self) -> int:
        """Names that wait for their lookup to start."""
        return self._slots.waiting

    @property
    def running(self) -> int:
        """Lookups that run, also those beyond their time limit."""
        return self._slots.running

    async def run(self) -> None:
        """Run lookups until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                self._changed = trio.Event()
                for lookup in self._slots.take():
                    nursery.start_soon(self._run_lookup, lookup)
                await self._changed.wait()

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host from table, cache or lookup; see `Resolver`."""
        known = self._table.known(host)
        if known is not None:
            return known
        answer = self._cache.get(host)
        if answer is not None and answer.expires_at > trio.current_time():
            return answer.get()
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = _Lookup(host, known=answer is not None and answer.error is None)
            self._lookups[host] = lookup
            self._slots.add(lookup)
            self._changed.set()
        return (await self._wait_for(lookup)).get()

    async def _wait_for(self, lookup: _Lookup) -> _CachedAnswer:
        lookup.waiters += 1
        try:
            await lookup.started.wait()
            with trio.move_on_at(lookup.deadline):
                await lookup.ended.wait()
        finally:
            lookup.waiters -= 1
            if not lookup.waiters and not lookup.started.is_set():
                self._slots.discard(lookup)
                del self._lookups[lookup.host]
        return lookup.answer or self._fault("timeout", f"no answer within {self._lookup_s:g} s")

    async def _run_lookup(self, lookup: _Lookup) -> None:
        lookup.deadline = trio.current_time() + self._lookup_s
        lookup.started.set()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._note_late, lookup)
                lookup.answer = await self._ask(lookup.host)
                nursery.cancel_scope.cancel()
            self._keep(lookup.host, lookup.answer)
        finally:
            del self._lookups[lookup.host]
            self._slots.end(lookup, late=lookup.late)
            lookup.ended.set()
            self._changed.set()

    async def _note_late(self, lookup: _Lookup) -> None:
        await trio.sleep_until(lookup.deadline)
        lookup.late = True
        self._slots.note_late()
        self._changed.set()
        # A later answer of the lookup takes its place.
        self._keep(lookup.host, self._fault("timeout", f"no answer within {self._lookup_s:g} s"))

    def _keep(self, host: str, answer: _CachedAnswer) -> None:
        self._cache[host] = answer
        self._cache.move_to_end(host)
        if len(self._cache) > CACHE_NAMES:
            self._cache.popitem(last=False)

    async def _ask(self, host: str) -> _CachedAnswer:
        try:
            addresses, ttl_s = await self._lookup.look_up(host)
        except ResolutionError as error:
            return self._fault(error.kind, error.detail)
        if not addresses:
            return self._fault("nxdomain", "the name has no address")
        expires_at = trio.current_time() + min(max(ttl_s, MIN_TTL_S), MAX_TTL_S)
        return _CachedAnswer(addresses[:MAX_ADDRESSES], None, expires_at)

    def _fault(self, kind: ResolutionKind, detail: str) -> _CachedAnswer:
        ttl_s = NXDOMAIN_TTL_S if kind == "nxdomain" else FAULT_TTL_S
        error = ResolutionError(kind, detail)
        return _CachedAnswer((), error, trio.current_time() + ttl_s)
