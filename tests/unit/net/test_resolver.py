import errno
import socket

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest
import trio

from crawld.net import resolver as resolver_module
from crawld.net.resolver import (
    FAULT_TTL_S,
    LOOKUP_S,
    MAX_ADDRESSES,
    MAX_TTL_S,
    MIN_TTL_S,
    NAMESERVER_PAUSE_S,
    NXDOMAIN_TTL_S,
    CachedResolver,
    FixedResolver,
    NameserverLookup,
    ResolutionError,
    SystemLookup,
)


class Zone:
    """A lookup over a table that records its requests and may be slow."""

    def __init__(self, names, ttl_s=60.0, takes_s=0.0):
        self.names = names
        self.ttl_s = ttl_s
        self.takes_s = takes_s
        self.asked = []

    async def look_up(self, host):
        self.asked.append(host)
        await trio.sleep(self.takes_s)
        found = self.names.get(host)
        if found is None:
            raise ResolutionError("nxdomain", "no such name")
        if isinstance(found, str):
            raise ResolutionError(found, "the zone is broken")
        return found, self.ttl_s


@pytest.fixture
def make_resolver(nursery):
    """Return a function that makes a resolver that runs."""

    def make(*args, **options):
        resolver = CachedResolver(*args, **options)
        nursery.start_soon(resolver.run)
        return resolver

    return make


async def kind_of_failure(resolver, host):
    with pytest.raises(ResolutionError) as caught:
        await resolver.resolve(host)
    return caught.value.kind


@pytest.mark.parametrize(("ttl_s", "lives_s"), [(60.0, 60.0), (0.0, MIN_TTL_S), (1e6, MAX_TTL_S)])
async def test_results_are_cached_for_the_clamped_ttl(mock_clock, ttl_s, lives_s, make_resolver):
    zone = Zone({"a.test": ("192.0.2.1",)}, ttl_s)
    resolver = make_resolver(zone)
    for _ in range(3):
        assert await resolver.resolve("a.test") == ("192.0.2.1",)
    mock_clock.jump(lives_s - 0.5)
    await resolver.resolve("a.test")
    assert len(zone.asked) == 1
    mock_clock.jump(1.0)
    await resolver.resolve("a.test")
    assert len(zone.asked) == 2


@pytest.mark.parametrize(
    ("names", "kind", "lives_s"),
    [({}, "nxdomain", NXDOMAIN_TTL_S), ({"a.test": "temporary"}, "temporary", FAULT_TTL_S)],
)
async def test_failures_are_cached_for_their_own_ttl(
    mock_clock, names, kind, lives_s, make_resolver
):
    zone = Zone(names)
    resolver = make_resolver(zone)
    assert await kind_of_failure(resolver, "a.test") == kind
    assert await kind_of_failure(resolver, "a.test") == kind
    assert len(zone.asked) == 1
    mock_clock.jump(lives_s + 0.1)
    zone.names = {"a.test": ("192.0.2.7",)}
    assert await resolver.resolve("a.test") == ("192.0.2.7",)


async def test_waiters_of_one_name_share_one_lookup(autojump_clock, make_resolver):
    zone = Zone({"a.test": ("192.0.2.1",), "b.test": ("192.0.2.2",)}, takes_s=1.0)
    resolver = make_resolver(zone)
    async with trio.open_nursery() as nursery:
        for host in ["a.test", "b.test"] * 20:
            nursery.start_soon(resolver.resolve, host)
    assert sorted(zone.asked) == ["a.test", "b.test"]


