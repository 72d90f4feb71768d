"""`crawld bench fetch --quick`, by the command line."""

import json
import subprocess
import sys

import pytest

from tests.peer import require_peer

WANTED = {
    "pages_per_cpu_s",
    "pages_per_s",
    "revalidations_per_cpu_s",
    "peak_rss_mb",
    "slot_jitter_p99_ms",
    "start_1m_s",
}


@pytest.mark.e2e
def test_quick_run_measures_every_metric_of_crawld_and_its_peers(tmp_path):
    require_peer("nginx")
    done = subprocess.run(
        [sys.executable, "-m", "crawld.cli.main", "bench", "fetch", "--quick", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert value["ours"].keys() >= WANTED
    assert value["ours"]["early_requests"] == 0
    for peer in ("scrapy", "scrapy_tuned"):
        assert value["baselines"][peer].keys() == WANTED - {"slot_jitter_p99_ms", "start_1m_s"}
        assert value["ratios"].keys() >= {f"{peer}.{name}" for name in value["baselines"][peer]}
    assert list(tmp_path.iterdir()) == []
