"""Peak request rates of three placements of requests."""

import numpy as np
import pytest

from crawld.lab.burstiness import mean_peaks, peak_rows


def test_equally_spaced_requests_stay_below_the_bound():
    rates = 1.0 / (30.0 * np.random.default_rng(1).uniform(0.5, 1.5, 400))
    rows = {row["policy"]: row for row in peak_rows(rates, horizon_s=1800.0)}
    even = rows["equally-spaced"]
    assert even["measured_probability"] <= even["bound_probability"] * 1.0 + 1 / 1800
    assert even["peak_to_mean"] > 1.0
    assert even["mean_per_window"] == pytest.approx(rates.sum(), rel=0.02)


def test_the_placements_of_many_hosts_have_equal_peaks_on_average():
    # No order of the three is claimed: over the seeds the differences are chance.
    runs = []
    for seed in range(8):
        rates = 1.0 / (30.0 * np.random.default_rng(seed).uniform(0.5, 1.5, 400))
        runs.append(peak_rows(rates, horizon_s=1800.0, seed=seed))
    rows = mean_peaks(runs)
    assert [row["policy"] for row in rows] == ["equally-spaced", "delayed", "unpolite"]
    assert all(row["runs"] == 8 and 0.0 < row["standard_error"] < 0.05 for row in rows)
    peaks = [row["peak_to_mean"] for row in rows]
    assert max(peaks) - min(peaks) < 0.15
    assert rows[0]["peak_to_mean"] == pytest.approx(
        np.mean([run[0]["peak_to_mean"] for run in runs])
    )


def test_few_regular_hosts_have_a_lower_peak_than_independent_requests():
    # Eight hosts with a request every second: the total is even, independent requests are not.
    rows = peak_rows(np.ones(8), horizon_s=1800.0)
    peaks = {row["policy"]: row["peak_per_window"] for row in rows}
    assert peaks["equally-spaced"] == 8
    assert peaks["unpolite"] > 12
