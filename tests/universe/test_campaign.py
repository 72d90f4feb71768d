"""A campaign goes on where it was interrupted, with the results of the same universes only."""

import json

import pytest

from crawld.universe.draw import campaign_days, draw_plan
from crawld.universe.scenario import plan_sha256
from tests.bugs import campaign


def row(seed, **more):
    plan = plan_sha256(draw_plan(seed, campaign_days(seed)))
    days = campaign_days(seed)
    return {"seed": seed, "days": days, "plan_sha256": plan, "visits": 3, "violations": [], **more}


def test_results_of_the_same_plan_are_kept(tmp_path, monkeypatch):
    run, done = [], tmp_path / "done.jsonl"
    lines = [json.dumps(row(1)), json.dumps(row(2, plan_sha256="another"))]
    done.write_text("\n".join(lines) + '\n{"seed": 3, "da')
    monkeypatch.setattr(campaign, "run_seed", lambda seed: run.append(seed) or row(seed))
    assert campaign.main("1", "3", str(done)) == 0
    assert run == [2, 3]
    assert campaign.main("1", "3", str(done)) == 0
    assert run == [2, 3]


def test_a_broken_promise_is_told(tmp_path, monkeypatch, capsys):
    found = [{"invariant": "file", "at": 7.0, "what": "torn"}]
    monkeypatch.setattr(campaign, "run_seed", lambda seed: row(seed, violations=found))
    assert campaign.main("5", "5") == 1
    assert "--seed 5 " in capsys.readouterr().out


def test_seeds_are_numbers(capsys):
    assert campaign.main("x", "3") == 2
    assert "seeds are numbers" in capsys.readouterr().out


@pytest.mark.parametrize(("covered", "short"), [(9, True), (10, False)])
def test_intervals_that_hold_the_truth_too_seldom_are_told(covered, short, monkeypatch, capsys):
    def of_seed(seed):
        held = covered if seed % 2 else 10
        return row(
            seed, freshness={"claims": 10, "covered": held - seed % 3 // 2, "mean_width": 0.2}
        )

    monkeypatch.setattr(campaign, "run_seed", of_seed)
    assert campaign.main("1", "60") == short
    assert "intervals held the truth, mean width 0.200" in capsys.readouterr().out
