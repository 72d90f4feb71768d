"""`crawld lab all`: every experiment is a valid command, and finished ones do not run again."""

import json

import pytest
from typer.main import get_command

from crawld.cli import lab
from crawld.lab.catalogue import EXPERIMENTS
from crawld.lab.report import rows_of

VALUES = {"histories": "h.csv", "start": "2007-01-01", "json": "r.json", "plot": "r.svg"}
CHEAP = "peak,estimate-poisson"


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_each_experiment_is_a_valid_command(experiment, quick):
    name, *arguments = experiment.command(quick=quick, values=VALUES)
    context = get_command(lab.app).commands[name].make_context(name, arguments)
    assert context.params


def test_a_quick_run_is_smaller():
    webbase = next(each for each in EXPERIMENTS if each.name == "webbase")
    assert "--pages" not in webbase.command(quick=False, values=VALUES)
    assert "50000" in webbase.command(quick=True, values=VALUES)


def test_finished_experiments_do_not_run_again(command, tmp_path):
    out = tmp_path / "out"
    arguments = ("crawld", "lab", "all", "--out", str(out), "--only", CHEAP)
    ended = command(*arguments)
    assert ended.code == 0, ended.err
    page = (out / "results.md").read_text()
    assert "crawld lab peak --hosts 500" in page
    assert "| equally-spaced |" in page
    assert "| naive |" in page

    for name in ("peak", "estimate-poisson"):
        (out / f"{name}.json").write_text(json.dumps({"rows": [{"policy": f"kept {name}"}]}))
    (out / "peak.done").unlink()
    assert command(*arguments).code == 0
    page = (out / "results.md").read_text()
    assert "| equally-spaced |" in page
    assert "kept peak" not in page
    assert json.loads((out / "estimate-poisson.json").read_text())["rows"][0] == {
        "policy": "kept estimate-poisson"
    }


def test_a_failure_names_the_experiment_and_keeps_the_finished(command, tmp_path):
    histories = tmp_path / "few.csv"
    histories.write_text("page_id,changed_at\n" + "a,1\n" * 3 + "a,99999999\n")
    out = tmp_path / "out"
    common = ("crawld", "lab", "all", "--out", str(out), "--histories", str(histories))
    assert command(*common, "--only", "estimate-poisson").code == 0
    ended = command(*common, "--only", "fit,estimate-poisson")
    assert ended.code == 2
    assert "fit failed" in ended.err
    assert "no page has 50 intervals" in ended.err
    assert (out / "estimate-poisson.done").exists()


def test_an_unknown_experiment(command, tmp_path):
    ended = command("crawld", "lab", "all", "--out", str(tmp_path), "--only", "fitt")
    assert ended.code == 2
    assert "'fitt'" in ended.err
    assert "webbase" in ended.err


def test_rows_of_a_result():
    assert rows_of([{"web": "easy", "accuracy": {"auc": 0.9}}]) == [{"web": "easy", "auc": 0.9}]
    assert rows_of({"rows": [{"a": 1}], "seed": 0}) == [{"a": 1}]
    assert rows_of({"rows": [{"a": 1}], "means": [{"a": 2}]}) == [{"a": 2}]
    assert rows_of({"hosts": 5}) == [{"hosts": 5}]
