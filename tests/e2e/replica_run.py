"""A daemon in this process that mirrors a simulated web of replicas, day after day."""

from crawld.daemon.clock import Clock
from crawld.daemon.run import run_daemon
from crawld.simweb.server import SimWeb
from tests.daemon.harness import (
    Mirror,
    ShiftedTime,
    Web,
    paused_at_start,
    run_job,
    until,
    until_done,
)

DAY_S = 86_400.0


class ReplicaRun:
    """A running daemon, its web, its database, and the wall clock of both."""

    def __init__(self, db):
        self.wall = ShiftedTime()
        self.mirror = Mirror(db, clock=Clock(wall=self.wall))

    async def start(self, nursery, *sites, dns, **options):
        """Serve the sites, start a daemon, and visit every page once."""
        simweb = SimWeb(sites, clock=self.wall, any_loopback=True)
        self.web = Web(simweb, (await nursery.start(simweb.serve)).port)
        self.hosts = list(dns)
        start = self.mirror.make_start(
            *(self.web.url(host=host) for host in dns),
            once=False,
            dns={"hosts": {host: [address] for host, address in dns.items()}},
            **options,
        )
        with paused_at_start():
            self.daemon = await nursery.start(run_daemon, start)
        # The first runs of the jobs, due at the start, must not see half of the pages.
        own = "SELECT 1 FROM job WHERE name IN ('analyse', 'replicas') AND last_finished_at > 0"
        await until(lambda: len(self.mirror.rows(own)) == 2, what="the first runs of the jobs")
        self.daemon.set_paused(paused=False)
        await self.settle()

    async def settle(self):
        crawl = self.daemon.crawl
        await until_done(self.daemon, 1.0)
        await crawl.recorder.drain()

    async def sample_once(self):
        self.wall.shift_s += 120.0
        await run_job(self.daemon, "analyse")
        await run_job(self.daemon, "replicas")
        await self.settle()

    async def run_day(self):
        """Let a day pass with a visit of every page; return the number of requests per host."""
        before = self.page_requests()
        self.wall.shift_s += DAY_S
        await self.daemon.crawl.schedule.wake_all()
        await self.settle()
        return {host: count - before[host] for host, count in self.page_requests().items()}

    def page_requests(self):
        return {
            host: sum(target != "/robots.txt" for target in self.web.targets(host))
            for host in self.hosts
        }
