"""Run a daemon over hostile hosts and a healthy one, each in a process of its own."""

import signal
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import pytest

from crawld.bench import hostile_world, simweb_process
from crawld.bench.crawld_process import DaemonProcess
from crawld.bench.hostile_outcomes import Outcomes
from crawld.bench.hostile_world import (
    HEALTHY_HOST,
    Limits,
    run_hostile_world,
    trusting,
    write_config,
)
from crawld.bench.simweb_process import run_simweb
from crawld.simweb.hostile.names import VAULT_ADDRESS
from crawld.simweb.ledger import Ledger
from tests.hostile.forked_child import run_forked_child

GUARD_S = 400.0
"""Longest wait for a group; a working daemon needs much less."""

POLL_MS = 200
HEALTHY_PAGES = 40

# What must have been asked for before a case of the family is over.
_SOURCES = {"listings": "/source", "wiki_api": "/api.php"}


@dataclass
class Crawl:
    """What a daemon made of a group of cases.

    Attributes:
        wrong: name of each case without an acceptable outcome, with the outcomes it has.
        healthy: outcome of each page of the healthy host.
        requests: number of requests by host.
        vault: targets asked for at the address that no site allows.
        exit_code: of the daemon, after SIGTERM.
        output: what the daemon printed.
    """

    wrong: dict = field(default_factory=dict)
    healthy: dict = field(default_factory=dict)
    requests: dict = field(default_factory=dict)
    vault: list = field(default_factory=list)
    exit_code: int | None = None
    output: str = ""


def crawl(directory, cases, *, total_s, guard_s=GUARD_S, max_memory_bytes=None):
    """Crawl the cases and a healthy host until all have an outcome, then end the daemon."""
    limits = Limits(
        total_s=total_s, healthy_delay_s=0.02, delay_s=0.02, max_memory_bytes=max_memory_bytes
    )
    names = [case.name for case in cases]
    with ExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        for module in (hostile_world, simweb_process):
            patched.setattr(module, "run_child", run_forked_child)
        world = stack.enter_context(run_hostile_world(directory / "world", names))
        options = ("--host", HEALTHY_HOST, "--pages", str(HEALTHY_PAGES), "--ledger", "l.jsonl")
        _, port = stack.enter_context(run_simweb(directory / "healthy", *options))
        seed = f"http://{HEALTHY_HOST}:{port}/"
        config = write_config(directory, world, cases, limits, healthy_seeds=(seed,))
        (directory / "daemon").mkdir()
        socket = directory / "mirror.sock"
        command = [sys.executable, "-m", "crawld.cli.main", "run", "-c", str(config)]
        command = trusting(world, [*command, "--socket", str(socket)])
        child = stack.enter_context(run_forked_child(command, directory / "daemon"))
        outcomes = Outcomes(world, limits)
        with closing(DaemonProcess(child, socket)) as daemon:
            daemon.wait_answering()
            _wait(daemon, outcomes, world, cases, guard_s)
        found = Crawl(exit_code=child.stop(signal.SIGTERM), output=child.output())
        ledger = world.ledger()
        assert "Traceback" not in world.output(), world.output()[-2000:]
    found.wrong = {
        each.case.name: each.outcomes
        for each in outcomes.found.values()
        if not each.outcomes or not each.case.outcomes.issuperset(each.outcomes)
    }
    found.healthy = dict.fromkeys(outcomes.healthy, "changed")
    found.requests = dict(ledger.hosts())
    rows = [ledger.row(index) for index in range(len(ledger))]
    found.vault = [row.target for row in rows if row.address == VAULT_ADDRESS]
    assert Ledger.read(directory / "healthy" / "l.jsonl").hosts()[HEALTHY_HOST] >= HEALTHY_PAGES
    return found


def _wait(daemon, outcomes, world, cases, guard_s):
    """Wait until all cases have outcomes, their sources were asked and the healthy host is read."""
    until_s = time.monotonic() + guard_s
    pending = cases
    unasked = {case.host: _SOURCES.get(case.family) for case in cases if case.site}
    while time.monotonic() < until_s and daemon.child.running(for_ms=POLL_MS):
        pending = outcomes.update(daemon, pending)
        if pending or len(outcomes.healthy) < HEALTHY_PAGES:
            continue
        if any(unasked.values()):
            ledger = world.ledger()
            for row in (ledger.row(index) for index in range(len(ledger))):
                if (prefix := unasked.get(row.host)) and row.target.startswith(prefix):
                    unasked[row.host] = None
        if not any(unasked.values()):
            return
    never = [host for host, prefix in unasked.items() if prefix]
    done = not pending and len(outcomes.healthy) >= HEALTHY_PAGES
    assert not (done and never), f"never asked for their source: {never}"
