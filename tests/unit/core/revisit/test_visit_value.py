"""Visit values: page scales and waits."""

import weakref

import numpy as np
import pytest

from crawld.core.change.model import PageModel
from crawld.core.change.record import RECORD_DTYPE
from crawld.core.change.renewal import Renewal
from crawld.core.change.scale import fit_scale
from crawld.core.change.scale_growth import WAITS as GROWTH_WAITS
from crawld.core.revisit.renewal_index import AGES
from crawld.core.revisit.visit_value import VisitValueTable, page_scale_s, value_table

DAY = 86_400.0
NOW = 1.7e9


def test_page_scale_equals_the_scale_of_the_model():
    rng = np.random.default_rng(4)
    instants = np.cumsum(rng.exponential(3 * DAY, 60)) + NOW - 400 * DAY
    model = fit_scale(instants, np.array([0, 60]), at=NOW)
    page = PageModel()
    page.observe_changes(instants.tolist(), NOW)
    stored = np.frombuffer(page.to_bytes(), dtype=RECORD_DTYPE)
    assert page_scale_s(model.weights.tolist(), page) == pytest.approx(
        float(model.scale_s(stored)[0]), rel=1e-5
    )


def test_waits_end_before_the_value_is_reached():
    rng = np.random.default_rng(0)
    age, scale = 10.0 ** rng.uniform(-4, 2, 500), 10.0 ** rng.uniform(3, 7, 500)
    table = VisitValueTable(fit_scale(np.zeros(0), np.zeros(1, np.int64), at=0.0).shape)
    asked = 10.0 ** rng.uniform(2, 6, 500)
    waits = table.waits_s(age, scale, asked)
    assert np.quantile(table.values(age, scale, waits) / asked, 0.98) <= 1.0
    assert table.wait_s(age[0], scale[0], asked[0]) == pytest.approx(waits[0])
    one = table.value(age[0], scale[0], waits[0])
    assert one == pytest.approx(float(table.values(age[:1], scale[:1], waits[:1])[0]))


def test_a_visit_after_a_long_wait_is_worth_more_where_pages_calm_down():
    shape = fit_scale(np.zeros(0), np.zeros(1, np.int64), at=0.0).shape
    calm = np.linspace(0.0, 3.0, len(GROWTH_WAITS))
    plain, growing = VisitValueTable(shape, 1e-9), VisitValueTable(shape, 1e-9, calm)
    soon, late = (np.array([waited * DAY]) for waited in (0.3, 3_000.0))
    age, scale = np.array([1.0]), np.array([DAY])
    assert growing.values(age, scale, soon) == pytest.approx(plain.values(age, scale, soon))
    ratio = growing.values(age, scale, late) / plain.values(age, scale, late)
    assert ratio == pytest.approx(np.exp(3.0), rel=0.05)
    waited = np.geomspace(1e-3, 1e4, 300) * DAY
    assert (np.diff(growing.values(np.ones(300), np.full(300, DAY), waited)) >= 0.0).all()
    wait_s = growing.wait_s(1.0, DAY, float(growing.value(1.0, DAY, 40 * DAY)))
    assert wait_s <= 40 * DAY


def test_a_periodic_page_is_worth_little_until_its_change_whatever_its_age():
    """Also between the points of the tables, the value does not rise early."""
    periodic = Renewal(np.array([0.0, 0.97, 1.03, 2.0]), np.array([1e-9, 1.0 - 2e-9, 1e-9]))
    table = VisitValueTable(periodic, share=1e-9)
    early = [table.value(age, 1.0, 0.97 - age) for age in AGES[AGES < 0.8].tolist()]
    assert max(early) < 0.15


def test_tables_of_former_fits_are_forgotten():
    fits = [fit_scale(np.zeros(0), np.zeros(1, np.int64), at=float(k)) for k in range(12)]
    used = value_table(fits[0], 0.1)
    former = [weakref.ref(value_table(fit, share)) for fit in fits for share in (0.06, 0.1)]
    assert sum(ref() is not None for ref in former) <= 6
    assert value_table(fits[0], 0.1) is used
    assert used.basis is value_table(fits[0])
