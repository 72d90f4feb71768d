"""A Last-Modified that many pages of a host share is no change of each of them."""

import numpy as np
import pytest

from crawld.core.change.model import Observation, PageModel
from crawld.core.change.record import records_of
from crawld.core.change.shared_dates import without_shared_dates

DAY_S = 86_400.0
NOW = 1_600_000_000.0


def visited(modified_at, at=NOW):
    model = PageModel()
    model.update(Observation(at, changed=False, last_change_at=modified_at))
    return model


def corrected(models, hosts=None):
    records = records_of(model.to_bytes() for model in models)
    groups = np.zeros(len(models), np.int64) if hosts is None else np.array(hosts)
    return records, without_shared_dates(records, groups)


def test_pages_that_were_put_there_together_have_not_changed_since():
    models = [visited(NOW - 3_600.0 + 0.2 * number, NOW + 60.0 * number) for number in range(9)]
    records, after = corrected(models)
    assert after["exact_changes"].tolist() == [0.0] * 9
    assert not after["change_known"].any()
    assert not after["counts"].any()
    # They were the same all the time since.
    assert after["exact_exposure_s"].tolist() == records["exact_exposure_s"].tolist()
    assert after["exact_exposure_s"][3] > 3_600.0
    assert (records["exact_changes"] > 0.9).all()  # the given ones are as before


def test_dates_of_their_own_are_changes():
    rng = np.random.default_rng(5)
    records, after = corrected([visited(NOW - back_s) for back_s in rng.uniform(60, DAY_S, 200)])
    assert after.tobytes() == records.tobytes()


@pytest.mark.parametrize(
    ("alike", "other", "are_shared"), [(2, 0, False), (3, 0, True), (3, 40, False)]
)
def test_a_few_pages_of_one_second_may_be_chance(alike, other, are_shared):
    models = [visited(NOW - DAY_S) for _ in range(alike)]
    models += [visited(NOW - 3_600.0 * (2 + number)) for number in range(other)]
    _, after = corrected(models)
    assert (after["exact_changes"][0] == 0.0) == are_shared
    assert (after["exact_changes"][alike:] > 0.0).all()


def test_hosts_are_looked_at_alone():
    _, after = corrected([visited(NOW - DAY_S) for _ in range(6)], hosts=[0, 0, 1, 1, 2, 2])
    assert (after["exact_changes"] > 0.0).all()


def test_a_page_that_changed_since_keeps_its_changes():
    models = [visited(NOW - DAY_S) for _ in range(6)]
    models[0].update(Observation(NOW + 900.0, changed=True, interval_s=900.0))
    _, after = corrected(models)
    assert after["change_known"].tolist() == [1, 0, 0, 0, 0, 0]
    assert after["exact_changes"][0] == pytest.approx(models[0].exact_changes)


def test_without_pages_there_is_nothing_to_correct():
    assert len(corrected([])[1]) == 0
