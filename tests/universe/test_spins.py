"""A daemon that goes on without a pause is found: its world would never end."""

import time
from dataclasses import replace

import pytest

from crawld.daemon.crawl.visitor import Visitor
from crawld.daemon.frontier.host import HostState
from crawld.universe import spin_watch
from crawld.universe.file_audit import FileAudit
from crawld.universe.plan import NameEdition, NameFault, UniversePlan
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host

LOST = "a.test"


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Return a function that runs two hosts and tells what is broken.

    The lookup of one fails a quarter of a second after the other has answered.
    """
    monkeypatch.setattr(spin_watch, "SPIN_CPU_S", 1.0)

    def run():
        host = plain_host(2, changes_per_day=1.0)
        names = (*host.names, NameEdition(400.0, "93.184.216.10", NameFault.TEMPORARY))
        other = replace(host, name="b.test", names=(NameEdition(0.0, "93.184.216.11"),))
        hosts = replace(host, names=names), other
        plan = UniversePlan(1, 1_800.0 / 86_400.0, 300.0, hosts, (), min_revisit_s=0.0)
        return {each.invariant for each in run_universe(plan, tmp_path).auditor.found.violations}

    return run


@pytest.fixture
def run_logged(tmp_path):
    """Return a function that runs a small universe and returns the digest of its events."""

    def run(name):
        folder = tmp_path / name
        folder.mkdir()
        plan = UniversePlan(1, 900.0 / 86_400.0, 5.0, (plain_host(20),), ())
        return run_universe(plan, folder).log.sha256()

    return run


def test_a_host_whose_name_is_lost_just_after_another_answered_waits_for_its_delay(broken):
    assert broken() == set()


def test_a_retry_without_a_pause_is_found(broken, monkeypatch):
    rest_from, visit = HostState.rest_from, Visitor.visit
    visited = []

    async def noted(visitor, task, responder):
        visited.append(responder.host)
        await visit(visitor, task, responder)
        visited.pop()

    def rest(host, from_s):
        if host not in visited or host.slot.host != LOST:
            rest_from(host, from_s)

    monkeypatch.setattr(Visitor, "visit", noted)
    monkeypatch.setattr(HostState, "rest_from", rest)
    assert "daemon_spins" in broken()


def test_one_long_step_is_no_spin(broken, monkeypatch):
    check = FileAudit.check

    def long_check(audit, path):
        ends_s = time.process_time() + 4.0 * spin_watch.SPIN_CPU_S
        while time.process_time() < ends_s:
            pass
        check(audit, path)

    monkeypatch.setattr(spin_watch, "SPIN_CPU_S", 0.5)
    monkeypatch.setattr(FileAudit, "check", long_check)
    assert broken() == set()


def test_when_the_watch_looks_changes_nothing(run_logged, monkeypatch):
    quiet = run_logged("quiet")
    monkeypatch.setattr(spin_watch, "SPIN_CPU_S", 0.005)
    assert run_logged("watched") == quiet
