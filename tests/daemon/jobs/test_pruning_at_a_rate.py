"""What the visits that pruning saves buy elsewhere, at one total rate of requests."""

import pytest

from crawld.daemon.jobs.analyse_copies import AnalyseCopiesJob
from tests.daemon.harness import run_job, until
from tests.daemon.jobs.test_replicas import WWW, twin

RATE = 25.0
PAGES = 12
TURNS = 45
"""Turns over which the requests of hosts are counted."""


async def test_hosts_that_are_pruned_leave_their_turns_to_the_others(serve, daemon, mirror, wall):
    kept = ("a.test", "b.test")
    sites = [twin(host, pages=PAGES) for host in ("a.test", WWW)]
    sites.append(twin("b.test", pages=PAGES, seed=9))
    web = await serve(*sites, clock=wall)
    running = await daemon(
        *(web.url(host=host) for host in (*kept, WWW)),
        schedule={"max_requests_per_s": RATE, "min_revisit_s": 0.0},
        replicas={"prune": False},
    )

    def asked(*hosts):
        return sum(len(web.targets(host)) for host in hosts)

    async def kept_share():
        """Return the share of the next turns that the kept hosts get, and how they are spaced."""
        before, all_before = asked(*kept), asked(*kept, WWW)
        await until(lambda: asked(*kept, WWW) >= all_before + TURNS, what="turns")
        return (asked(*kept) - before) / (asked(*kept, WWW) - all_before)

    async def search():
        wall.shift_s += 120.0
        await AnalyseCopiesJob(running.context).run()
        assert (await run_job(running, "replicas")).result == "done"
        assert (await run_job(running, "allocate")).result == "done"

    await until(lambda: sum(running.crawl.visitor.counts.values()) >= 3 * PAGES, what="all pages")
    await search()
    whole = await kept_share()
    replicas = running.config.replicas.model_copy(update={"prune": True})
    config = running.config.model_copy(update={"replicas": replicas})
    await running.site_registry.adopt(config, running.start.seeds)
    running._config = config

    def resting():
        rests = "SELECT count(*) FROM page JOIN host USING (host_id) WHERE host = ? AND state = ?"
        return mirror.rows(rests, WWW, "suspended")[0][0]

    for _ in range(4):  # a page in flight rests after a later search
        await search()
        if resting() == PAGES:
            break
    assert resting() == PAGES
    pruned = await kept_share()
    assert whole == pytest.approx(2 / 3, abs=0.15)
    assert pruned >= 0.97
    spans = running.crawl.schedule.recent.by_host({*kept, WWW}, 4_096).values()
    times = sorted(span.began_at for each in spans for span in each)
    for start in times:
        assert sum(start <= each < start + 10.0 / RATE - 1e-6 for each in times) <= 11
