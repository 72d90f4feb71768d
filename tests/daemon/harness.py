"""A simulated web and the whole daemon in this process: real sockets, a real file."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

import trio

from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.daemon.clock import Clock
from crawld.daemon.daemon import Start
from crawld.daemon.environment import Environment
from crawld.daemon.run import run_daemon
from crawld.simweb.graph import SiteGraph
from crawld.simweb.server import SimWeb
from crawld.simweb.site import SimSite
from crawld.store.engine.connection import open_connection

# Requests are counted: what pages show is left alone unless a test is about it.
SITE = {"allow_private": True, "requisites": False}
TIMEOUT_S = 60.0
"""No wait of a test is longer; none is this long where the daemon works."""


def make_site(host="a.test", pages=20, **more):
    """Return a simulated site."""
    return SimSite((host,), SiteGraph(pages, seed=1), **more)


class ShiftedTime:
    """Wall time that a test can make jump."""

    def __init__(self):
        self.shift_s = 0.0

    def __call__(self):
        return time.time() + self.shift_s


class SteppedTime:
    """Wall time that requests alone move, so that no figure depends on how fast this machine is.

    It is the daemon's clock as it stands, and the web's by `tick`.
    """

    def __init__(self, at, step_s):
        self.at, self.step_s = at, step_s

    def __call__(self):
        return self.at

    def tick(self):
        self.at += self.step_s
        return self.at


async def until(condition, *, what="condition"):
    """Look at real state until a condition holds."""
    with trio.move_on_after(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 (state of all kinds, without an event)
            await trio.sleep(0.005)
        return
    raise AssertionError(f"{what} did not come true")


@dataclass
class Web:
    """A simulated web that runs."""

    simweb: SimWeb
    port: int

    @property
    def ledger(self):
        return self.simweb.ledger

    def url(self, path="/", host="a.test"):
        return f"http://{host}:{self.port}{path}"

    def targets(self, host="a.test"):
        """Return the paths asked for at a host, in order."""
        return [row.target for row in self.ledger.requests(host)]


@dataclass
class Mirror:
    """A database and the configs daemons are run on it with, one after the other."""

    db: object
    tables: Mapping = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def make_start(self, *seeds, once=True, site=None, **tables):
        """Return what a daemon is started with; hosts under .test are on this machine."""
        hosts = ("a.test", "b.test", "c.test", "www.a.test")
        merged = {
            "daemon": {"db": str(self.db), "contact": "test@example.org"},
            "dns": {"hosts": {host: ["127.0.0.1"] for host in hosts}},
            "politeness": {"host_delay_s": 0.0},
            # Requests are counted: no page is fetched a second time to learn its noise.
            "content": {"confirm_pages": 0},
            "jobs": {"audit_share": 0.0},
            "store": {"batch_max_age_s": 0.02, "min_free_bytes": 0},
            "site": [{"name": "s", "seeds": seeds, **SITE, **(site or {})}],
        }
        for name, table in {**self.tables, **tables}.items():
            merged[name] = {**merged.get(name, {}), **table}
        config = Config.model_validate(merged)
        findings, of_site = check_config(config)
        assert not [each for each in findings if each.fatal], findings
        return Start(
            config=config, seeds=of_site, once=once, environment=Environment(clock=self.clock)
        )

    async def run(self, *seeds, **more):
        """Mirror once, to the end."""
        with trio.fail_after(TIMEOUT_S):
            await run_daemon(self.make_start(*seeds, **more))

    def rows(self, sql, *bindings):
        """Return rows of the file."""
        with closing(open_connection(self.db, read_only=True)) as connection:
            return connection.execute(sql, bindings).fetchall()

    def pages(self):
        """Return (state, last_outcome, last_failure) of every page by the path of its URL."""
        rows = self.rows("SELECT url, state, last_outcome, last_failure FROM page")
        return {"/" + url.split("/", 3)[3]: tuple(rest) for url, *rest in rows}

    def refusals(self):
        """Return how many URLs were refused, by reason."""
        return dict(self.rows("SELECT reason, sum(refused) FROM refusal GROUP BY reason"))
