"""`crawld bench NAME --quick` measures every metric."""

import json
import os
import signal
import subprocess

import pytest

from crawld.bench import change
from crawld.bench.crawld_process import command
from tests.peer import require_peer

FETCH = {
    "pages_per_cpu_s",
    "pages_per_s",
    "stored_pages_per_cpu_s",
    "revalidations_per_cpu_s",
    "peak_rss_mb",
    "slot_jitter_p99_ms",
    "start_1m_s",
}


@pytest.fixture
def bench(crawld):
    """Return a function that runs a benchmark by the command line."""

    def run(name):
        require_peer("nginx")
        done = crawld.crawld("bench", name, "--quick", "--json", timeout_s=300)
        assert done.returncode == 0, done.stderr
        assert list(crawld.folder.iterdir()) == []
        return json.loads(done.stdout)

    return run


def test_change():
    lines = []
    value = change.run(quick=True, progress=lines.append)
    assert value["ours"].keys() == {
        "analyse_ms",
        "analyse_with_previous_ms",
        "model_update_us",
        "refit_1m_s",
        "version_store_share",
        "version_read_ms",
    }
    assert all(figure > 0 for figure in value["ours"].values())
    assert value["ours"]["version_store_share"] < 0.1
    assert value["ratios"].keys() == {"parsel.analyse_ms"}
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_a_benchmark_and_removes_its_folder(tmp_path, number, code):
    """SIGTERM and SIGHUP do so even if Ctrl-C is ignored, as in the background of a script."""
    ignored = {} if number == signal.SIGINT else {"preexec_fn": ignore_ctrl_c}
    with subprocess.Popen(
        command("bench", "seen", "--quick"),
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        **ignored,
    ) as running:
        assert "known URLs" in running.stderr.readline()
        assert list(tmp_path.iterdir())
        running.send_signal(number)
        assert running.wait(60) == code
    assert list(tmp_path.iterdir()) == []


def ignore_ctrl_c():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_fetch(bench):
    value = bench("fetch")
    assert value["ours"].keys() >= FETCH
    assert value["ours"]["early_requests"] == 0
    for peer in ("scrapy", "scrapy_tuned"):
        assert value["baselines"][peer].keys() == FETCH - {"slot_jitter_p99_ms", "start_1m_s"}
        assert value["ratios"].keys() >= {f"{peer}.{name}" for name in value["baselines"][peer]}


def test_serve(bench):
    value = bench("serve")
    ours = {"views_per_cpu_s", "views_per_s", "growth_mb", "view_p50_ms", "view_p99_ms"}
    assert value["ours"].keys() == ours
    assert value["baselines"].keys() == {"nginx", "starlette"}
    assert "starlette.views_per_cpu_s" in value["ratios"]
    assert value["ours"]["growth_mb"] < 32.0


def test_control(bench):
    value = bench("control")
    assert value["ours"].keys() >= {
        *("overview_ms", "page_view_ms", "status_ms", "slot_shift_ms", "feed_lag_s"),
    }
    assert value["ours"]["live_clients"] == 20
    assert value["ours"]["failed_polls"] == 0
    assert value["ratios"].keys() == {
        f"fastapi.{name}" for name in ("overview_ms", "page_view_ms", "status_ms")
    }


def test_scale(bench):
    value = bench("scale")
    ours, smallest = value["ours"], value["baselines"]["smallest"]
    for suffix in ("500", "1k"):
        assert ours[f"file_bytes_per_page_{suffix}"] > 0
        assert ours[f"revisit_cpu_ms_{suffix}"] > 0
        assert f"allocate_job_cpu_s_{suffix}" in ours
    assert smallest.keys() == {name for name in ours if name.endswith("_1k")}
    assert smallest["revisit_cpu_ms_1k"] == ours["revisit_cpu_ms_500"]


def test_plugins(bench):
    value = bench("plugins")
    assert value["ours"].keys() == value["baselines"]["none"].keys() == {"page_cpu_ms"}
    assert value["ratios"].keys() == {"none.page_cpu_ms"}