async def test_a_lookup_runs_on_for_its_other_waiters(autojump_clock, make_resolver):
    zone = Zone({"a.test": ("192.0.2.1",)}, takes_s=1.0)
    resolver = make_resolver(zone)
    found = []

    async def impatient():
        with trio.move_on_after(0.5):
            await resolver.resolve("a.test")

    async def patient():
        found.append(await resolver.resolve("a.test"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(impatient)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(patient)
    assert found == [("192.0.2.1",)]
    assert len(zone.asked) == 1


async def test_a_hung_lookup_times_out(autojump_clock, make_resolver):
    resolver = make_resolver(Zone({"a.test": ("192.0.2.1",)}, takes_s=1e6), lookup_s=3.0)
    assert await kind_of_failure(resolver, "a.test") == "timeout"


async def kinds_of(resolver, hosts):
    """Resolve many hosts at once; return how each ended (`ok`, or the kind of its failure)."""
    kinds = {}

    async def resolve(host):
        try:
            await resolver.resolve(host)
            kinds[host] = "ok"
        except ResolutionError as error:
            kinds[host] = error.kind

    async with trio.open_nursery() as nursery:
        for host in hosts:
            nursery.start_soon(resolve, host)
    return kinds


class AnyZone(Zone):
    """Every name exists, except those of dead domains, whose lookups never end."""

    def __init__(self, *dead, takes_s=0.0):
        super().__init__({}, takes_s=takes_s)
        self.dead = dead

    async def look_up(self, host):
        self.asked.append(host)
        await trio.sleep(1e9 if host.endswith(self.dead) else self.takes_s)
        return ("192.0.2.1",), 60.0


async def test_the_time_limit_starts_with_the_lookup(autojump_clock, make_resolver):
    resolver = make_resolver(AnyZone(takes_s=1.0), lookup_s=1.5, at_once=4)
    hosts = [f"www.d{n}.test" for n in range(200)] + [f"h{n}.one.test" for n in range(50)]
    assert set((await kinds_of(resolver, hosts)).values()) == {"ok"}
    assert (resolver.waiting, resolver.running) == (0, 0)


async def test_a_dead_domain_delays_only_its_own_names(autojump_clock, make_resolver):
    resolver = make_resolver(AnyZone(".dead.test", takes_s=0.1), lookup_s=10.0)
    began = trio.current_time()
    dead = [f"h{n}.dead.test" for n in range(3_000)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kinds_of, resolver, dead)
        await trio.testing.wait_all_tasks_blocked()
        kinds = await kinds_of(resolver, [f"h{n}.good{n}.test" for n in range(60)])
        assert set(kinds.values()) == {"ok"}
        assert trio.current_time() - began < 1.0
        nursery.cancel_scope.cancel()
    assert resolver.waiting == 0


async def test_lookups_that_never_end_leave_their_slots_to_others(autojump_clock, make_resolver):
    # Fewer dead domains than threads: their lookups hang for good.
    dead = tuple(f".dead{n}.test" for n in range(5))
    resolver = make_resolver(AnyZone(*dead, takes_s=0.1), lookup_s=3.0)
    kinds = await kinds_of(resolver, [f"h{n}{domain}" for n in range(4) for domain in dead])
    assert set(kinds.values()) == {"timeout"}
    assert resolver.running == 20
    began = trio.current_time()
    kinds = await kinds_of(resolver, [f"h{n}.good{n}.test" for n in range(24)])
    assert set(kinds.values()) == {"ok"}
    assert trio.current_time() - began < 0.2


async def test_late_lookups_that_end_give_back_their_places(autojump_clock, make_resolver):
    resolver = make_resolver(AnyZone(takes_s=15.0), lookup_s=10.0, at_once=4)
    for series in "ab":
        began = trio.current_time()
        await kinds_of(resolver, [f"h.{series}{n}.test" for n in range(6)])
        assert trio.current_time() - began == pytest.approx(20.0)  # three fresh names at once
        await trio.sleep(30.0)
        assert resolver.running == 0


async def test_the_names_that_are_kept_are_limited(monkeypatch, make_resolver):
    monkeypatch.setattr(resolver_module, "CACHE_NAMES", 2)
    names = ["a.test", "b.test", "c.test"]
    zone = Zone(dict.fromkeys(names, ("192.0.2.1",)))
    resolver = make_resolver(zone)
    for name in (*names, "c.test", "b.test", "a.test"):
        await resolver.resolve(name)
    assert zone.asked == [*names, "a.test"]


async def test_names_found_before_go_first(autojump_clock, make_resolver):
    zone = AnyZone(takes_s=1.0)
    resolver = make_resolver(zone, at_once=4)
    await resolver.resolve("old.test")
    await trio.sleep(MAX_TTL_S + 1.0)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kinds_of, resolver, [f"d{n}.test" for n in range(100)])
        await trio.testing.wait_all_tasks_blocked()
        await resolver.resolve("old.test")
        assert trio.current_time() - began == 1.0


async def test_an_answer_after_the_limit_is_kept(autojump_clock, make_resolver):
    resolver = make_resolver(Zone({"a.test": ("192.0.2.1",)}, takes_s=5.0), lookup_s=3.0)
    assert await kind_of_failure(resolver, "a.test") == "timeout"
    assert await kind_of_failure(resolver, "a.test") == "timeout"
    await trio.sleep(2.5)
    assert await resolver.resolve("a.test") == ("192.0.2.1",)


async def test_a_name_nobody_waits_for_any_more_is_not_looked_up(autojump_clock, make_resolver):
    zone = AnyZone(takes_s=1.0)
    resolver = make_resolver(zone, at_once=2)
    with trio.move_on_after(0.5):
        await kinds_of(resolver, [f"d{n}.test" for n in range(50)])
    await trio.sleep(10.0)
    assert len(zone.asked) == 1
    assert (resolver.waiting, resolver.running) == (0, 0)


async def test_fixed_hosts_come_first_and_literals_need_no_lookup(make_resolver):
    zone = Zone({})
    resolver = make_resolver(zone, hosts={"a.test": "127.0.0.9", "b.test": ["::1", "127.0.0.1"]})
    assert await resolver.resolve("a.test") == ("127.0.0.9",)
    assert await resolver.resolve("b.test") == ("::1", "127.0.0.1")
    assert await resolver.resolve("0x7f.1") == ("127.0.0.1",)
    assert zone.asked == []


async def test_a_fixed_resolver_knows_only_its_table():
    assert await kind_of_failure(FixedResolver({"a.test": "127.0.0.1"}), "b.test") == "nxdomain"


async def test_the_system_resolver_reads_the_hosts_file():
    addresses, ttl_s = await SystemLookup().look_up("localhost")
    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert addresses
    assert ttl_s > 0


async def test_an_invalid_name_does_not_exist(make_resolver):
    assert await kind_of_failure(make_resolver(), "a" * 64 + ".test") == "nxdomain"


def dns_answer(query, address, ttl_s):
    """Return a DNS response with one A record; gone.test and broken.test have errors instead."""
    message = dns.message.from_wire(query)
    response = dns.message.make_response(message)
    response.flags |= dns.flags.RA
    question = message.question[0]
    if question.name.to_text() == "gone.test.":
        response.set_rcode(dns.rcode.NXDOMAIN)
    elif question.name.to_text() == "broken.test.":
        response.set_rcode(dns.rcode.SERVFAIL)
    elif question.rdtype == 1:
        response.answer.append(dns.rrset.from_text(question.name, ttl_s, "IN", "A", address))
    return response.to_wire()


SILENT = -1


class NameServers:
    """Name servers on one port, each with its response codes, in order; the last one stays.

    One that has the code `SILENT` gets queries and answers none.

    Attributes:
        asked: the number of queries for an address of each server.
        lookup: asks them.
    """

    def __init__(self, *codes):
        self.codes = [list(each) for each in codes]
        self.asked = [0] * len(codes)

    async def start(self, nursery):
        port = 0
        addresses = [f"127.0.0.{number}" for number in range(1, len(self.codes) + 1)]
        for server, address in enumerate(addresses):
            udp = trio.socket.socket(type=trio.socket.SOCK_DGRAM)
            await udp.bind((address, port))
            port = udp.getsockname()[1]
            nursery.start_soon(self._serve, udp, server)
        self.lookup = NameserverLookup(addresses, port)
        return self

    async def _serve(self, udp, server):
        with udp:
            while True:
                query, peer = await udp.recvfrom(4096)
                response = dns.message.from_wire(dns_answer(query, "192.0.2.44", 77))
                codes = self.codes[server]
                if response.question[0].rdtype == dns.rdatatype.A:
                    self.asked[server] += 1
                    code = codes.pop(0) if len(codes) > 1 else codes[0]
                    if code == SILENT:
                        continue
                    response.set_rcode(code)
                await udp.sendto(response.to_wire(), peer)


@pytest.fixture
def pauses(monkeypatch):
    """Return the pauses between rounds of queries, which take no time."""
    slept = []

    async def sleep(pause_s):
        slept.append(pause_s)

    monkeypatch.setattr(NameserverLookup._ask_all.retry, "sleep", sleep)
    return slept


async def test_name_servers_are_asked_in_turn(nursery, pauses):
    servers = await NameServers([dns.rcode.SERVFAIL], [dns.rcode.NOERROR]).start(nursery)
    assert await servers.lookup.look_up("a.test") == (("192.0.2.44",), 77.0)
    assert (servers.asked, pauses) == ([1, 1], [])


async def test_a_silent_name_server_does_not_hide_the_next_one(nursery, autojump_clock):
    servers = await NameServers([SILENT], [dns.rcode.NOERROR]).start(nursery)
    started_at = trio.current_time()
    assert await servers.lookup.look_up("a.test") == (("192.0.2.44",), 77.0)
    assert servers.asked == [1, 1]
    assert trio.current_time() - started_at < LOOKUP_S / 2


async def test_name_servers_without_an_answer_are_asked_once_more(nursery, pauses):
    codes = [dns.rcode.SERVFAIL, dns.rcode.NOERROR]
    servers = await NameServers(codes, [dns.rcode.REFUSED]).start(nursery)
    assert await servers.lookup.look_up("a.test") == (("192.0.2.44",), 77.0)
    assert (servers.asked, pauses) == ([2, 1], [NAMESERVER_PAUSE_S])


async def test_name_servers_are_asked_twice_at_most(nursery, pauses):
    servers = await NameServers([dns.rcode.SERVFAIL], [dns.rcode.SERVFAIL]).start(nursery)
    with pytest.raises(ResolutionError) as caught:
        await servers.lookup.look_up("a.test")
    assert caught.value.kind == "temporary"
    assert (servers.asked, pauses) == ([2, 2], [NAMESERVER_PAUSE_S])


async def test_a_name_that_does_not_exist_is_not_asked_again(nursery, pauses):
    servers = await NameServers([dns.rcode.NXDOMAIN], [dns.rcode.NOERROR]).start(nursery)
    with pytest.raises(ResolutionError) as caught:
        await servers.lookup.look_up("gone.test")
    assert caught.value.kind == "nxdomain"
    assert (servers.asked[1], pauses) == (0, [])


async def test_all_rounds_share_the_time_of_one_lookup(nursery, mock_clock, monkeypatch):
    async def sleep(pause_s):
        mock_clock.jump(LOOKUP_S)

    monkeypatch.setattr(NameserverLookup._ask_all.retry, "sleep", sleep)
    servers = await NameServers([dns.rcode.SERVFAIL]).start(nursery)
    with pytest.raises(ResolutionError) as caught:
        await servers.lookup.look_up("a.test")
    assert caught.value.kind == "timeout"
    assert servers.asked == [1]


async def test_configured_name_servers_are_asked_over_udp(nursery, make_resolver, pauses):
    udp = trio.socket.socket(type=trio.socket.SOCK_DGRAM)
    await udp.bind(("127.0.0.1", 0))

    async def server():
        with udp:
            while True:
                query, peer = await udp.recvfrom(4096)
                await udp.sendto(dns_answer(query, "192.0.2.44", 77), peer)

    nursery.start_soon(server)
    lookup = NameserverLookup(["127.0.0.1"], udp.getsockname()[1])
    assert await lookup.look_up("a.test") == (("192.0.2.44",), 77.0)
    resolver = make_resolver(lookup)
    assert await kind_of_failure(resolver, "gone.test") == "nxdomain"
    assert await kind_of_failure(resolver, "broken.test") == "temporary"


async def test_a_lack_of_open_files_is_no_fault_of_the_name(monkeypatch, make_resolver):
    def fail(host):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: fail("a.test"))
    assert await kind_of_failure(make_resolver(), "a.test") == "no_files"


async def test_only_some_addresses_of_a_name_are_kept(make_resolver):
    many = tuple(f"192.0.2.{n}" for n in range(200))
    assert await make_resolver(Zone({"a.test": many})).resolve("a.test") == many[:MAX_ADDRESSES]
