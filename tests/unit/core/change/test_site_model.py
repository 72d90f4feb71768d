"""Fits of a site to what the visits of its pages have found."""

import numpy as np
import pytest

from crawld.core.change.refit import from_histories
from crawld.core.change.site_model import MIN_INTERVALS, LastFit, fit_sample, fit_site

DAY_S = 86_400.0
NOW = 1000 * DAY_S


def visited_pages(seed=3, pages=40):
    """Return Poisson histories known until a visit each, weeks ago, and the times of the visits."""
    rng = np.random.default_rng(seed)
    histories, visited_at = [], []
    for _ in range(pages):
        visited = NOW - rng.uniform(10, 40) * DAY_S
        changed = visited - 30 * DAY_S + np.cumsum(rng.exponential(DAY_S, 90))
        histories.append(changed[changed < visited].tolist())
        visited_at.append(visited)
    return histories, visited_at


def mean_day(model, histories, visited_at):
    at = max(visited_at)
    flat = np.concatenate(histories)
    offsets = np.cumsum([0, *map(len, histories)])
    return float(np.median(model.scale.mean_s(from_histories(flat, offsets, at=at)))) / DAY_S


def test_pages_are_known_until_their_last_visit_only():
    histories, visited_at = visited_pages()
    model = fit_sample(histories, visited_at)
    assert mean_day(model, histories, visited_at) == pytest.approx(1.0, rel=0.1)
    # Counted until now, each page would have been unchanged for weeks.
    late = fit_sample(histories, [NOW] * len(histories))
    assert mean_day(late, histories, visited_at) > 1.5


def test_a_time_for_all_pages_is_that_of_each():
    histories, _ = visited_pages(pages=8)
    flat, offsets = np.concatenate(histories), np.cumsum([0, *map(len, histories)])
    one = fit_site(flat, offsets, at=NOW).as_dict()
    assert one == fit_site(flat, offsets, at=np.full(8, NOW)).as_dict()
    assert one == fit_sample(histories, [NOW] * 8).as_dict()


def test_the_order_of_a_history_and_later_changes_make_no_difference():
    histories, visited_at = visited_pages(pages=8)
    expected = fit_sample(histories, visited_at).as_dict()
    shuffled = [[*reversed(times), at] for times, at in zip(histories, visited_at, strict=True)]
    after = [[*times, at + DAY_S] for times, at in zip(histories, visited_at, strict=True)]
    assert fit_sample(shuffled, visited_at).as_dict() != expected
    assert fit_sample(shuffled, visited_at).as_dict() == fit_sample(after, visited_at).as_dict()


def test_few_intervals_give_no_model():
    times = [DAY_S * day for day in range(MIN_INTERVALS + 1)]
    assert fit_sample([times[:-1], [], [0.0]], [NOW] * 3) is None
    assert fit_sample([times, [], [0.0]], [NOW] * 3) is not None
    assert fit_sample([], []) is None


def test_a_scale_that_is_kept_stays_and_the_self_exciting_model_is_that_of_a_whole_fit():
    histories, visited_at = visited_pages(pages=8)
    kept = fit_sample(*visited_pages(seed=5, pages=8)).scale
    model = fit_sample(histories, visited_at, scale=kept)
    assert model.scale is kept
    assert model.hawkes == fit_sample(histories, visited_at).hawkes


def test_the_self_exciting_model_is_due_sooner_than_both():
    last = LastFit().followed_by(1000, NOW, of_both=True)
    assert not last.is_hawkes_due(1050)
    assert last.is_hawkes_due(1051)
    assert not last.is_due(1250, NOW)
    assert last.is_due(1251, NOW)
    alone = last.followed_by(1051, NOW + DAY_S, of_both=False)
    assert not alone.is_hawkes_due(1100)
    assert alone.is_due(1251, NOW)
    assert alone.is_due(1100, NOW + 181 * DAY_S)
    assert not alone.is_due(1100, NOW + 180 * DAY_S)
