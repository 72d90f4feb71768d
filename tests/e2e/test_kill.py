"""SIGKILL at random times loses no committed visit and no page, and breaks no delay.

`CRAWLD_KILLS` is the number of kills; `make torture` uses a hundred.
"""

import os
import random

from tests.e2e.daemon_config import HOSTS, early_requests, query_rows, site, urls_of, write_config

KILLS = int(os.environ.get("CRAWLD_KILLS", "20"))
PAGES = 20 * KILLS
"""Pages per host: enough that the crawl outlasts the kills."""

LOG_LIMIT = 10_000


class ReportedVisits:
    """Collects the visits that the control socket reported as stored."""

    def __init__(self, crawld):
        self.crawld = crawld
        self.seen = {}

    def update(self):
        """Add newly reported visits; return the number of known visits."""
        self.seen |= self._reported(after=max(self.seen, default=0))
        return len(self.seen)

    def lost(self):
        """Return the visits that were reported once and are not reported now."""
        stored = self._reported(after=0)
        return {key: was for key, was in self.seen.items() if stored.get(key) != was}

    def _reported(self, after):
        return {
            visit["visit_id"]: (visit["url"], visit["visited_at"], visit["outcome"])
            for visit in self.crawld.get(f"/log?after={after}&limit={LOG_LIMIT}")
        }


def start_and_kill(crawld, config, reported, rng):
    """Start a daemon and kill it at a random time."""
    if rng.random() < 0.2:  # before or while it opens the database
        crawld.start("run", "-c", config, ready=False)
        crawld.process.exits_within(rng.uniform(0.0, 1.2))
    else:
        wanted = len(reported.seen) + rng.randint(1, 12)
        crawld.start("run", "-c", config)
        assert reported.lost() == {}
        crawld.wait_until(lambda _: reported.update() >= wanted)
        crawld.process.exits_within(rng.uniform(0.0, 0.3))
    crawld.kill()


def test_repeated_kills_lose_no_reported_visit_and_break_no_delay(simweb, crawld):
    web = simweb(*(f"--host={host}" for host in HOSTS), f"--pages={PAGES}")
    config = write_config(crawld, site(*(web.url("/", host) for host in HOSTS)))
    reported, rng = ReportedVisits(crawld), random.Random(1)
    for _ in range(KILLS):
        start_and_kill(crawld, config, reported, rng)
    assert len(reported.seen) < 3 * PAGES  # otherwise the last daemons had nothing to do
    assert early_requests(web) == []
    # Crawl the rest without delays.
    write_config(
        crawld,
        site(*(web.url("/", host) for host in HOSTS)),
        politeness={"host_delay_s": 0.0, "address_delay_s": 0.0},
    )
    crawld.start("run", "-c", config)
    crawld.wait_until(lambda status: status["pages"]["visited"] == 3 * PAGES)
    assert reported.lost() == {}
    assert crawld.terminate() == 0
    copies = query_rows(crawld, "SELECT url, state, version_id IS NOT NULL FROM page")
    assert {url for url, *_ in copies} == urls_of(web, pages=PAGES)
    assert {tuple(rest) for _, *rest in copies} == {("visited", 1)}
    assert crawld.crawld("doctor", "--db", crawld.db).returncode == 0


def test_a_stored_retry_after_survives_kills(simweb, crawld):
    web = simweb("--host=a.test", "--pages=4", "--fault=/busy=too-many:4")
    config = write_config(
        crawld, site(web.url("/busy", "a.test"), web.url("/", "a.test")), hosts=("a.test",)
    )
    crawld.start("run", "-c", config)
    crawld.wait_until(
        lambda log: any(each["outcome"] == "blocked" for each in log), "/log?limit=100"
    )
    crawld.kill()
    for _ in range(2):
        crawld.start("run", "-c", config)
        crawld.kill()
    crawld.start("run", "-c", config)
    crawld.wait_until(lambda _: len(web.ledger()) > 2)
    # A slow start may take the 4 s, and then asks again before its end.
    robots, busy, later = web.ledger().requests("a.test")[:3]
    assert (robots.target, busy.target) == ("/robots.txt", "/busy")
    assert later.complete_s - busy.complete_s >= 4.0


def test_acknowledged_commands_survive_a_kill(simweb, crawld):
    web = simweb("--host=a.test", "--host=b.test", "--pages=5")
    config = write_config(crawld, site(web.url("/", "a.test")))
    crawld.start("run", "-c", config)
    added = crawld.post(
        "/add", {"urls": [web.url("/", "b.test")], "site": "more", "allow_private": True}
    )
    assert (added["site"], added["new_site"], added["admitted"]) == ("more", True, 1)
    assert added["refused"] == added["warnings"] == []
    crawld.post("/pause", {"site": "web"})
    crawld.post("/pause", {"host": "b.test"})
    crawld.kill()
    crawld.start("run", "-c", config)
    assert {each["name"]: each["paused"] for each in crawld.get("/sites")} == {
        "web": True,
        "more": False,
    }
    assert crawld.get("/hosts/b.test")["paused"]
    crawld.post("/resume", {"host": "b.test"})
    crawld.post("/resume", {"site": "web"})
    crawld.wait_until(lambda status: status["pages"]["visited"] == 10)
