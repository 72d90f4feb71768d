"""What a long run says of its samples."""

import pytest

from crawld.bench import soak
from crawld.bench.soak import SoakLoad, SoakSample


def sample(at_h, **figures):
    return SoakSample(
        **{
            "at_h": at_h,
            "rss_mb": 200.0,
            "open_files": 50,
            "file_mb": 10.0,
            "wal_mb": 4.0,
            "lateness_p99_ms": 2.0,
            "visits": int(at_h * 1_000),
            "visits_per_s": 100.0,
            **figures,
        }
    )


def run_of(rss_mb, hours=2.0, count=120, **figures):
    times = [hours * k / count for k in range(1, count + 1)]
    samples = [sample(at_h, rss_mb=rss_mb(at_h), **figures) for at_h in times]
    return soak._result(SoakLoad(hours=hours), samples, exit_code=0, early_requests=0)


def test_the_slope_of_a_line_is_found_without_error():
    slope, error = soak.slope_per_h([0.0, 1.0, 2.0, 3.0], [5.0, 7.0, 9.0, 11.0])
    assert slope == pytest.approx(2.0)
    assert error == pytest.approx(0.0, abs=1e-9)


def test_two_samples_have_no_slope():
    assert soak.slope_per_h([0.0, 1.0], [1.0, 2.0]) == (0.0, float("inf"))


def test_growth_while_settling_is_no_fault():
    result = run_of(lambda at_h: min(200.0, 100.0 + 300.0 * at_h))  # full after 20 minutes
    assert result["slopes_per_h"]["rss_mb"] == pytest.approx(0.0, abs=0.01)
    assert result["faults"] == []


def test_memory_that_grows_is_a_fault_in_a_run_that_is_long_enough():
    assert run_of(lambda at_h: 200.0 + 1.5 * at_h)["faults"] == ["memory grows by 1.50 MB an hour"]
    assert run_of(lambda at_h: 200.0 + 1.5 * at_h, hours=1.0)["faults"] == []


def test_a_log_without_bound_is_a_fault():
    assert run_of(lambda at_h: 200.0, wal_mb=300.0)["faults"] == ["the log grew to 300 MB"]


def test_early_requests_and_a_failed_daemon_are_faults():
    found = soak._result(SoakLoad(hours=1.0), [], exit_code=-9, early_requests=2)
    assert found["faults"] == [
        "2 requests came sooner than the delay",
        "the daemon ended with -9",
    ]


def test_the_plot_has_a_panel_for_each_figure(tmp_path):
    result = run_of(lambda at_h: 200.0 + at_h)
    soak.plot(result, tmp_path / "soak.svg")
    drawn = (tmp_path / "soak.svg").read_text()
    assert all(label in drawn for label in soak.FIGURES.values())
