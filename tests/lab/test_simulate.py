"""The simulator: its scores, what policies see, and its tables."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from crawld.cli.lab import app
from crawld.core.revisit.policies import UniformPolicy
from crawld.core.units import DAY_S
from crawld.errors import OperatorError
from crawld.lab.contenders import BOUNDS, NAMES
from crawld.lab.copies import Copies
from crawld.lab.experiment import VisitBudget, budgets_of, simulate_table
from crawld.lab.hint_options import HintOptions
from crawld.lab.hints import HintFeed
from crawld.lab.histories import from_times
from crawld.lab.scenario import scenario_of
from crawld.lab.simulate import Task, run
from crawld.lab.site_shapes import site
from tests.lab.lab_process import run_lab

START = 1.2e9
SEEDS_OF_ROBOTS = (1, 2, 3)
POLICIES = [name for name in NAMES if name not in BOUNDS]
"""Policies that need no hints."""


def scenario(pages=12, seed=0, days=60, **options):
    rng = np.random.default_rng(seed)
    times = {
        f"p{page}": START - 300 * DAY_S + np.cumsum(rng.exponential((page + 1) * 3e5, 400))
        for page in range(pages)
    }
    return scenario_of(from_times(times), start=START, duration_s=days * DAY_S, **options)


def test_score_agrees_with_a_count_by_small_steps():
    times = {"a": START + np.array([-5.0, 10.0, 11.0, 40.0]), "b": START + np.array([20.0, 55.0])}
    case = scenario_of(from_times(times), start=START, duration_s=100.0)
    copies = Copies(case)
    visits = {0: [30.0, 60.0], 1: [25.0, 70.0]}
    for page, instants in visits.items():
        for at in instants:
            copies.visit(page, START + at)
    grid = np.arange(0.0, 100.0, 0.01) + 0.005
    fresh = age = total = 0.0
    for page, name in enumerate(times):
        born = max(times[name][0] - START, 0.0)
        for now in grid[grid > born]:
            seen = max((v for v in visits[page] if v <= now), default=None)
            changes = times[name] - START
            missed = changes[(changes > seen) & (changes <= now)] if seen is not None else [born]
            total += 1
            fresh += len(missed) == 0
            age += now - missed[0] if len(missed) else 0.0
    score = copies.score()
    assert score.freshness == pytest.approx(fresh / total, abs=1e-4)
    assert score.age_s == pytest.approx(age / total, rel=1e-3)
    assert (score.visits, score.useful) == (4, 4)


def test_changes_that_a_visit_finds_before_their_reports_are_neither_missed_nor_false():
    times = {"page": [START - DAY_S, START + 1_000.0, START + 1_990.0]}
    case = scenario_of(from_times(times), start=START, duration_s=DAY_S)
    feed, policy = HintFeed(case, HintOptions.parse("lag=60")), UniformPolicy()
    real, missing = feed.reliability.real, feed.reliability.missing
    before = real.yes, real.no, missing.yes, missing.no
    feed.deliver(policy, START + 2_000.0)
    feed.record_visit(policy, 0, [START + 1_000.0, START + 1_990.0], START + 2_000.0)
    feed.deliver(policy, START + 2_055.0)  # the second report comes now
    feed.record_visit(policy, 0, [], START + 3_000.0)
    reports = np.subtract((real.yes, real.no, missing.yes, missing.no), before)
    assert reports.tolist() == pytest.approx([2.0, 0.0, 0.0, 2.0])


def test_changes_that_the_source_can_no_longer_report_are_missed():
    times = {"page": [START - DAY_S, START + 1_000.0]}
    case = scenario_of(from_times(times), start=START, duration_s=DAY_S)
    feed, policy = HintFeed(case, HintOptions.parse("lag=60")), UniformPolicy()
    missed_before = feed.reliability.missing.yes
    feed.deliver(policy, START + 500.0)
    feed.record_visit(policy, 0, [START + 450.0], START + 500.0)  # of which no report will come
    assert feed.reliability.missing.yes == missed_before
    feed.deliver(policy, START + 600.0)
    assert feed.reliability.missing.yes == missed_before + 1.0


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_runs_and_keeps_the_budget(policy):
    case = scenario(days=20)
    row = run(case, Task(policy, 0.5))
    assert 0.0 < row["freshness"] < 1.0
    assert row["age_s"] > 0
    assert row["visits"] <= 0.5 * 12 * 20 + 12
    assert row["hindsight"] == (policy == "merge2")


def test_more_budget_is_fresher_and_uniform_beats_random():
    case = scenario()
    uniform = [run(case, Task("uniform", b))["freshness"] for b in (0.1, 0.4, 1.6)]
    assert uniform == sorted(uniform)
    assert uniform[1] > run(case, Task("random", 0.4))["freshness"]


def reordered(case, order):
    """Return the same pages at other numbers: round robin then visits them in another order."""
    pages = np.random.default_rng(order).permutation(case.pages).tolist()
    times = {f"p{place:02d}": case.histories.page(page) for place, page in enumerate(pages)}
    return scenario_of(from_times(times), start=case.start, duration_s=case.duration_s)


@pytest.mark.parametrize(
    ("budget", "sites", "mean", "least"),
    [(0.05, 12, -0.003, -1.0), (0.2, 5, 0.01, 0.005), (0.8, 5, 0.002, 0.0)],
)
def test_index_is_above_uniform_on_small_sites(budget, sites, mean, least):
    """At .05 a page has three visits, and one site of 30 pages says nothing.

    By the numbers of these pages round robin would begin with the liveliest, its worst order.
    """
    margins = []
    for seed in range(1, 1 + sites):
        case = scenario(pages=30, seed=seed)
        uniform = [
            run(reordered(case, order), Task("uniform", budget))["freshness"] for order in range(8)
        ]
        margins.append(run(case, Task("index", budget))["freshness"] - np.mean(uniform))
    assert np.mean(margins) > mean
    assert min(margins) >= least


def wiki_with_robot(seed, pages=600, runs=12):
    """Return a year of a small wiki, known for half a year, in which a robot begins to edit.

    Each run changes some of the pages; before the year there was none. A page is quiet for months,
    and half of its changes are followed by another within hours.
    """
    rng = np.random.default_rng(seed)
    begin, end = START - 182 * DAY_S, START + 365 * DAY_S
    run_at, reached = rng.uniform(START, end, runs), rng.beta(0.4, 1.6, runs)
    times = {}
    for page in range(pages):
        rate = np.exp(rng.normal(-6.5, 1.3)) / DAY_S * (60 if rng.random() < 0.05 else 1)
        at = [begin + 0.85 * (end - begin) * rng.random() ** 1.5]
        while at[-1] < end:
            at.append(at[-1] + rng.exponential(3600.0 if rng.random() < 0.5 else 1.0 / rate))
        edited = (run_at > at[0]) & (rng.random(runs) < reached)
        robot = run_at[edited] + rng.uniform(0.0, 6 * 3600.0, edited.sum())
        times[f"p{page}"] = np.unique([*at[:-1], *robot])
    return scenario_of(from_times(times), start=START, duration_s=365 * DAY_S)


def test_index_is_not_below_round_robin_where_a_robot_edits_many_pages():
    """A visit soon after the run finds a change, and the model takes the page for a lively one."""
    gains = []
    for seed in SEEDS_OF_ROBOTS:
        case = wiki_with_robot(seed)
        index, uniform = (run(case, Task(name, 0.02))["freshness"] for name in ("index", "uniform"))
        gains.append(index - uniform)
    assert np.mean(gains) > -0.003


def test_index_is_not_below_merge_where_all_pages_change_at_once_now_and_then():
    """Between redesigns copies stay fresh for longer than expected, which is no reason to wait."""
    gains = []
    for seed in (2, 31):
        case = site("redesigns", pages=250, seed=seed)
        index, merge = (run(case, Task(name, 0.02)) for name in ("index", "merge-past"))
        gains.append(index["freshness"] - merge["freshness"])
    assert np.mean(gains) > 0.0


@pytest.mark.parametrize(("shape", "least"), [("young-site", 0.0), ("young-news", 0.02)])
def test_index_is_above_round_robin_where_pages_are_lively_when_young(shape, least):
    """A page that a visit found lively is dead weeks later: then a visit buys all the time left."""
    gains = []
    for seed in (1, 2, 3):
        case = site(shape, pages=250, seed=seed)
        index, uniform = (run(case, Task(name, 0.02))["freshness"] for name in ("index", "uniform"))
        gains.append(index - uniform)
    assert np.mean(gains) > least


def test_hints_improve_freshness():
    case = scenario(pages=30, seed=3)
    blind = run(case, Task("index", 0.3))["freshness"]
    exact = run(case, Task("index", 0.3, hints=HintOptions(60.0)))["freshness"]
    noisy = run(case, Task("index", 0.3, hints=HintOptions(60.0, miss=0.2, false=0.2)))["freshness"]
    assert exact > noisy > blind


def test_with_more_hints_than_visits_nearly_all_fresh_time_is_bought_that_can_be():
    """A visit at once after a change buys the time to the next one, so rare changes come first."""
    per_day = 20.0 / 1.12 ** np.arange(60)
    visits_per_page_day, rng = 1.0, np.random.default_rng(0)
    times = {
        f"p{page}": START - 60 * DAY_S + np.cumsum(rng.exponential(DAY_S / rate, 2_400))
        for page, rate in enumerate(per_day)
    }
    case = scenario_of(from_times(times), start=START, duration_s=30 * DAY_S)
    found = run(case, Task("index", visits_per_page_day, hints=HintOptions(60.0)))["freshness"]
    left, most = visits_per_page_day * len(per_day), 0.0
    for rate in sorted(per_day):
        share = min(left / rate, 1.0)
        left, most = left - share * rate, most + share / len(per_day)
    assert found > most - 0.04


@pytest.mark.parametrize(
    ("hints", "most"),
    [(HintOptions(60.0, miss=0.5, false=0.95), 0.004), (HintOptions(60.0, false=0.995), 0.01)],
)
def test_a_mostly_false_source_costs_little(hints, most):
    costs = []
    for case in (scenario(pages=30, seed=seed) for seed in range(3)):
        blind = run(case, Task("index", 0.3))["freshness"]
        costs.append(blind - run(case, Task("index", 0.3, hints=hints))["freshness"])
    assert np.mean(costs) < most


class RecordedCopies(Copies):
    """Copies that note which page was visited when."""

    visits = []

    def visit(self, page, at):
        self.visits.append((page, at))
        return super().visit(page, at)


def visits_in_two_worlds(monkeypatch, policy, cut, later_days=10, **options):
    """Return the visits until a cut, and those after it, of worlds that are equal until the cut."""
    rng = np.random.default_rng(5)
    past = {
        f"p{page}": START - 500 * DAY_S + np.cumsum(rng.gamma(0.4, (page + 1) * 2e5, 900))
        for page in range(8)
    }
    before, after = [], []
    for world in range(2):
        times = {}
        for page, (name, known) in enumerate(past.items()):
            # From the cut on the other world is slower or faster, and changes at other times.
            later = known[known > cut]
            pace = 0.2 if page % 2 else 5.0
            times[name] = known if world == 0 else np.append(known[known <= cut], later)
            if world == 1:
                times[name][len(known) - len(later) :] = cut + 3e3 + (later - cut) * pace
        # Ten days after the cut show whether it matters; policies learn after each slot.
        end = cut + later_days * DAY_S
        case = scenario_of(from_times(times), start=START, duration_s=end - START)
        monkeypatch.setattr(RecordedCopies, "visits", [])
        monkeypatch.setattr("crawld.lab.simulate.Copies", RecordedCopies)
        run(case, Task(policy, 1.0, **options))
        before.append(sorted(visit for visit in RecordedCopies.visits if visit[1] <= cut))
        after.append(sorted(visit for visit in RecordedCopies.visits if visit[1] > cut))
    return before, after


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_does_not_see_the_future(monkeypatch, policy):
    # MERGE2 knows the first month of the period.
    cut = START + (31 if policy == "merge2" else 10) * DAY_S
    (one, other), _ = visits_in_two_worlds(monkeypatch, policy, cut, later_days=3)
    assert len(one) > 60
    assert one == other


@pytest.mark.parametrize("policy", ["index", "greedy-ncis"])
def test_with_hints_a_policy_sees_no_change_before_it_is_reported(monkeypatch, policy):
    """Nor does the fit of its model read the period that is scored."""
    hints, cut = HintOptions(60.0), START + 10 * DAY_S
    (one, other), later = visits_in_two_worlds(monkeypatch, policy, cut, hints=hints)
    assert len(one) > 60
    assert one == other
    assert later[0] != later[1]


@pytest.mark.parametrize("policy", ["index", "greedy"])
def test_a_policy_that_learns_uses_what_its_visits_find(monkeypatch, policy):
    _, (one, other) = visits_in_two_worlds(monkeypatch, policy, START + 10 * DAY_S)
    assert one != other


@pytest.mark.parametrize("policy", ["proportional", "merge", "delayed", "unpolite", "greedy"])
def test_hindsight_uses_the_period_itself(monkeypatch, policy):
    (one, other), _ = visits_in_two_worlds(monkeypatch, policy, START + 10 * DAY_S, hindsight=True)
    assert one != other


def test_delayed_idles_where_merge_visits_ahead_of_time():
    case = scenario(days=20)
    visits = {policy: run(case, Task(policy, 0.25))["visits"] for policy in ("merge", "delayed")}
    assert visits["merge"] == 0.25 * 12 * 20
    assert visits["delayed"] < visits["merge"]


def test_ideal_times_are_as_many_as_the_budget():
    case = scenario_of(from_times({"a": [START - 1e6, START + 1e5]}), start=START, duration_s=3e6)
    assert run(case, Task("unpolite", 40 * DAY_S / 3e6))["visits"] == 40


def test_pages_born_inside_the_period_count_from_birth():
    times = {"old": [START - 1e6, START + 1e5], "new": [START + 20 * DAY_S]}
    case = scenario_of(from_times(times), start=START, duration_s=40 * DAY_S)
    assert case.born_at.tolist() == [START, START + 20 * DAY_S]
    assert run(case, Task("uniform", 5.0))["freshness"] > 0.95


def test_results_do_not_depend_on_the_number_of_jobs():
    case = scenario(pages=5)
    budgets = [VisitBudget(0.2), VisitBudget(0.5)]
    one = simulate_table(case, ["uniform", "random"], budgets)
    two = simulate_table(case, ["uniform", "random"], budgets, jobs=2)
    assert one == two


def test_budgets_of_an_interval_scale_with_ten_thousand_pages():
    budgets = budgets_of([], 15.0, [0.2, 1.0])
    assert [b.visits_per_page_day for b in budgets] == pytest.approx([0.1152, 0.576])
    for wrong in (([0.1], 15.0, [1.0]), ([], None, [1.0]), ([0.0], None, [1.0])):
        with pytest.raises(OperatorError):
            budgets_of(*wrong)


def test_polls_take_their_share_of_the_slots_and_hints_are_parsed():
    case = scenario()
    feed = HintFeed(case, HintOptions.parse("lag=60,poll=600:0.1"))
    assert sum(feed.takes_slot(slot) for slot in range(1000)) == 100
    assert str(HintOptions.parse("lag=60,false=0.1")) == "lag=60,miss=0,false=0.1"
    for text in ("", "lag", "lag=x", "lag=1,miss=1", "lag=-1", "poll=5", "lag=1,other=2"):
        with pytest.raises(OperatorError):
            HintOptions.parse(text)


def test_a_scenario_without_pages_gives_a_hint():
    assert scenario(pages=1, seed=1).pages == 1
    with pytest.raises(OperatorError, match="--min-changes"):
        scenario(min_changes=10**6)


def test_the_command_writes_rows_and_a_plot(tmp_path):
    source = tmp_path / "h.csv"
    rows = [
        f"{page},{START + 3600 * k * (page + 1)}" for page in range(5) for k in range(-200, 300)
    ]
    source.write_text("page_id,changed_at\n" + "\n".join(rows + rows[:9]) + "\n")
    out, plot = tmp_path / "o.json", tmp_path / "o.svg"
    arguments = ["simulate", "--histories", str(source), "--policies", "uniform,index"]
    arguments += ["--budget", "0.5,2", "--from", "2008-01-10", "--duration", "8d"]
    result = run_lab([*arguments, "--json", str(out), "--plot", str(plot)], tmp_path)
    assert result.returncode == 0, result.stderr
    value = json.loads(out.read_text())
    assert [row["policy"] for row in value["rows"]] == ["uniform", "uniform", "index", "index"]
    assert value["pages"] == 5
    assert "visits per page and day" in plot.read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        ["--policies", "best", "--budget", "1"],
        ["--policies", "uniform"],
        ["--policies", "uniform", "--budget", "x"],
        ["--policies", "uniform", "--budget", "1", "--duration", "soon"],
        ["--policies", "uniform", "--budget", "1", "--from", "yesterday"],
    ],
)
def test_bad_arguments_exit_with_code_2(tmp_path, wrong):
    source = tmp_path / "h.csv"
    source.write_text(f"page_id,changed_at\n1,{START}\n1,{START + 9e7}\n")
    out = str(tmp_path / "o.json")
    result = CliRunner().invoke(
        app, ["simulate", "--histories", str(source), *wrong, "--json", out]
    )
    assert result.exit_code == 2
