"""`crawld bench serve --quick`, by the command line."""

import json

from tests.peer import require_peer


def test_quick_run_measures_every_metric(crawld):
    require_peer("nginx")
    done = crawld.crawld("bench", "serve", "--quick", "--json", timeout_s=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    ours = {"views_per_cpu_s", "views_per_s", "growth_mb", "view_p50_ms", "view_p99_ms"}
    assert result["ours"].keys() == ours
    assert result["baselines"].keys() == {"nginx", "starlette"}
    assert "starlette.views_per_cpu_s" in result["ratios"]
    assert result["ours"]["growth_mb"] < 32.0
