"""A failing plan becomes smaller, and its file repeats it."""

from crawld.daemon.frontier import host as host_module
from crawld.universe.draw import draw_plan
from crawld.universe.run_universe import run_universe
from crawld.universe.scenario import read_scenario, scenario_text
from crawld.universe.shrink import shrink


def test_a_failure_is_shrunk_and_repeated_from_its_file(tmp_path, monkeypatch):
    right, path = host_module.effective_delay_s, tmp_path / "small.json"
    monkeypatch.setattr(host_module, "effective_delay_s", lambda *facts: 0.5 * right(*facts))
    plan = draw_plan(4, 0.004)
    small = shrink(plan, "host_delay", max_cpu_s=4.0)
    assert small.days <= plan.days / 2
    assert len(small.hosts) < len(plan.hosts)
    path.write_text(scenario_text(small))
    assert read_scenario(path) == small
    (tmp_path / "run").mkdir()
    violations = run_universe(read_scenario(path), tmp_path / "run").auditor.found.violations
    assert "host_delay" in {each.invariant for each in violations}


def test_every_drawn_plan_survives_its_file(tmp_path):
    path = tmp_path / "plan.json"
    for seed in range(50):
        plan = draw_plan(seed, 0.1)
        path.write_text(scenario_text(plan))
        assert read_scenario(path) == plan
