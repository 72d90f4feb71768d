"""Hinted pages: beliefs, the effect of missing hints, and the best of very many pages."""

import numpy as np
import pytest

from crawld.core.change.renewal import Renewal
from crawld.core.change.scale import SHAPE_EDGES
from crawld.core.revisit.hints import (
    BLOCK,
    REVALUE_S,
    Belief,
    Coverage,
    HintedPages,
    hinted_values,
    update_belief,
)
from crawld.core.revisit.visit_value import VisitValueTable, default_scale_model, value_table

DAY = 86_400.0
NOW = 1.7e9
TABLE = value_table(default_scale_model())
SCALE_S = 10 * DAY
COVERAGE = Coverage(0.1, 0.0)


def hinted(*hints, **more):
    belief = None
    usual = {"trust": 0.5, "known_at": NOW - 5 * DAY, "scale_s": SCALE_S, "coverage": COVERAGE}
    usual |= {"mean_hazard": 1.0 / SCALE_S, "table": TABLE}
    for at in hints:
        belief = update_belief(belief, at, **usual | more)
    return belief


def value_of(belief, at, unhinted=0.0, since_s=0.0):
    one = np.array([belief]).T
    rest = {"scale_s": np.array([SCALE_S]), "coverage": COVERAGE, "table": TABLE}
    return hinted_values(one, np.array([unhinted]), at, since_s=np.array([since_s]), **rest)[0]


def test_a_hint_of_trust_1_leaves_only_its_reading():
    belief = hinted(NOW, trust=1.0)
    assert (belief.known, belief.earlier, belief.latest) == (0.0, 0.0, 1.0)
    assert belief.latest_at == NOW


def test_a_hint_of_trust_0_does_not_change_the_value():
    value = value_of(hinted(NOW, trust=1e-12), NOW + DAY, unhinted=777.0)
    assert value == pytest.approx(777.0, rel=1e-6)


def test_hints_of_one_change_confirm_each_other():
    once, twice = hinted(NOW), hinted(NOW, NOW + 5.0)
    assert twice.latest > once.latest
    assert twice.known < once.known
    assert twice.true_hints == once.true_hints


def test_weights_follow_bayes_rule():
    belief = hinted(NOW, trust=0.5)
    hazard = TABLE.hazard(5 * DAY / SCALE_S)
    assert belief.latest == pytest.approx(hazard / (hazard + 1.0))


def test_missing_hints_lower_a_hint_where_changes_come_in_bursts():
    mass = np.array([0.6, *np.full(20, 0.001), 0.38])
    bursty = VisitValueTable(Renewal(SHAPE_EDGES, mass / mass.sum()))
    row = hinted(NOW, table=bursty)
    kept = [
        row.latest
        * bursty.survival(wait / SCALE_S) ** 0.9
        / (row.known * bursty.survival((wait + 5 * DAY) / SCALE_S) ** 0.9)
        for wait in (0.0, 3600.0, DAY)
    ]
    assert kept == sorted(kept, reverse=True)
    assert kept[2] < 0.6 * kept[0]


def test_a_page_without_hints_for_years_keeps_a_value():
    assert value_of(hinted(NOW), NOW + 4000 * DAY, unhinted=5.0) > 1.0


def test_a_page_that_always_changes_again_soon_is_not_forgotten():
    at = NOW + 60.0
    values = [value_of(hinted(NOW, trust=1.0), at, since_s=days * DAY) for days in (1, 100, 1000)]
    assert values == sorted(values)
    assert values[2] > 20 * DAY


def test_missing_hints_within_the_lag_have_no_effect():
    coverage = Coverage(0.2, 3600.0)
    changed = np.array([0.0, 0.3, 0.9])
    assert coverage.silence_factor(changed, np.zeros(3)) == pytest.approx(1.0)
    assert Coverage(0.2, 0.0).silence_factor(changed, changed)[1:] == pytest.approx(
        0.2 / (1 - 0.8 * changed[1:])
    )
    assert Coverage(1.0, 0.0).silence_factor(changed, changed) == pytest.approx(1.0)


def test_a_page_never_visited_is_certainly_stale():
    belief = hinted(NOW, trust=0.3, known_at=-np.inf, mean_hazard=1e-6, coverage=Coverage())
    assert belief.latest == 1.0


@pytest.mark.parametrize("count", [1, BLOCK, 5 * BLOCK + 7])
def test_best_is_found_while_pages_are_added_and_removed(count):
    rng = np.random.default_rng(count)
    pages, values = HintedPages(), {}

    def settle(at):
        places = pages.due(at)
        slots = pages.slots(places)
        pages.set_values(places, np.array([values[slot] for slot in slots.tolist()]))

    for slot in range(count):
        pages.put(slot, Belief(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0), 0.0)
        values[slot] = float(rng.random())
    for k in range(3 * min(count, 200)):
        settle(NOW + k)
        slot, value = pages.best()
        if not values:
            assert slot == -1
            break
        assert (slot, value) == max(values.items(), key=lambda pair: pair[1])
        assert pages.discard(slot) is not None
        del values[slot]
        if rng.random() < 0.5 and values:
            gone = int(rng.choice(list(values)))
            pages.discard(gone)
            del values[gone]


def test_all_of_many_pages_are_revalued_in_turn():
    pages = HintedPages()
    count = 3 * BLOCK + 5
    for slot in range(count):
        pages.put(slot, Belief(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0), 0.0)
    pages.set_values(pages.due(NOW), np.zeros(count))
    seen = set()
    assert len(pages.due(NOW + 1)) == 0
    for k in range(1, 6):
        places = pages.due(NOW + k * REVALUE_S)
        assert len(places) <= BLOCK
        seen.update(places.tolist())
        pages.set_values(places, np.zeros(len(places)))
    assert seen == set(range(count))
