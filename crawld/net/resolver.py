"""Resolves host names, with a cache and at most one lookup in flight per name.

There are two lookups. `SystemLookup` calls the C library in a limited number of threads, so that
/etc/hosts, nsswitch and search rules apply; a hung name server can block only these threads.
`NameserverLookup` queries the configured name servers.

Invariants: at most one lookup per name at a time, even if the task that started it is cancelled
(the next waiter starts another); at most `CACHE_NAMES` cached names; a result is cached for at
least `MIN_TTL_S` and at most `MAX_TTL_S` seconds.

Addresses are not checked here but when the connection is opened, because cached results serve sites
with and without permission for private addresses.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import dns.asyncresolver
import dns.exception
import dns.resolver
import trio

from crawld.net.address import literal_address
from crawld.workers import THREADS, Workers

MIN_TTL_S = 30.0
MAX_TTL_S = 3600.0
SYSTEM_TTL_S = 300.0
"""The C library does not report a time to live; browsers cache results for at most five minutes."""
NXDOMAIN_TTL_S = 60.0
FAULT_TTL_S = 2.0
"""Long enough for the waiters of one lookup to share its failure, short enough to try again."""
CACHE_NAMES = 100_000
MAX_ADDRESSES = 16
LOOKUP_THREADS = 32
LOOKUP_S = 10.0

ResolutionKind = Literal["nxdomain", "temporary", "timeout"]


class ResolutionError(Exception):
    """A name has no address.

    Args:
        kind: `nxdomain`: the name does not exist; otherwise the resolver or the network failed.
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
        literal = literal_address(host)
        if literal is not None:
            return (str(literal),)
        if host not in self._hosts:
            raise ResolutionError("nxdomain", f"{host} is not in the table of hosts")
        return self._hosts[host]


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
            absent = error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            raise ResolutionError(
                "nxdomain" if absent else "temporary", str(error.strerror)
            ) from error
        except UnicodeError as error:
            raise ResolutionError("nxdomain", "not a host name") from error
        except OSError as error:
            raise ResolutionError("temporary", str(error)) from error
        return found, SYSTEM_TTL_S


def _getaddrinfo(host: str) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class NameserverLookup:
    """Queries given name servers (IP addresses) over UDP and TCP."""

    def __init__(self, nameservers: Sequence[str], port: int = 53) -> None:
        self._resolver = dns.asyncresolver.Resolver(configure=False)
        self._resolver.nameservers = list(nameservers)
        self._resolver.port = port

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Query A and AAAA records; see `Lookup`."""
        try:
            answers = await self._resolver.resolve_name(host, lifetime=LOOKUP_S)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer) as error:
            raise ResolutionError("nxdomain", "no such name") from error
        except dns.resolver.LifetimeTimeout as error:
            raise ResolutionError("timeout", "no name server answered") from error
        except dns.exception.DNSException as error:
            raise ResolutionError("temporary", str(error)) from error
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


class CachedResolver:
    """The resolver of the daemon; fixed `hosts` are used before any lookup."""

    def __init__(
        self,
        lookup: Lookup | None = None,
        *,
        hosts: Mapping[str, str | Sequence[str]] | None = None,
        lookup_s: float = LOOKUP_S,
    ) -> None:
        self._lookup: Lookup = SystemLookup() if lookup is None else lookup
        self._table = FixedResolver(hosts or {})
        self._lookup_s = lookup_s
        self._cache: OrderedDict[str, _CachedAnswer] = OrderedDict()
        self._pending: dict[str, trio.Event] = {}

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host from table, cache or lookup; see `Resolver`."""
        try:
            return await self._table.resolve(host)
        except ResolutionError:
            pass
        while True:
            answer = self._cache.get(host)
            if answer is not None and answer.expires_at > trio.current_time():
                return answer.get()
            pending = self._pending.get(host)
            if pending is None:
                return (await self._look_up(host)).get()
            # The lookup's task may be cancelled; then one of the waiters starts another.
            await pending.wait()

    async def _look_up(self, host: str) -> _CachedAnswer:
        pending = self._pending[host] = trio.Event()
        try:
            answer = await self._ask(host)
            self._cache[host] = answer
            self._cache.move_to_end(host)
            if len(self._cache) > CACHE_NAMES:
                self._cache.popitem(last=False)
            return answer
        finally:
            del self._pending[host]
            pending.set()

    async def _ask(self, host: str) -> _CachedAnswer:
        try:
            with trio.fail_after(self._lookup_s):
                addresses, ttl_s = await self._lookup.look_up(host)
            if addresses:
                expires_at = trio.current_time() + min(max(ttl_s, MIN_TTL_S), MAX_TTL_S)
                return _CachedAnswer(addresses[:MAX_ADDRESSES], None, expires_at)
            error = ResolutionError("nxdomain", "the name has no address")
        except ResolutionError as raised:
            error = raised.with_traceback(None)
        except trio.TooSlowError:
            error = ResolutionError("timeout", f"no answer within {self._lookup_s:g} s")
        ttl_s = NXDOMAIN_TTL_S if error.kind == "nxdomain" else FAULT_TTL_S
        return _CachedAnswer((), error, trio.current_time() + ttl_s)
