"""The self-exciting model: its closed forms, its index, and its fit."""

from itertools import pairwise

import numpy as np
import pytest

from crawld.core.change.hawkes import (
    BURST_S,
    KERNELS_S,
    SHARED,
    Hawkes,
    excitement_of,
    excitements,
    excitements_of,
    fit_hawkes,
    unchanged_probability,
)
from crawld.core.change.model import PageModel
from crawld.core.change.record import records_of

DAY = 86_400.0
NOW = 1.7e9
TRUE = Hawkes(2e-7, (0.3, 0.15, 0.1, 0.2))


def histories(model, pages, days, seed):
    """Return change times and offsets of simulated pages, each with a first change at 0.

    Source: the branching form of the process; Hawkes & Oakes, J. Appl. Prob. 1974.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(pages):
        waiting = [0.0, *rng.uniform(0.0, days * DAY, rng.poisson(model.base * days * DAY))]
        times = list(waiting)
        while waiting:
            at = waiting.pop()
            for weight, tau_s in zip(model.weights, KERNELS_S, strict=True):
                more = at + rng.exponential(tau_s, rng.poisson(weight))
                more = more[more < days * DAY].tolist()
                times += more
                waiting += more
        found.append(np.unique(times))
    return np.concatenate(found), np.cumsum([0, *map(len, found)])


def test_each_kernel_adds_its_part_to_the_hazard():
    alone = [np.eye(4)[:, [k]] for k in range(4)]
    for k, tau_s in enumerate(KERNELS_S):
        expected = TRUE.base + TRUE.weights[k] / tau_s * np.exp(-1.0)
        assert TRUE.hazard(alone[k], np.array([tau_s])) == pytest.approx([expected])


def test_survival_is_the_exponential_of_the_integrated_hazard():
    excitement, step = np.array([[2.0], [3.0], [5.0], [9.0]]), 10.0
    ages = np.arange(0.0, 20 * DAY, step) + step / 2
    grown = TRUE.hazard(np.repeat(excitement, len(ages), axis=1), ages).sum() * step
    assert TRUE.survival(excitement, np.array([20 * DAY])) == pytest.approx(
        [np.exp(-grown)], rel=1e-4
    )


def test_where_the_hazard_falls_the_index_is_its_inverse():
    """W(d) by its definition, on a grid; the mean time to the next change is far larger."""
    ages = np.concatenate([[0.0], np.geomspace(1.0, 2_000 * DAY, 40_000)])
    excitement = np.repeat(np.array([[1.5], [2.0], [4.0], [10.0]]), len(ages), axis=1)
    alive = TRUE.survival(excitement, ages)
    lived = np.concatenate([[0.0], np.cumsum(np.diff(ages) * 0.5 * (alive[1:] + alive[:-1]))])
    for start in (0, 5_000, 15_000, 25_000):
        later = slice(start + 1, None)
        index = ((lived[later] - lived[start]) / (alive[start] - alive[later])).min()
        assert index == pytest.approx(1.0 / TRUE.hazard(excitement, ages)[start], rel=0.01)
    assert (lived[-1] - lived[0]) / alive[0] > 100.0 / TRUE.hazard(excitement, ages)[0]


def test_a_fit_finds_the_parameters_of_long_histories():
    times, offsets = histories(TRUE, 700, 800, seed=1)
    fitted = fit_hawkes(times, offsets, at=800 * DAY)
    assert fitted.base == pytest.approx(TRUE.base, rel=0.25)
    assert fitted.weights == pytest.approx(TRUE.weights, abs=0.04)


def test_a_fit_to_few_changes_is_nearly_the_shared_model():
    times, offsets = histories(TRUE, 3, 100, seed=2)
    fitted = fit_hawkes(times, offsets, at=100 * DAY)
    assert fitted.weights == pytest.approx(SHARED.weights, abs=0.02)
    unfitted = fit_hawkes(np.zeros(0), np.zeros(1, np.int64), at=0.0)
    assert unfitted.base == pytest.approx(SHARED.base)
    assert unfitted.weights == pytest.approx(SHARED.weights)


def test_a_fit_gives_its_own_past_a_higher_likelihood_than_the_shared_model():
    calm = Hawkes(1e-6, (0.02, 0.05, 0.02, 0.3))
    times, offsets = histories(calm, 200, 600, seed=3)
    fitted = fit_hawkes(times, offsets, at=600 * DAY)
    likelihoods = []
    for model in (SHARED, fitted):
        total = 0.0
        for first, end in pairwise(offsets.tolist()):
            own = times[first:end]
            gaps = np.append(np.diff(own), 600 * DAY - own[-1])
            starts = np.arange(len(own)) == 0
            state = excitements(np.append(0.0, gaps[:-1]), starts, KERNELS_S).T
            total += np.log(model.hazard(state, gaps)[:-1]).sum()
            total -= model.cumulative_hazard(state, gaps).sum()
        likelihoods.append(total)
    assert likelihoods[1] > likelihoods[0] + 100.0


def test_the_state_of_a_stored_model_is_that_of_its_changes():
    rng = np.random.default_rng(4)
    times = (
        NOW - 90 * DAY + np.cumsum(rng.choice([200.0, 3 * 3600.0, 4 * DAY], 60, p=[0.2, 0.4, 0.4]))
    )
    model = PageModel()
    model.observe_changes(times[:7].tolist(), float(times[6]) + 60.0)
    model.observe_changes(times.tolist(), float(times[-1]) + DAY)
    gaps = np.diff(times, prepend=times[0])
    exact = excitements(gaps, np.arange(len(times)) == 0, KERNELS_S)[-1]
    stored = excitement_of(PageModel.from_bytes(model.to_bytes()))
    assert stored[2:] == pytest.approx(exact[2:], rel=1e-4)
    assert stored[:2] == pytest.approx(exact[:2], rel=0.15)
    assert excitements_of(records_of([model.to_bytes()]))[0] == pytest.approx(stored, rel=1e-6)


def test_a_page_without_known_changes_has_no_excitement():
    assert excitement_of(PageModel()) == (0.0,) * 4
    times = [NOW, NOW + BURST_S]
    model = PageModel()
    model.observe_changes(times, NOW + DAY)
    assert excitement_of(model)[0] == pytest.approx(1.0 + np.exp(-1.0))


def test_a_page_is_unchanged_since_its_visit_with_the_survival_between_both_ages():
    model = PageModel()
    model.observe_changes([NOW, NOW + 3 * DAY, NOW + 3 * DAY + 900.0], NOW + 4 * DAY)
    excitement = np.array(excitement_of(model))[:, None]
    seen_s = DAY - 900.0
    for later_s in (0.0, 600.0, DAY, 90 * DAY):
        ages = np.array([seen_s + later_s]), np.array([seen_s])
        now, then = (TRUE.survival(excitement, age)[0] for age in ages)
        found = unchanged_probability(model, TRUE, NOW + 4 * DAY + later_s)
        assert found == pytest.approx(now / then)
    assert unchanged_probability(model, TRUE, NOW) == 1.0


def test_a_stored_model_of_another_version_is_refused():
    assert Hawkes.from_dict(TRUE.as_dict()) == TRUE
    with pytest.raises(ValueError, match="fit it again"):
        Hawkes.from_dict({"base": [1e-7], "excitation": [0.1, 0.2]})
