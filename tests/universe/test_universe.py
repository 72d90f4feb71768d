"""The whole daemon in a deterministic world: equal seeds repeat, and planted bugs are found."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from crawld.core.robots import Robots
from crawld.daemon.crawl import restore
from crawld.daemon.frontier import host as host_module
from crawld.daemon.frontier.host import HostState
from crawld.daemon.visit.recorder import Recorder
from crawld.universe.draw import draw_plan
from crawld.universe.memory_stream import MemoryStream
from crawld.universe.plan import (
    ClockStep,
    EndKind,
    FaultKind,
    FaultPeriod,
    HostPlan,
    LifeEnd,
    NameEdition,
    RobotsEdition,
    UniversePlan,
)
from crawld.universe.run_universe import run_universe
from crawld.universe.scenario import scenario_text

SEED, DAYS = 3, 0.003
OPEN = RobotsEdition(0.0, "", None)
BUSY = FaultPeriod(FaultKind.BUSY, 40.0, 45.0, share=1.0, retry_after_s=60)


def plan(*, faults=(), robots=(OPEN,), ends=(), duration_s=150.0, **more):
    names = (NameEdition(0.0, "93.184.216.10"),)
    host = HostPlan("a.test", names, 40, 5, tuple(robots), tuple(faults))
    return UniversePlan(1, duration_s / 86_400.0, 5.0, (host,), tuple(ends), **more)


def broken(result):
    """Return the promises that a run has broken."""
    return {violation.invariant for violation in result.auditor.found.violations}


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a plan in a new folder."""
    folders = iter(range(9))

    def run_it(planned, **more):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return run_universe(planned, folder, **more)

    return run_it


