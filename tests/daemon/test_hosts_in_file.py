"""More hosts than may be in memory: the others stay in the file until some had their turns."""

from contextlib import closing

import pytest

from crawld.daemon.crawl import host_loader, known_hosts, restore
from crawld.daemon.crawl.known_hosts import KnownHosts
from crawld.daemon.frontier.host import HostState
from crawld.daemon.schedule.slots import HostSlot
from crawld.simweb.message import build_response
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, verdicts
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import Packing
from tests.daemon.control_client import post
from tests.daemon.harness import until

HOSTS = [f"h{number}.test" for number in range(90)]
MOST_NEW = 8
MOST = 4 * (MOST_NEW + 1) + 1
"""Most new hosts in memory: all wait for one address, and count a quarter."""
PACKED = Caps(packing=Packing(file_pages=0))
DNS = {"hosts": {host: ["127.0.0.1"] for host in ("a.test", *HOSTS)}}


class SmallHosts:
    """Hosts of one page, which the first one may name."""

    hosts = ("a.test", *HOSTS)

    def __init__(self):
        self.links = []

    def handle(self, request):
        links = self.links if request.headers.get("host", "").startswith("a.test") else ()
        text = "".join(f'<a href="{link}">more</a> ' for link in links)
        return build_response(request, 200, f"<html><body>{text}</body></html>".encode())


@pytest.fixture
def most_in_memory(monkeypatch):
    """Let few hosts be in memory; return how many new ones were, each time one was entered."""
    for module in (known_hosts, restore):
        monkeypatch.setattr(module, "MOST_NEW", MOST_NEW)
    monkeypatch.setattr(known_hosts, "MOST_DIRECT", 2 * MOST_NEW)
    monkeypatch.setattr(host_loader, "READ_AT_ONCE", 4)
    monkeypatch.setattr(host_loader, "EVERY_S", 0.01)
    counts, entered = [], KnownHosts.entered

    def counted(self, name, host):
        entered(self, name, host)
        counts.append(len(self._new))

    monkeypatch.setattr(KnownHosts, "entered", counted)
    return counts


def add(mirror, urls, caps, site_id=1):
    with closing(open_connection(mirror.db)) as connection, connection:
        found = [Discovery.of(url, site_id=site_id, at=1e9, depth=1) for url in urls]
        frontier.discover(connection, found, caps)
        verdicts.settle_all(connection, caps)


def visited(mirror):
    rows = mirror.rows("SELECT host FROM page JOIN host USING (host_id) WHERE state = 'visited'")
    return sorted(host for (host,) in rows)


async def test_hosts_of_one_page_are_loaded_as_others_had_their_turns(
    serve, mirror, most_in_memory
):
    web = await serve(SmallHosts())
    await mirror.run(web.url(), dns=DNS, site={"max_depth": 0})
    # Rows, pages in shared blocks, and a host of the first run whose page waits there, too.
    add(mirror, [web.url(host=host) for host in HOSTS[:30]], Caps())
    add(mirror, [web.url(host=host) for host in [*HOSTS[30:], "a.test"]], PACKED)
    add(mirror, [web.url("/more", "a.test")], PACKED)
    most_in_memory.clear()
    await mirror.run(web.url(), dns=DNS, site={"max_depth": 1, "hosts": HOSTS})
    assert visited(mirror) == sorted(["a.test", "a.test", *HOSTS])
    assert max(most_in_memory) <= MOST
    assert all(web.targets(host) == ["/robots.txt", "/"] for host in HOSTS)


async def test_hosts_that_a_crawl_finds_stay_in_the_file(serve, mirror, most_in_memory):
    site = SmallHosts()
    web = await serve(site)
    site.links = [web.url(host=host) for host in HOSTS]
    await mirror.run(web.url(), dns=DNS, site={"hosts": HOSTS})
    assert visited(mirror) == sorted(["a.test", *HOSTS])
    assert max(most_in_memory) <= MOST
    assert all(web.targets(host) == ["/robots.txt", "/"] for host in HOSTS)


async def test_hosts_of_a_paused_site_do_not_keep_others_in_the_file(
    serve, mirror, daemon, most_in_memory
):
    web = await serve(SmallHosts())
    site = {"max_depth": 0, "hosts": HOSTS[:60]}
    beside = [{"name": "t", "seeds": [web.url(host=HOSTS[89])], "hosts": HOSTS[60:]}]
    await mirror.run(web.url(), dns=DNS, site=site, beside=beside)
    add(mirror, [web.url("/x", host) for host in HOSTS[:60]], PACKED)
    add(mirror, [web.url("/x", host) for host in HOSTS[60:]], PACKED, site_id=2)
    site["max_depth"] = 1
    with closing(open_connection(mirror.db)) as connection:
        connection.execute("UPDATE site SET paused = 1 WHERE site_id = 1")
    running = await daemon(web.url(), dns=DNS, site=site, beside=beside)
    wanted = {f"/x {host}" for host in HOSTS[60:]}
    await until(
        lambda: wanted <= {f"{target} {host}" for host in HOSTS for target in web.targets(host)},
        what="the hosts of the other site",
    )
    assert not any("/x" in web.targets(host) for host in HOSTS[:60])
    assert len(running.state.hosts) < len(HOSTS)
    assert running.state.known_hosts.first_at >= running.database.opened_at
    await post(running, "/resume", site="s")
    await until(
        lambda: all("/x" in web.targets(host) for host in HOSTS[:60]),
        what="the hosts of the site that is active again",
    )


def test_a_host_stays_in_the_file_if_its_number_is_not_reached():
    in_file = {"old.test", "far.test"}
    known = KnownHosts({"in.test": None}, in_file.__contains__)
    assert not known.leaves(7, "new.test")
    assert "far.test" not in known
    known.leave_after(10)
    assert not known.leaves(7, "new.test")
    assert known.leaves(11, "far.test")
    assert not known.leaves(12, "in.test")
    assert "far.test" in known
    assert "other.test" not in known
    known.is_loading = True  # the read may have missed it
    assert not known.leaves(11, "far.test")
    known.is_loading = False
    known.loaded_up_to(None)
    assert not known.leaves(11, "far.test")


def test_hosts_behind_one_address_leave_room_for_others():
    known = KnownHosts({}, lambda name: False)
    slots = [HostSlot(f"h{number}.test", 0.0) for number in range(40)]
    for slot in slots:
        known.entered(slot.host, HostState(1, slot))
    assert known.room() == known_hosts.MOST_NEW - 10  # they want nothing
    for slot in slots[:20]:
        slot.queued = True
    assert known.room() == known_hosts.MOST_NEW - 10
    for slot in slots[20:]:
        slot.entry_at = 5.0
    assert known.room() == known_hosts.MOST_NEW - 25
    known.asked(slots[39].host)
    assert known.room() == known_hosts.MOST_NEW - 24


def test_a_host_is_counted_for_its_domain_once():
    known = KnownHosts({}, lambda name: False)
    assert [known.count_once(number) for number in (9, 9, 8, 70_000, 9)] == [
        *(True, False, True, True, False)
    ]
