"""Models in bulk equal the models of single pages."""

import numpy as np
import pytest

from crawld.core.change.history import sample_visits
from crawld.core.change.model import PageModel
from crawld.core.change.prior import Gamma
from crawld.core.change.rate import posterior
from crawld.core.change.record import records_of
from crawld.core.change.refit import blank_records, fit_renewals, from_histories, refit

DAY_S = 86_400.0
BORN = 1_600_000_000.0
AT = BORN + 500 * DAY_S


def histories(seed=3, pages=40):
    rng = np.random.default_rng(seed)
    times = [
        BORN + np.cumsum(rng.exponential(mean_days * DAY_S, 4000))
        for mean_days in np.exp(rng.uniform(np.log(0.3), np.log(300.0), pages))
    ]
    times = [changed_at[changed_at < AT] for changed_at in times]
    return times, np.concatenate(([0], np.cumsum([len(t) for t in times])))


def censored_models(pages=30):
    rng = np.random.default_rng(11)
    models = []
    for _ in range(pages):
        model = PageModel(first_at=BORN, last_visit_at=BORN, last_change_at=BORN)
        changed_at = BORN + np.cumsum(rng.exponential(rng.uniform(0.5, 40) * DAY_S, 500))
        at = BORN + np.cumsum(rng.uniform(0.5, 3.0, 60)) * DAY_S
        for observation in sample_visits(changed_at, at).observations(with_last_change=False):
            model.update(observation)
        models.append(model)
    return models


def test_histories_in_bulk_give_the_same_models_as_one_by_one():
    times, offsets = histories()
    records = from_histories(np.concatenate(times), offsets, at=AT)
    for record, changed_at in zip(records, times, strict=True):
        model = PageModel()
        if len(changed_at):
            model.observe_changes(changed_at.tolist(), AT)
        alone = records_of([model.to_bytes()])[0]
        for name in records.dtype.names:
            assert np.asarray(record[name], float) == pytest.approx(
                np.asarray(alone[name], float), rel=1e-5, abs=1e-6
            ), name


def test_every_rate_is_the_posterior_of_its_page_under_its_host():
    models = censored_models()
    groups = np.arange(len(models)) % 3
    fitted = refit(records_of([model.to_bytes() for model in models]), groups=groups)
    for page, model in enumerate(models):
        prior = fitted.priors[int(groups[page])]
        wanted = posterior(prior, model.evidence).mean * DAY_S
        assert fitted.rate_per_day[page] == pytest.approx(wanted, rel=1e-5)
        stored = PageModel.from_bytes(fitted.records[page].tobytes())
        assert stored.change_rate_per_day == pytest.approx(wanted, rel=1e-4)
        assert stored.prior.shape == pytest.approx(prior.shape, rel=1e-5)


def test_the_given_records_are_unchanged():
    records = records_of([model.to_bytes() for model in censored_models(5)])
    before = records.tobytes()
    refit(records)
    assert records.tobytes() == before


def test_a_page_seen_once_leans_on_its_host():
    times, offsets = histories(pages=60)
    fast = from_histories(np.concatenate(times), offsets, at=AT)
    records = np.concatenate((fast, blank_records(2)))
    groups = np.concatenate((np.zeros(60, np.int64), [0, 1]))
    fitted = refit(records, groups=groups)
    host = fitted.rate_per_day[:60].mean()
    assert fitted.rate_per_day[60] == pytest.approx(host, rel=0.5)
    assert fitted.priors[0] != Gamma(0.5, 0.5 * 30 * DAY_S)


@pytest.mark.parametrize("pages", [0, 1])
def test_no_pages_and_a_blank_page_are_refitted(pages):
    fitted = refit(blank_records(pages))
    assert len(fitted.records) == pages
    assert np.isfinite(fitted.rate_per_day).all()


def test_pages_without_any_change_are_built():
    records = from_histories(np.empty(0), np.zeros(4, np.int64), at=AT)
    assert records["visits"].tolist() == [0, 0, 0]
    assert PageModel.from_bytes(records[0].tobytes()).to_bytes() == PageModel().to_bytes()


def test_intervals_of_many_pages_equal_those_of_each():
    times, _ = histories()
    models = []
    for changed_at in times:
        models.append(PageModel())
        models[-1].observe_changes(changed_at.tolist(), AT)
    stack = fit_renewals(records_of(model.to_bytes() for model in models))
    alone = np.concatenate([model.renewal().mass for model in models])
    assert stack.mass == pytest.approx(alone, rel=1e-4)