def test_a_seed_repeats_byte_for_byte(run, tmp_path):
    planned = draw_plan(SEED, DAYS)
    path = tmp_path / "events.txt"
    with path.open("w") as events:
        first = run(planned, event_file=events)
    again = run(planned).as_json()
    assert first.as_json()["event_log_sha256"] == again["event_log_sha256"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == again["event_log_sha256"]
    assert len(path.read_text().splitlines()) == again["events"] > 50

    out = tmp_path / "out.json"
    arguments = ("--seed", str(SEED), "--days", str(DAYS), "--json", str(out))
    # A process of its own, whose strings have other hashes.
    done = subprocess.run(
        (sys.executable, "-m", "crawld.cli.main", "lab", "universe", *arguments),
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(out.read_text())
    assert told["violations"] == []
    assert told["event_log_sha256"] == again["event_log_sha256"]
    assert told["lives"] == again["lives"] > 1


def test_other_seeds_give_other_universes(run):
    planned = plan(duration_s=30.0)
    digests = {
        run(UniversePlan(seed, planned.days, 5.0, planned.hosts, ())).log.sha256()
        for seed in (1, 2)
    }
    assert len(digests) == 2


def test_promises_hold_over_faults_and_ends(run):
    faults = [
        FaultPeriod(FaultKind.RESET, 20.0, 30.0, 1.0, 0),
        BUSY,
        FaultPeriod(FaultKind.STALL, 120.0, 130.0, 1.0, 0),
        FaultPeriod(FaultKind.STALL_MID_BODY, 220.0, 240.0, 1.0, 0),
    ]
    ends = [LifeEnd(EndKind.KILL, 60.0, 0.0), LifeEnd(EndKind.STOP, 200.0, 1.0)]
    result = run(plan(faults=faults, ends=ends, duration_s=300.0))
    assert result.auditor.found.violations == []
    assert result.lives == 3
    assert result.visits > 10


@pytest.mark.parametrize("kind", [FaultKind.HALF_CLOSE, FaultKind.HALF_CLOSE_MID_BODY])
def test_connections_that_a_server_half_closes_are_used_no_more(run, kind):
    half_closed = FaultPeriod(kind, 40.0, 100.0, 1.0, 0)
    result = run(plan(faults=[half_closed], duration_s=300.0))
    assert result.auditor.found.violations == []
    # A whole answer is none the worse for it; half of one is a failure, after which hosts rest.
    assert result.auditor.requests > (45 if kind is FaultKind.HALF_CLOSE else 12)


def test_finds_a_connection_that_is_used_after_its_server_half_closed_it(run, monkeypatch):
    half_closed = FaultPeriod(FaultKind.HALF_CLOSE, 40.0, 100.0, 1.0, 0)
    planned = plan(faults=[half_closed], duration_s=300.0)
    right = run(planned).auditor.requests
    monkeypatch.setattr(MemoryStream, "is_readable", lambda _: False)
    assert run(planned).auditor.requests < right


def test_finds_a_delay_that_is_too_short(run, monkeypatch):
    right = host_module.effective_delay_s
    monkeypatch.setattr(host_module, "effective_delay_s", lambda *facts: 0.9 * right(*facts))
    assert broken(run(plan(duration_s=60.0))) == {"host_delay"}


def test_finds_a_crawl_delay_that_is_ignored(run, monkeypatch):
    right = host_module.effective_delay_s
    monkeypatch.setattr(
        host_module, "effective_delay_s", lambda rules, _, *rest: right(rules, None, *rest)
    )
    robots = [RobotsEdition(0.0, "", 20.0)]
    assert broken(run(plan(robots=robots, duration_s=100.0))) == {"host_delay"}


@pytest.mark.parametrize("kind", EndKind)
def test_finds_a_delay_that_a_restart_forgets(run, monkeypatch, kind):
    monkeypatch.setattr(restore, "_first_waits", lambda *_: None)
    ends = [LifeEnd(kind, 61.5, 0.0)]
    assert broken(run(plan(ends=ends, duration_s=90.0))) == {"host_delay"}


def test_finds_a_retry_after_that_is_ignored(run, monkeypatch):
    right = HostState.record_trouble
    monkeypatch.setattr(HostState, "record_trouble", lambda host, now, _: right(host, now, None))
    assert broken(run(plan(faults=[BUSY]))) == {"retry_after"}


@pytest.mark.parametrize("names_date", [False, True])
def test_finds_a_retry_after_that_ends_two_seconds_early(run, monkeypatch, names_date):
    right = HostState.record_trouble
    monkeypatch.setattr(
        HostState, "record_trouble", lambda host, now, told_s: right(host, now, told_s - 2.0)
    )
    planned = plan(faults=[replace(BUSY, names_date=names_date)])
    assert broken(run(planned)) == {"retry_after"}


@pytest.mark.parametrize("by_s", [-3_600.0, 3_600.0])
def test_a_date_of_retry_after_holds_whatever_our_clock_shows(run, by_s):
    steps = (ClockStep(20.0, by_s),)
    result = run(plan(faults=[replace(BUSY, names_date=True)], steps=steps))
    assert result.auditor.found.violations == []
    assert result.visits > 15  # an hour too early is a day too late


def test_finds_a_retry_after_that_a_kill_forgets(run, monkeypatch):
    monkeypatch.setattr(HostState, "restore", lambda *_: None)
    ends = [LifeEnd(EndKind.KILL, 55.0, 0.0)]
    assert broken(run(plan(faults=[BUSY], ends=ends))) == {"retry_after"}


def test_finds_a_rule_of_robots_that_is_ignored(run, monkeypatch):
    monkeypatch.setattr(Robots, "allowed", lambda *_: True)
    robots = [RobotsEdition(0.0, "/wiki/", None)]
    assert broken(run(plan(robots=robots, duration_s=60.0))) == {"robots_forbids"}


@pytest.mark.parametrize("by_s", [0.0, -7_200.0])
def test_rules_of_robots_are_a_day_old_at_most(run, by_s):
    steps = (ClockStep(40_000.0, by_s),) if by_s else ()
    planned = replace(plan(duration_s=89_000.0, steps=steps), host_delay_s=900.0)
    result = run(replace(planned, hosts=(replace(planned.hosts[0], pages=3),), min_revisit_s=0.0))
    assert result.auditor.found.violations == []
    assert result.visits > 90


def test_finds_a_visit_that_is_never_stored(run, monkeypatch):
    right, puts = Recorder.put, iter(range(1_000_000))

    async def put(recorder, entry):
        if next(puts) != 2:
            await right(recorder, entry)

    monkeypatch.setattr(Recorder, "put", put)
    assert "visit_lost" in broken(run(plan(duration_s=60.0)))


def test_finds_visits_that_wait_too_long_for_their_commit(run, monkeypatch):
    right = Recorder.__init__

    def start(recorder, database, *, gather_s, **more):
        right(recorder, database, gather_s=30.0 + gather_s, **more)

    monkeypatch.setattr(Recorder, "__init__", start)
    ends = [LifeEnd(EndKind.KILL, 60.0, 0.0)]
    assert "visit_lost" in broken(run(plan(ends=ends, duration_s=90.0)))


def test_the_command_ends_with_1_and_the_way_to_repeat_it(command, monkeypatch, tmp_path):
    right, out = host_module.effective_delay_s, tmp_path / "out.json"
    monkeypatch.setattr(host_module, "effective_delay_s", lambda *facts: 0.5 * right(*facts))
    options = ("--days", "0.001", "--shrink", "1", "--json", out)
    ended = command("crawld", "lab", "universe", "--seed", SEED, *options)
    assert ended.code == 1
    assert f"replay: crawld lab universe --seed {SEED} --days 0.001" in ended.out
    assert '{"format": 1, "plan": {"seed": ' in ended.out
    violation = json.loads(out.read_text())["violations"][0]
    assert violation["invariant"] == "host_delay"
    assert set(violation) == {"invariant", "at", "what"}


def test_the_plot_shows_requests_faults_ends_and_broken_promises(command, monkeypatch, tmp_path):
    right, out = host_module.effective_delay_s, tmp_path / "out.svg"
    monkeypatch.setattr(host_module, "effective_delay_s", lambda *facts: 0.5 * right(*facts))
    scenario = tmp_path / "plan.json"
    stopped = plan(faults=(BUSY,), ends=[LifeEnd(EndKind.STOP, 60.0, 1.0)])
    scenario.write_text(scenario_text(stopped))
    options = ("--scenario", scenario, "--shrink", "0", "--plot", out)
    ended = command("crawld", "lab", "universe", *options)
    assert ended.code == 1
    drawn = out.read_text()
    for text in ("a.test", "end of a life", "broken promise", "simulated hours"):
        assert f">{text}</text>" in drawn
    assert "step of the clock" not in drawn
    assert "EventCollection_1" in drawn  # the requests
    assert "PolyCollection_1" in drawn  # the fault


def test_a_steady_mirror_runs_without_faults(command, tmp_path):
    out = tmp_path / "out.json"
    sizes = ("--sites", "3", "--pages", "4", "--delay", "5", "--days", "0.001")
    ended = command("crawld", "lab", "universe", "--seed", SEED, *sizes, "--json", out)
    assert ended.code == 0, ended.out
    told = json.loads(out.read_text())
    assert (told["hosts"], told["lives"], told["violations"]) == (3, 1, [])
    assert told["requests"] > 3 * 4  # every page


@pytest.mark.parametrize(("seed", "days"), [("x", "1"), ("-1", "1"), ("1", "0"), ("1", "nan")])
def test_bad_options_are_refused(command, seed, days):
    ended = command("crawld", "lab", "universe", "--seed", seed, "--days", days)
    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no JSON", "is no scenario"),
        ("[]", "is no scenario"),
        ('{"format": 1, "plan": {"seed": "x"}}', "is no scenario"),
        ('{"format": 99, "plan": {}}', "another version"),
        (None, "cannot read"),
    ],
)
def test_bad_scenarios_are_refused(command, tmp_path, text, told):
    path = tmp_path / "scenario.json"
    if text is not None:
        path.write_text(text)
    ended = command("crawld", "lab", "universe", "--scenario", path)
    assert ended.code == 2
    assert told in ended.err


def test_a_run_that_takes_too_long_says_where_it_stands(command):
    ended = command("crawld", "lab", "universe", "--seed", SEED, "--days", "1000", "--max-cpu", "0")
    assert ended.code == 2
    assert "the CPU time was used up on day 0.000 of 1000" in ended.err


def test_an_interrupted_run_says_where_it_stands(run, monkeypatch):
    right, asked = Recorder.put, iter(range(1_000_000))

    async def put(recorder, entry):
        if next(asked) == 5:
            signal.raise_signal(signal.SIGINT)
        await right(recorder, entry)

    monkeypatch.setattr(Recorder, "put", put)
    with pytest.raises(ExceptionGroup) as caught:
        run(plan(duration_s=900.0))
    error = caught.value
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert "interrupted on day 0.001 of 0.0104" in error.message
    assert "requests in 1 lives: no violation so far" in error.message
