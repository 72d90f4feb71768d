"""Peak request rates of three placements of requests."""

import numpy as np
import pytest

from crawld.lab.burstiness import peak_rows


def test_equally_spaced_requests_stay_below_the_bound():
    rates = 1.0 / (30.0 * np.random.default_rng(1).uniform(0.5, 1.5, 400))
    rows = {row["policy"]: row for row in peak_rows(rates, horizon_s=1800.0)}
    even = rows["equally-spaced"]
    assert even["measured_probability"] <= even["bound_probability"] * 1.0 + 1 / 1800
    assert rows["unpolite"]["peak_to_mean"] >= even["peak_to_mean"] > 1.0
    assert even["mean_per_window"] == pytest.approx(rates.sum(), rel=0.02)
