"""Pages of look-alikes and copies in a whole daemon: which rest, are crawled, and return."""

import pytest

from crawld.core.page import PageState
from crawld.store.frontier import page_counts
from tests.daemon.jobs.manual_site import ManualSite, words
from tests.daemon.jobs.test_replicas import DAY_S, World, world

__all__ = ["world"]

ONE, OTHER = "docs.a.test", "mirror.a.test"

UNSAMPLED = {"first_sample_s": 30 * DAY_S}
"""Within these tests, no page at rest is visited."""


def manual(host, text, *, pages=20, **more):
    """Return a site whose page `number` shows the text of a seed."""
    return ManualSite(host, pages, lambda number, *_: f"<p>{words(text(number))}", **more)


class Resting(World):
    """What rests, by the number of the page."""

    def resting(self, host):
        rows = self.mirror.rows(
            "SELECT url FROM page JOIN host USING (host_id)"
            " WHERE host = ? AND state = 'suspended' AND last_visit_at IS NOT NULL",
            host,
        )
        return {number_of(url) for (url,) in rows}

    def asked_pages(self, host, since):
        return {number_of(target) for target in self.web.targets(host)[since:]} - {None}

    def compared(self, host):
        """Return how many pages of a host have each verdict."""
        return dict(
            self.mirror.rows(
                "SELECT verdict, count(*) FROM page_twin JOIN port_server USING (server_id)"
                " JOIN host USING (host_id) WHERE host = ? GROUP BY verdict",
                host,
            )
        )

    async def search(self, rounds=2):
        """Run the job as often as it takes to compare the pages of what it found."""
        for _ in range(rounds):
            await self.run_job()
            await self.settle()


def number_of(url):
    name = url.rpartition("/")[2]
    return int(name.removesuffix(".html")) if name.endswith(".html") else 0 if not name else None


@pytest.fixture
def resting(world):
    async def start(*sites, **tables):
        addresses = {site.hosts[0]: ["127.0.0.1"] for site in sites}
        made = await world(*sites, dns={"hosts": addresses}, **tables)
        return Resting(made.web, made.running, made.mirror, made.wall)

    return start


async def test_versions_of_a_manual_rest_only_where_they_are_equal(resting):
    v1 = manual("v1.a.test", lambda number: number, pages=51)
    v2 = manual("v2.a.test", lambda number: number if number < 20 else 1_000 + number, pages=51)
    w = await resting(v1, v2, replicas={"prefer": ["v2.a.test"], **UNSAMPLED})
    await w.search()
    assert w.resting("v1.a.test") == set(range(20))
    # A text that the other version did not show may be one that it will show.
    assert w.compared("v1.a.test") == {"agrees": 20, "unknown": 31}
    await w.round()
    assert w.compared("v1.a.test") == {"agrees": 20, "differs": 31}
    before = len(w.web.targets("v1.a.test"))
    await w.round()
    assert w.asked_pages("v1.a.test", before) == set(range(20, 51))
    assert w.resting("v1.a.test") == set(range(20))
    assert w.resting("v2.a.test") == set()


async def test_languages_with_equal_tables_rest_at_most_the_tables(resting):
    en = manual("en.a.test", lambda number: number)
    de = manual("de.a.test", lambda number: number if number % 2 else 1_000 + number)
    w = await resting(en, de)
    await w.search()
    for host in ("en.a.test", "de.a.test"):
        assert w.resting(host) <= set(range(1, 20, 2))
    assert len(w.resting("en.a.test") | w.resting("de.a.test")) in (0, 10)


def wall(host):
    """Return a site of which all but three pages ask for a password, naming the page."""

    def show(number, path, origin, at):
        if number < 3:
            return f"<p>{words(number)}"
        return f"<h1>Sign in</h1><p>Sign in to see {path}.<p>{words(0)}"

    return ManualSite(host, 20, show)


