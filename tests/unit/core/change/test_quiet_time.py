"""Quiet time at a random moment: limits, Poisson pages, and simulated pages of bursts."""

from itertools import pairwise

import numpy as np
import pytest

from crawld.core.change.hawkes import KERNELS_S, POISSON, Hawkes
from crawld.core.change.quiet_time import MOST_CAUSED, caused_changes, window_exposure_s

DAY = 86_400.0
BURSTY = Hawkes(2e-7, (0.35, 0.15, 0.15, 0.3))
WINDOWS_S = (60.0, 1800.0, 6 * 3600.0, DAY, 5 * DAY, 30 * DAY)


def changes_of_one_pace(model, first_per_s, length_s, seed):
    """Return the changes of a page whose first changes come at a constant rate."""
    rng = np.random.default_rng(seed)
    generation = rng.uniform(0.0, length_s, rng.poisson(first_per_s * length_s))
    times = [generation]
    while len(generation):
        caused = [
            np.repeat(generation, rng.poisson(weight, len(generation)))
            for weight in model.weights[:-1]
        ]
        generation = np.concatenate(
            [
                at + rng.exponential(tau_s, len(at))
                for at, tau_s in zip(caused, KERNELS_S, strict=False)
            ]
        )
        times.append(generation)
    return np.sort(np.concatenate(times))


def test_the_share_of_quiet_windows_is_that_of_simulated_bursts():
    first_per_s = 0.1 / DAY
    changes = changes_of_one_pace(BURSTY, first_per_s, 2_000_000 * DAY, seed=1)
    starts = np.linspace(100 * DAY, 1_999_000 * DAY, 400_000)
    following = changes[np.searchsorted(changes, starts)] - starts
    quiet = np.exp(-first_per_s * window_exposure_s(BURSTY, WINDOWS_S))
    for window_s, expected in zip(WINDOWS_S, quiet.tolist(), strict=True):
        assert (following > window_s).mean() == pytest.approx(expected, abs=0.004)
    assert len(changes) / (2_000_000 * DAY) == pytest.approx(
        first_per_s / (1.0 - caused_changes(BURSTY)), rel=0.02
    )


def test_poisson_pages_have_no_exposure_beyond_the_window():
    assert window_exposure_s(POISSON, WINDOWS_S) == pytest.approx(WINDOWS_S)
    assert caused_changes(POISSON) == 0.0


def test_the_exposure_is_concave_between_all_changes_and_first_changes():
    windows = tuple(np.geomspace(1.0, 3_000 * DAY, 60).tolist())
    exposure = window_exposure_s(BURSTY, windows)
    assert exposure[0] == pytest.approx(1.0 / (1.0 - 0.65), rel=2e-3)
    slopes = np.diff(exposure, prepend=0.0) / np.diff(windows, prepend=0.0)
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(slopes))
    assert slopes[-1] == pytest.approx(1.0, abs=1e-3)


def test_a_model_whose_changes_cause_ever_more_counts_as_one_at_the_limit():
    runaway = Hawkes(1e-7, (0.6, 0.4, 0.4, 0.3))
    assert caused_changes(runaway) == MOST_CAUSED
    most = Hawkes(1e-7, (*(w * MOST_CAUSED / 1.4 for w in runaway.weights[:-1]), 0.3))
    assert window_exposure_s(runaway, WINDOWS_S) == pytest.approx(
        window_exposure_s(most, WINDOWS_S)
    )
