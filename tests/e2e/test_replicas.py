"""A web with three replicas among ten hosts, mirrored with and without pruning.

Both runs use the same simulated web, real sockets and a real database; the web's ledger counts the
requests.
"""

from crawld.core.replica.owners import without_port
from crawld.simweb.change_process import poisson_process
from crawld.simweb.graph import SiteGraph
from crawld.simweb.site import SimSite
from crawld.store.replica import pages, replica
from tests.e2e.replica_run import DAY_S, ReplicaRun

PAGES = 12
ROUNDS = 3
ORIGINALS = [f"s{number}.test" for number in range(7)]
COPIES = [f"www.{name}" for name in ORIGINALS[:3]]


def sites(start_at):
    """Return seven sites that change every two days on average; three have a copy."""

    def changes(seed):
        return lambda page: poisson_process(2 * DAY_S, start_at=start_at, seed=100 * seed + page)

    return [
        SimSite(
            (name, f"www.{name}") if number < 3 else (name,),
            SiteGraph(PAGES, seed=number),
            changes=changes(number),
            start_at=start_at,
        )
        for number, name in enumerate(ORIGINALS)
    ]


async def mirrored(nursery, folder, *, prune):
    """Mirror the web for some days; return the run and the page requests per host."""
    run = ReplicaRun(folder / f"{prune}.db")
    await run.start(
        nursery,
        *sites(run.wall() - 30 * DAY_S),
        dns=dict.fromkeys([*ORIGINALS, *COPIES], "127.0.0.1"),
        # Within these days, no page is sampled.
        replicas={"prune": prune, "first_sample_s": 30 * DAY_S, "sample_every_s": 30 * DAY_S},
        jobs={"audit_share": 0.0},
    )
    for _ in range(ROUNDS):
        await run.sample_once()
        await run.run_day()
    return run, run.page_requests()


async def test_pruning_saves_requests_and_loses_no_page(nursery, tmp_path):
    plain, without = await mirrored(nursery, tmp_path, prune=False)
    run, asked = await mirrored(nursery, tmp_path, prune=True)
    database, pruned = run.daemon.database, run.mirror

    # Three of ten hosts are suspended after their first visit; the others are visited as before.
    assert sum(without[host] for host in COPIES) >= 3 * PAGES * ROUNDS
    assert sum(asked[host] for host in COPIES) == 3 * PAGES
    assert sum(asked[host] for host in ORIGINALS) >= 7 * PAGES * ROUNDS
    saved = 1 - sum(asked.values()) / sum(without.values())
    assert saved > 0.2

    # Every page of every host still has a copy: its own, or that of the canonical host.
    names = {url.split("/", 3)[2:][0] for (url,) in pruned.rows("SELECT url FROM page")}
    assert len(names) == 10
    shown = 0
    for url, state in pruned.rows("SELECT url, state FROM page WHERE requisite = 0"):
        there = await database.read(pages.canonical_url, url)
        assert (there is not None) == (state == "suspended")
        shown += 1
        if there is not None:
            assert pruned.rows("SELECT version_id FROM page WHERE url = ?", there) != [(None,)]
    assert shown == len(plain.mirror.rows("SELECT url FROM page WHERE requisite = 0"))
    rows = await database.read(replica.list_replicas)
    assert {row.slot_name: without_port(row.canonical_host) for row in rows} == dict(
        zip(COPIES, ORIGINALS, strict=False)
    )
