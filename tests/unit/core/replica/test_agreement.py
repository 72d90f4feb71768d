"""Whether a page agrees with its twin, given what the twin showed when."""

import pytest

from crawld.core.replica.agreement import (
    LEAST_LAG_S,
    MAX_LAG_S,
    PageVerdict,
    TwinTimes,
    compare_twins,
)

AT = 1_780_000_000.0


def times(**more):
    values = {"visited_at": AT, "seen_at": AT - 60.0, "is_steady": False, "lost_at": None}
    return TwinTimes(**(values | more))


def test_equal_texts_agree():
    found = compare_twins(times(), equal=True)
    assert (found.verdict, found.lag_s) == (PageVerdict.AGREES, 0.0)


@pytest.mark.parametrize(
    ("known", "verdict"),
    [
        ({"seen_at": AT - 60.0}, PageVerdict.UNKNOWN),  # the twin may have changed since
        ({"seen_at": AT + 60.0}, PageVerdict.UNKNOWN),  # it changed about then: to what at first?
        ({"seen_at": AT + 60.0, "is_steady": True}, PageVerdict.DIFFERS),
        ({"seen_at": AT - 60.0, "is_steady": True}, PageVerdict.UNKNOWN),
    ],
)
def test_a_text_that_the_twin_never_showed_differs_if_the_twins_is_known(known, verdict):
    assert compare_twins(times(**known), equal=False).verdict is verdict


@pytest.mark.parametrize(
    ("lost_s", "verdict", "lag_s"),
    [
        (-60.0, PageVerdict.AGREES, 0.0),  # after the visit of the page
        (LEAST_LAG_S, PageVerdict.AGREES, LEAST_LAG_S),
        (LEAST_LAG_S + 1.0, PageVerdict.UNKNOWN, LEAST_LAG_S + 1.0),
        (MAX_LAG_S, PageVerdict.UNKNOWN, MAX_LAG_S),
        (MAX_LAG_S + 1.0, PageVerdict.DIFFERS, MAX_LAG_S + 1.0),
    ],
)
def test_a_copy_that_is_behind_does_not_rest_and_one_that_stays_behind_differs(
    lost_s, verdict, lag_s
):
    found = compare_twins(times(seen_at=AT + 1, lost_at=AT - lost_s), equal=False)
    assert (found.verdict, found.lag_s) == (verdict, lag_s)
