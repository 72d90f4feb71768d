"""Which attacks win, and which branches rest, by the inlinks that decide between names."""

from itertools import pairwise

import pytest

from crawld.core.replica.canonical import MORE_INLINKS
from crawld.lab.inlink_margin import BUDGETS, as_markdown, inlink_margins


@pytest.fixture(scope="module")
def found():
    return inlink_margins(range(2110, 2114))


def test_a_larger_margin_lets_fewer_attacks_win_and_fewer_branches_rest(found):
    assert found[0].attacks >= 6
    assert found[0].branches > 20
    for less, more in pairwise(found):
        assert all(b <= a for a, b in zip(less.won, more.won, strict=True))
        assert more.decided < less.decided
    assert all(list(one.won) == sorted(one.won) for one in found)
    assert len(as_markdown(found).splitlines()) == len(found) + 2


def test_the_chosen_margin_stops_attacks_with_two_domains(found):
    [chosen] = [one for one in found if one.margin == MORE_INLINKS]
    assert chosen.won[BUDGETS.index(2)] == 0
    assert chosen.decided > 0.6 * chosen.branches
