"""The models of a site, fitted again over a simulated period."""

import numpy as np

from crawld.core.change.site_model import FIT_EVERY_S, fit_sample
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.units import DAY_S
from crawld.lab.histories import from_times
from crawld.lab.refitting import RepeatedFit
from crawld.lab.scenario import scenario_of

START = 1.2e9


class Fits(IndexPolicy):
    """Remembers the models it was given, and of which pages."""

    def __init__(self):
        super().__init__()
        self.sites, self.pages = [], []

    def set_site_model(self, model):
        self.sites.append(model.as_dict())
        super().set_site_model(model)

    def set_models(self, pages, records):
        self.pages.append(list(pages))
        super().set_models(pages, records)


def ten_pages():
    rng = np.random.default_rng(4)
    times = {
        f"p{page}": START - 30 * DAY_S + np.cumsum(rng.exponential(DAY_S, 60)) for page in range(10)
    }
    return scenario_of(from_times(times), start=START, duration_s=20 * DAY_S)


def visit(job, models, page, found, at):
    models[page].observe_changes(found, at)
    job.record_visit(page, found)


def test_a_fit_knows_what_visits_found_until_the_last_visit_of_each_page():
    case = ten_pages()
    policy, models = Fits(), case.past_models()
    policy.load(np.arange(10))
    job = RepeatedFit(policy, models, case)
    job.run_until(START + 1.0)
    assert policy.sites == []  # nothing is new
    known = [times[times < START].tolist() for times in case.histories.page_times]
    found = [START + 900.0 * quarter for quarter in range(1, 96)]
    at = START + DAY_S
    # The first visit finds all changes of the history, known ones too: they count once.
    visit(job, models, 3, known[3] + found, at)
    job.run_until(at)
    known[3] += found
    until = [at if page == 3 else START for page in range(10)]
    assert policy.sites == [fit_sample(known, until).as_dict()]
    assert policy.pages == [list(range(10))]


def test_fits_wait_for_their_time_and_for_more_changes():
    case = ten_pages()
    policy, models = Fits(), case.past_models()
    policy.load(np.arange(10))
    job = RepeatedFit(policy, models, case)
    hours = np.arange(1.0, 24.0)
    for page in range(10):
        visit(job, models, page, (START + hours * 3600.0).tolist(), START + DAY_S)
        job.run_until(START + DAY_S + page)
    assert len(policy.sites) == 1  # the later ones came too early
    job.run_until(START + DAY_S + FIT_EVERY_S + 10.0)
    assert len(policy.sites) == 2
    visit(job, models, 5, [START + 1.5 * DAY_S], START + 2 * DAY_S)
    job.run_until(START + 3 * DAY_S)
    assert len(policy.sites) == 2  # one change more than 500
    job.run_until(START + 170 * DAY_S)
    assert len(policy.sites) == 2
    job.run_until(START + 182 * DAY_S)
    assert len(policy.sites) == 3


def test_with_a_twentieth_more_changes_only_the_self_exciting_model_is_fitted_again():
    case = ten_pages()
    policy, models = Fits(), case.past_models()
    policy.load(np.arange(10))
    policy.set_site_model(case.past_site())
    before = policy.site_model
    job = RepeatedFit(policy, models, case)
    known = sum(int((times < START).sum()) for times in case.histories.page_times)
    minutes = START + np.arange(1.0, known // 20 + 2.0) * 60.0
    visit(job, models, 2, minutes.tolist(), START + DAY_S)
    job.run_until(START + DAY_S)
    assert policy.site_model.scale is before.scale
    assert policy.site_model.hawkes.weights[0] > before.hawkes.weights[0]  # a burst


def test_pages_without_a_visit_get_no_model():
    case = ten_pages()
    policy, models = Fits(), case.past_models()
    policy.load(np.arange(10))
    models[6] = type(models[6])()
    job = RepeatedFit(policy, models, case)
    visit(job, models, 0, (START + np.arange(1.0, 95.0) * 900.0).tolist(), START + DAY_S)
    job.run_until(START + DAY_S)
    assert policy.pages == [[0, 1, 2, 3, 4, 5, 7, 8, 9]]