def soft_errors(host):
    """Return a site that answers every path with the path, and with a text of its own at some."""

    def show(number, path, origin, at):
        if number is not None and number < 8:
            return f"<p>{words(number)}"
        return f"<h1>Oops</h1><p>The page {path.rpartition('/')[2]} is not here.<p>{words(99)}"

    return ManualSite(host, 20, show, fallback=show)


@pytest.mark.parametrize(("site", "texts"), [(wall, 3), (soft_errors, 8)])
async def test_walls_and_error_pages_are_no_agreement(resting, site, texts):
    w = await resting(site(ONE), site(OTHER))
    async with w.control() as client:
        await w.run_job()
        for host in w.replicas():
            await client.post("/replicas/confirm", json={"host": host})
    await w.search()
    for host in (ONE, OTHER):
        assert w.resting(host) <= set(range(texts))
    before = {host: len(w.web.targets(host)) for host in (ONE, OTHER)}
    await w.round()
    for host in (ONE, OTHER):
        assert w.asked_pages(host, before[host]) >= set(range(texts, 20))


async def test_a_copy_that_diverges_returns_where_it_differs(resting):
    changed = set()
    one = manual(ONE, lambda number: number)
    other = manual(OTHER, lambda number: number + 1_000 * (number in changed))
    w = await resting(one, other, replicas={"prefer": [ONE]})
    await w.search()
    assert w.resting(OTHER) == set(range(20))
    changed.update(range(10, 20))
    for _ in range(12):
        await w.round(1.5 * DAY_S)
        await w.search(1)
        if w.compared(OTHER).get("differs") == len(changed):
            break
    assert w.compared(OTHER)["differs"] == len(changed)
    assert w.resting(OTHER) & changed == set()
    before = len(w.web.targets(OTHER))
    await w.round()
    assert w.asked_pages(OTHER, before) >= changed
    # The original never rests under its copy.
    assert w.resting(ONE) == set()


def leave_as_before(connection, host):
    """Leave the file as an older version did: all pages of a host at rest, none compared."""
    host_id = connection.execute("SELECT host_id FROM host WHERE host = ?", (host,)).get
    connection.execute("DELETE FROM page_twin")
    connection.execute("UPDATE replica SET status = 'pruned'")
    rows = connection.execute(
        "UPDATE page SET state = 'suspended' WHERE host_id = ? AND state = 'visited'"
        " RETURNING site_id",
        (host_id,),
    ).fetchall()
    moves = [(site, host_id, PageState.VISITED, PageState.SUSPENDED) for (site,) in rows]
    page_counts.count_moves(connection, moves)


async def test_pages_that_an_older_version_suspended_are_compared(resting):
    one = manual(ONE, lambda number: number)
    other = manual(OTHER, lambda number: number if number < 12 else 1_000 + number)
    w = await resting(one, other, replicas={"prefer": [ONE], **UNSAMPLED})
    await w.search()
    assert w.resting(OTHER) == set(range(12))
    await w.running.database.write(leave_as_before, OTHER)
    assert w.resting(OTHER) == set(range(20))
    await w.round(1.1 * DAY_S)  # all pages at rest are looked at once a day, and at the start
    assert w.resting(OTHER) == set(range(12))
    assert w.asked_pages(OTHER, 0) == set(range(20))


async def test_twins_with_absolute_links_and_counters_rest(resting):
    def show(number, path, origin, at):
        link = f'<a href="{origin}/manual/01.html">First</a>'
        counter = f"<p id=counter>Read {int(at * 1000) % 100_000} times"
        return f"<p>{words(number)} {link}{counter}<p>Source: {origin}{path}"

    sites = (ManualSite(ONE, 20, show), ManualSite(OTHER, 20, show))
    w = await resting(*sites, replicas={"prefer": [ONE]})
    for _ in range(6):
        await w.round()
    assert w.compared(OTHER) == {"agrees": 20}
    assert len(w.resting(OTHER)) >= 16  # the others are sampled
