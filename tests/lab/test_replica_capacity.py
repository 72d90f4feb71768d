"""The capacity of idle replicas, on webs small enough to compute by hand."""

import numpy as np
import pytest

from crawld.lab.replica_capacity import replica_capacity

DAY_S = 86_400.0


def lent(host, canonical, rests, other_text=None, days=10.0, visits_a_day=1.0):
    host = np.array(host)
    return replica_capacity(
        host,
        np.array(canonical),
        rests=np.array(rests, bool),
        other_text=np.array(other_text or [0] * len(host), bool),
        rate=np.full(len(host), 1 / (days * DAY_S)),
        visits_per_host_s=visits_a_day / DAY_S,
    )


def test_a_full_copy_of_a_site_that_hardly_changes_doubles_its_visits():
    found = lent([0, 0, 1, 1], [0, 0], [0, 0, 1, 1], days=1e6)
    assert (found.idle, found.helped) == (1, 2)
    assert found.faster == pytest.approx(2.0, abs=1e-4)


def test_a_copy_of_half_the_pages_adds_a_third():
    found = lent([0, 0, 1], [0, 0], [0, 0, 1], days=1e6)
    assert found.faster == pytest.approx(4 / 3, abs=1e-4)


def test_checks_of_changed_pages_cost_visits():
    found = lent([0, 0, 1, 1], [0, 0], [0, 0, 1, 1], days=2.0)
    # Two days between visits: changed with probability 1 - 1/e.
    assert found.faster == pytest.approx(1 + 1 / (2 - np.exp(-1)))
    assert found.together > found.alone


@pytest.mark.parametrize(
    ("rests", "other_text"), [([0, 0, 1, 0], None), ([0, 0, 1, 1], [0, 0, 0, 1])]
)
def test_busy_or_stale_copies_add_nothing(rests, other_text):
    found = lent([0, 0, 1, 1], [0, 0], rests, other_text)
    assert (found.idle, found.helped, found.faster) == (0, 0, 1.0)
