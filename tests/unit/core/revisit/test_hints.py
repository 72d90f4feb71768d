"""The hinted pages of a policy: the best of very many, and their valuation in parts."""

import numpy as np
import pytest

from crawld.core.revisit.due import Due
from crawld.core.revisit.hint_belief import Belief
from crawld.core.revisit.hints import BLOCK, REVALUE_S, HintedPages

NOW = 1.7e9
STALE = Belief(0.0, 0.0, 0.0, 1.0, (1.0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize("count", [1, BLOCK, 5 * BLOCK + 7])
def test_best_is_found_while_pages_are_added_and_removed(count):
    rng = np.random.default_rng(count)
    pages, values = HintedPages(), {}

    def settle(at):
        places = pages.due(at)
        slots = pages.slots(places)
        pages.set_values(places, np.array([values[slot] for slot in slots.tolist()]))

    for slot in range(count):
        pages.put(slot, STALE, Due.by(0.0))
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
        pages.put(slot, STALE, Due.by(0.0))
    pages.set_values(pages.due(NOW), np.zeros(count))
    seen = set()
    assert len(pages.due(NOW + 1)) == 0
    for k in range(1, 6):
        places = pages.due(NOW + k * REVALUE_S)
        assert len(places) <= BLOCK
        seen.update(places.tolist())
        pages.set_values(places, np.zeros(len(places)))
    assert seen == set(range(count))
