"""Runs the whole daemon and a simulated web in the test process: real sockets, a real file."""

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import pytest
import trio

from crawld.config.checks import check_config
from crawld.config.model import Config
from crawld.daemon.clock import Clock
from crawld.daemon.daemon import Daemon
from crawld.daemon.environment import Environment
from crawld.daemon.run import run_daemon
from crawld.daemon.start import Start
from crawld.simweb.graph import SiteGraph
from crawld.simweb.server import SimWeb
from crawld.simweb.site import SimSite
from crawld.store import job as job_rows
from crawld.store.engine.connection import open_connection

# Tests count requests: requisites are off unless a test is about them.
SITE = {"allow_private": True, "requisites": False}
TIMEOUT_S = 120.0
"""Longest wait of a test; a working daemon needs much less."""


def make_site(host="a.test", pages=20, **more):
    """Return a simulated site with a seeded graph."""
    return SimSite((host,), SiteGraph(pages, seed=1), **more)


class ShiftedTime:
    """Wall clock that a test can shift by `shift_s`."""

    def __init__(self):
        self.shift_s = 0.0

    def __call__(self):
        return time.time() + self.shift_s


class SteppedTime:
    """Wall clock that each request advances by `step_s`, so that results do not depend on speed.

    The daemon reads it by a call; the simulated web reads and advances it by `tick`.
    """

    def __init__(self, at, step_s):
        self.at, self.step_s = at, step_s

    def __call__(self):
        return self.at

    def tick(self):
        self.at += self.step_s
        return self.at


_kept = ContextVar("kept", default=None)
"""Connections of the condition that is polled, by file, and what closes them."""


@contextmanager
def kept_connections():
    """Let the polls of a condition share their connections: to open one takes 2 ms."""
    with ExitStack() as stack:
        token = _kept.set(({}, stack))
        try:
            yield
        finally:
            _kept.reset(token)


def _rows(db, sql, bindings):
    if (kept := _kept.get()) is None:
        with closing(open_connection(db, read_only=True)) as connection:
            return connection.execute(sql, bindings).fetchall()
    connections, stack = kept
    if db not in connections:
        connections[db] = stack.enter_context(closing(open_connection(db, read_only=True)))
    return connections[db].execute(sql, bindings).fetchall()


async def until_first_retention(mirror):
    """Wait for the daemon's run of the job at its start: it must not thin the rows of a test."""
    await until(
        lambda: mirror.rows("SELECT 1 FROM job WHERE name = 'retention' AND last_finished_at > 0"),
        what="the retention job",
    )


async def until(condition, *, what="condition"):
    """Check a condition every 5 ms until it holds; fail after `TIMEOUT_S`.

    Args:
        what: name of the condition in the error.
    """
    with kept_connections(), trio.move_on_after(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 (state of all kinds, without an event)
            await trio.sleep(0.005)
        return
    raise AssertionError(f"{what} did not come true")


async def until_done(running, within_s):
    """Wait until a daemon has all its seeds, and no page becomes due within so many seconds."""
    with trio.fail_after(TIMEOUT_S):
        while not (  # noqa: ASYNC110 (state of all kinds, without an event)
            running.site_registry.seeded and await running.crawl.is_done(within_s)
        ):
            await trio.sleep(0.005)


async def run_job(running, name):
    """Run a job of a daemon, after a run under way; return the row of the run."""
    task = running.background.jobs._tasks[name]
    await until(lambda: not task.running, what=f"the end of {name}")
    begun = running.clock.now()
    running.background.jobs.run_soon(name)

    def ended():
        # Between the stored start and the run itself the job is neither running nor finished.
        row = running.database.look_up(job_rows.last_run, name)
        return not task.running and row is not None and (row.last_finished_at or 0.0) >= begun

    await until(ended, what=f"a run of {name}")
    return running.database.look_up(job_rows.last_run, name)


@contextmanager
def paused_at_start():
    """Pause the daemons that start meanwhile before their first turn.

    A daemon paused when its start is over may have visited its seeds by then.
    """
    run = Daemon.run

    async def run_paused(daemon, *arguments):
        daemon.set_paused(paused=True)
        await run(daemon, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Daemon, "run", run_paused)
        yield


@dataclass
class Web:
    """A running simulated web."""

    simweb: SimWeb
    port: int

    @property
    def ledger(self):
        return self.simweb.ledger

    def url(self, path="/", host="a.test"):
        return f"http://{host}:{self.port}{path}"

    def targets(self, host="a.test"):
        """Return the paths requested at a host, in order."""
        return [row.target for row in self.ledger.requests(host)]


@dataclass
class Mirror:
    """A database on which daemons run one after the other.

    Attributes:
        tables: tables of the config of every daemon.
        clock: the clock of every daemon.
    """

    db: object
    tables: Mapping = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    def make_start(self, *seeds, once=True, site=None, beside=(), **tables):
        """Return the start values of a daemon; the hosts under .test resolve to this machine.

        Args:
            site: keys of the site `s`; `beside`: the tables of further sites.
        """
        hosts = ("a.test", "b.test", "c.test", "www.a.test")
        merged = {
            "daemon": {"db": str(self.db), "contact": "test@example.org"},
            "dns": {"hosts": {host: ["127.0.0.1"] for host in hosts}},
            "politeness": {"host_delay_s": 0.0},
            # Tests count requests: no page is fetched a second time to learn its noise.
            "content": {"confirm_pages": 0},
            "jobs": {"audit_share": 0.0},
            "store": {"batch_max_age_s": 0.02, "min_free_bytes": 0},
            "site": [
                {"name": "s", "seeds": seeds, **SITE, **(site or {})},
                *({**SITE, **each} for each in beside),
            ],
        }
        for name, table in {**self.tables, **tables}.items():
            is_list = isinstance(table, list)
            merged[name] = table if is_list else {**merged.get(name, {}), **table}
        config = Config.model_validate(merged)
        findings, seeds_by_site = check_config(config)
        assert not [each for each in findings if each.fatal], findings
        return Start(
            config=config, seeds=seeds_by_site, once=once, environment=Environment(clock=self.clock)
        )

    async def run(self, *seeds, **more):
        """Run a daemon with `--once` to its end."""
        with trio.fail_after(TIMEOUT_S):
            await run_daemon(self.make_start(*seeds, **more))

    def rows(self, sql, *bindings):
        """Return the rows of a query on the database."""
        return _rows(self.db, sql, bindings)

    def pages(self):
        """Return (state, last_outcome, last_failure) of every page by the path of its URL."""
        rows = self.rows("SELECT url, state, last_outcome, last_failure FROM page")
        return {"/" + url.split("/", 3)[3]: tuple(rest) for url, *rest in rows}

    def refusals(self):
        """Return the number of refused URLs by reason."""
        return dict(self.rows("SELECT reason, sum(refused) FROM refusal GROUP BY reason"))
