"""The pooled scale model finds scale and shape, and predicts real pages better than Poisson."""

from pathlib import Path

import numpy as np
import pytest

from crawld.core.change.model import PageModel
from crawld.core.change.record import records_of
from crawld.core.change.refit import blank_records, from_histories, refit
from crawld.core.change.scale import ScaleModel, fit_scale
from crawld.lab.histories import from_times, read_histories

DAY_S = 86_400.0
DATA = Path(__file__).parents[3] / "data" / "histories"
START_2007 = 1_167_609_600.0


def simulated_histories(kind, *, days=3000, pages=40, seed=2):
    rng = np.random.default_rng(seed)
    times = {}
    for page in range(pages):
        mean_s = float(np.exp(rng.uniform(np.log(1.0), np.log(40.0)))) * DAY_S
        gaps = rng.exponential(mean_s, 6000)
        if kind == "bursty":
            gaps *= np.where(rng.random(6000) < 0.8, 0.02, 4.9)
        changed_at = np.cumsum(gaps)
        times[str(page)] = changed_at[changed_at < days * DAY_S]
    return from_times(times), days * DAY_S


def log_score(changed, unchanged_probability):
    clipped = np.clip(unchanged_probability, 1e-4, 1 - 1e-4)
    return float(-np.mean(np.where(changed, np.log(1 - clipped), np.log(clipped))))


def scores(histories, at, horizon_s):
    """Return log scores (scale model, Poisson model) of "unchanged until the horizon"."""
    past = histories.before(at)
    records = from_histories(past.changed_at, past.offsets, at=at)
    seen = records["visits"] > 0
    fitted = refit(records)
    changed = (histories.changes_in(at, at + horizon_s) > 0)[seen]
    age_aware = fit_scale(past.changed_at, past.offsets, at=at).unchanged(records, at + horizon_s)
    poisson = np.exp(-fitted.rate_per_day * horizon_s / DAY_S)
    return log_score(changed, age_aware[seen]), log_score(changed, poisson[seen])


def test_the_mean_interval_of_poisson_pages_is_recovered():
    histories, at = simulated_histories("poisson")
    model = fit_scale(histories.changed_at, histories.offsets, at=at)
    records = from_histories(histories.changed_at, histories.offsets, at=at)
    true_s = at / np.maximum(histories.counts, 1)
    assert np.median(model.mean_s(records) / true_s) == pytest.approx(1.0, abs=0.25)


def test_bursts_are_followed_by_silence():
    histories, at = simulated_histories("bursty")
    model = fit_scale(histories.changed_at, histories.offsets, at=at)
    just_changed = float(model.shape.residual_mean(0.0))
    long_silent = float(model.shape.residual_mean(float(model.shape.mean())))
    assert long_silent > 1.5 * just_changed


@pytest.mark.parametrize("horizon_days", [0.25, 1.0, 7.0])
def test_real_articles_are_predicted_better_than_by_a_constant_rate(horizon_days):
    wiki = read_histories(DATA / "wikipedia_extract.csv.gz")
    pairs = [
        scores(wiki, START_2007 + days * DAY_S, horizon_days * DAY_S) for days in range(0, 364, 28)
    ]
    age_aware, poisson = np.mean(pairs, axis=0)
    assert age_aware < poisson


def test_without_history_there_is_a_default():
    model = fit_scale(np.empty(0), np.zeros(1, np.int64), at=0.0)
    blank = records_of([PageModel().to_bytes()])
    assert 5 * DAY_S < float(model.mean_s(blank)[0]) < 1000 * DAY_S
    assert len(model.scale_s(blank_records(3))) == 3


def test_the_model_survives_storage():
    histories, at = simulated_histories("poisson", pages=3)
    model = fit_scale(histories.changed_at, histories.offsets, at=at)
    records = from_histories(histories.changed_at, histories.offsets, at=at)
    again = ScaleModel.from_dict(model.as_dict())
    assert (again.scale_s(records) == model.scale_s(records)).all()
    assert model.unchanged(records, at) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="fit it again"):
        ScaleModel.from_dict({"weights": [1.0], "mass": [1.0]})


def test_one_silence_longer_than_all_known_intervals_is_not_taken_for_ever():
    """A lively page that falls silent is no evidence that intervals of 4,000 scales exist."""
    histories, at = simulated_histories("poisson")
    times = {str(page): histories.page(page) for page in range(len(histories))}
    lively = np.arange(0.0, 60.0, 0.05) * DAY_S
    times["lively"] = at - 160 * DAY_S + lively
    silent = from_times(times)
    shape = fit_scale(silent.changed_at, silent.offsets, at=at).shape
    assert float(shape.second_moment()) < 6.0 * float(shape.mean()) ** 2
    assert float(shape.residual_mean(100.0)) < 500.0
