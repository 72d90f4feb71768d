"""Names to addresses: a cache with one lookup in flight per name over a way to look names up.

Two ways: `SystemLookup` asks the C library in threads of its own (so /etc/hosts, nsswitch and
search rules hold, as an operator expects); `NameserverLookup` asks given name servers. A hung name
server can hold at most `SystemLookup`'s own threads, never those of the rest of the program.

Invariants: at most one lookup per name at a time, also when the task that began it is cancelled
(the next waiter begins anew); never more than `CACHE_NAMES` names remembered; an answer lives at
least `MIN_TTL_S` and at most `MAX_TTL_S`.

Addresses are not judged here: a cached answer serves sites with and without permission for private
addresses alike, so the fence stands where the connection is made.
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
"""The C library tells no time to live; five minutes is what browsers settle for at most."""
NXDOMAIN_TTL_S = 60.0
FAULT_TTL_S = 2.0
"""Long enough that the waiters of one lookup share its failure, short enough to try again."""
CACHE_NAMES = 100_000
MAX_ADDRESSES = 16
LOOKUP_THREADS = 32
LOOKUP_S = 10.0

ResolutionKind = Literal["nxdomain", "temporary", "timeout"]


class ResolutionError(Exception):
    """A name has no address.

    Args:
        kind: `nxdomain` is an answer about the name; the others speak of the resolver or network.
        detail: short text for a person.
    """

    def __init__(self, kind: ResolutionKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


class Resolver(Protocol):
    """What the fetcher asks for addresses."""

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host, best first, or raise `ResolutionError`."""


class Lookup(Protocol):
    """One way to look a name up, uncached."""

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Return addresses and their time to live in seconds, or raise `ResolutionError`."""


class FixedResolver:
    """A table of names; what is not in it does not exist."""

    def __init__(self, hosts: Mapping[str, str | Sequence[str]]) -> None:
        self._hosts = {
            host: (addresses,) if isinstance(addresses, str) else tuple(addresses)
            for host, addresses in hosts.items()
        }

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of the table, or the one that the host text denotes."""
        literal = literal_address(host)
        if literal is not None:
            return (str(literal),)
        if host not in self._hosts:
            raise ResolutionError("nxdomain", f"{host} is not in the table of hosts")
        return self._hosts[host]


class SystemLookup:
    """The C library's resolver, in threads of its own."""

    def __init__(self, workers: Workers = THREADS) -> None:
        self._workers = workers
        self._limiter = trio.CapacityLimiter(LOOKUP_THREADS)

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Ask getaddrinfo; see `Lookup`."""
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
    """Given name servers, asked over UDP and TCP under trio.

    Args:
        nameservers: their IP addresses.
        port: their port.
    """

    def __init__(self, nameservers: Sequence[str], port: int = 53) -> None:
        self._resolver = dns.asyncresolver.Resolver(configure=False)
        self._resolver.nameservers = list(nameservers)
        self._resolver.port = port

    async def look_up(self, host: str) -> tuple[tuple[str, ...], float]:
        """Ask for A and AAAA records; see `Lookup`."""
        try:
            answers = await self._resolver.resolve_name(host, lifetime=LOOKUP_S)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer) as error:
            raise ResolutionError("nxdomain", "no such name") from error
        except dns.resolver.LifetimeTimeout as error:
            raise ResolutionError("timeout", "no name server answered") from error
        except dns.exception.DNSException as error:
            raise ResolutionError("temporary", str(error)) from error
        # IPv4 first: without the kernel's routing table there is no telling whether IPv6 works.
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
            # A fresh object each time: a raised one would gather the tracebacks of all its users.
            raise ResolutionError(self.error.kind, self.error.detail)
        return self.addresses


@dataclass(frozen=True, slots=True)
class ResolverStatistics:
    """Counts since the start, and how many names are remembered."""

    names: int
    lookups: int
    failures: int


class CachedResolver:
    """The resolver of the daemon.

    Args:
        lookup: how to look a name up.
        hosts: a table that comes before any lookup.
        lookup_s: the longest one lookup may take.
    """

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
        self._answers: OrderedDict[str, _CachedAnswer] = OrderedDict()
        self._flights: dict[str, trio.Event] = {}
        self._lookups = 0
        self._failures = 0

    async def resolve(self, host: str) -> tuple[str, ...]:
        """Return the addresses of a host from table, cache or lookup; see `Resolver`."""
        try:
            return await self._table.resolve(host)
        except ResolutionError:
            pass
        while True:
            answer = self._answers.get(host)
            if answer is not None and answer.expires_at > trio.current_time():
                return answer.get()
            flight = self._flights.get(host)
            if flight is None:
                return (await self._lead(host)).get()
            # Its leader may be cancelled: then there is no answer, and one of us leads.
            await flight.wait()

    def statistics(self) -> ResolverStatistics:
        """Return counts since the start."""
        return ResolverStatistics(len(self._answers), self._lookups, self._failures)

    async def _lead(self, host: str) -> _CachedAnswer:
        flight = self._flights[host] = trio.Event()
        try:
            answer = await self._ask(host)
            self._answers[host] = answer
            self._answers.move_to_end(host)
            if len(self._answers) > CACHE_NAMES:
                self._answers.popitem(last=False)
            return answer
        finally:
            del self._flights[host]
            flight.set()

    async def _ask(self, host: str) -> _CachedAnswer:
        self._lookups += 1
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
        self._failures += 1
        ttl_s = NXDOMAIN_TTL_S if error.kind == "nxdomain" else FAULT_TTL_S
        return _CachedAnswer((), error, trio.current_time() + ttl_s)
