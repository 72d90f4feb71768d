"""Plug-ins in the laboratory: the object of the daemon, in this process and in others."""

import json

import pytest
from typer.testing import CliRunner

from crawld.cli.lab import app

PLUGIN = """
from crawld.plugins import *

CRAWLD_API = 1


class Newest(OrderedPolicy):
    def key_after(self, page, now, observation):
        assert observation.model.visits > 0
        return now - 1e5 * observation.changed


class Broken(OrderedPolicy):
    def select(self, now):
        return 12345


@hookimpl
def policies():
    return {"newest": Newest, "copy": OrderedPolicy, "broken": Broken}


@hookimpl
def estimators():
    return {"model": lambda model: model.rate, "slow": lambda model: 1e-9}
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text(PLUGIN)
    path = tmp_path / "crawld.toml"
    path.write_text('[daemon]\nplugins_dir = "plugins"\n[[plugin]]\nname = "mine"\n')
    return path


@pytest.fixture
def simulate(tmp_path, config):
    """Return a function that simulates policies on the changes of ten pages."""
    history = tmp_path / "changes.csv"
    lines = [f"{p},{1.2e9 + 40_000 * (p + 1) * n}" for p in range(10) for n in range(100)]
    history.write_text("page_id,changed_at\n" + "\n".join(lines) + "\n")

    def run(policies, *more, code=0, with_config=True):
        out = tmp_path / "out.json"
        words = ["simulate", "--histories", history, "--policies", policies, "--budget", "1"]
        words += ["--from", "2008-01-20", "--duration", "20d", "--json", out, *more]
        words += ["-c", config] if with_config else []
        result = CliRunner().invoke(app, list(map(str, words)))
        assert result.exit_code == code, result.output
        if code:
            return result.output
        return {row["policy"]: row["freshness"] for row in json.loads(out.read_text())["rows"]}

    return run


def test_a_policy_of_a_plugin_is_simulated(simulate):
    found = simulate("uniform,mine:copy,mine:newest")
    assert found["mine:copy"] == found["uniform"]
    assert 0.0 < found["mine:newest"] != found["uniform"]


def test_other_processes_load_it_too(simulate):
    assert simulate("mine:copy,mine:newest", "--jobs", "2") == simulate("mine:copy,mine:newest")


def test_a_failing_one_has_no_result(simulate):
    assert 'plug-in "mine" failed' in simulate("mine:broken", code=2)


def test_an_unknown_one_is_refused_with_the_fix(simulate):
    assert "mine:newest" in simulate("mine:oldest", code=2)
    assert "-c FILE" in simulate("mine:newest", code=2, with_config=False)


def test_an_estimator_is_compared(config):
    words = [
        "estimate",
        "poisson",
        "--pages",
        "20",
        "--duration",
        "60d",
        "-c",
        str(config),
        "--json",
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    rows = {row["estimator"]: row for row in json.loads(result.output)["rows"]}
    assert rows["mine:slow"]["bias_per_day"] < -0.9 * rows["mine:slow"]["mean_true_per_day"]
    assert rows["mine:model"]["log_rmse"] < rows["mine:slow"]["log_rmse"]
