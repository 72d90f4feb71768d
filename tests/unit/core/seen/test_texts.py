"""A block of texts behaves as the list of its texts, whichever way it takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.seen import texts
from crawld.core.seen.texts import TextBlock, decoded, encoded

TEXTS = st.lists(st.text(max_size=4) | st.just("x" * 70_000), min_size=1, max_size=12)
TOGETHER = pytest.mark.parametrize("together", [0, 1_000])


@TOGETHER
@given(given_texts=TEXTS, data=st.data())
def test_selected_texts_are_those_of_a_list(together, given_texts, data):
    at = data.draw(st.lists(st.integers(0, len(given_texts) - 1), max_size=12))
    block = TextBlock.of(given_texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_MIN_TOGETHER", together)
        selected = block.select(np.array(at, np.int64))
    assert selected.decoded() == [given_texts[each] for each in at]
    assert selected.pack() == TextBlock.of([given_texts[each] for each in at]).pack()


@given(given_texts=TEXTS, data=st.data())
def test_a_part_is_a_slice(given_texts, data):
    start = data.draw(st.integers(0, len(given_texts)))
    end = data.draw(st.integers(start, len(given_texts)))
    part = TextBlock.of(given_texts).part(start, end)
    assert part.decoded() == given_texts[start:end]
    assert TextBlock.unpack(part.pack(), len(part)).decoded() == given_texts[start:end]


@given(given_texts=TEXTS, data=st.data())
def test_picked_texts_are_those_of_a_list(given_texts, data):
    at = sorted(data.draw(st.sets(st.integers(0, len(given_texts) - 1), min_size=1)))
    picked = TextBlock.of(given_texts).picked(np.array(at, np.int64))
    wanted = [given_texts[each] for each in at]
    assert picked.decoded() == wanted
    start = data.draw(st.integers(0, len(at) - 1))
    assert picked.part(start, len(at)).decoded() == wanted[start:]
    assert picked.select(np.arange(len(at))).pack() == TextBlock.of(wanted).pack()


@given(text=st.text() | st.just("\ud800"))
def test_any_text_can_be_encoded(text):
    assert decoded(encoded(text)) == text
