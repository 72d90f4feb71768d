import itertools
import random
import sys

import pytest

from crawld.core.content import volatile
from crawld.core.content.blocks import Blocks
from crawld.core.content.volatile import (
    MAX_NEIGHBORS,
    BlockIndex,
    Cover,
    VolatileRule,
    mask,
    wording_hash,
)
from tests.unit.steps import count_steps

LENGTH = 1_000_000
"""Characters of a hostile text: linear work takes milliseconds, quadratic work hours."""


@pytest.mark.parametrize(
    ("start", "repeated", "masked"),
    [
        ("7 ", "a", lambda: "# " + "a" * LENGTH),
        ("7", ",a", lambda: "#" + ",a" * (LENGTH // 2)),
        ("7", " ,", lambda: "#" + " ," * (LENGTH // 2)),
        ("7", " ", lambda: "#" + " " * LENGTH),
        ("7", ",7", lambda: "#"),
        ("7 ", "7, ", lambda: "#, "),
        ("7 ", "mon", lambda: "# " + "mon" * (LENGTH // 3)),
        ("7 ", "p.m", lambda: "# " + "p.m" * (LENGTH // 3)),
    ],
    ids=["letters", "commas", "spaces and commas", "spaces", "digits", "list", "days", "noons"],
)
def test_a_long_run_is_masked_in_linear_time(start, repeated, masked):
    assert mask(start + repeated * (LENGTH // len(repeated))) == masked()


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("abc12def, 3 days ago", "# ago"),
        ("x_1.2-b3: up", "#: up"),
        ("1.a2 1.a", "#.a"),
        ("may 3 be", "# be"),
        ("may be", "may be"),
        ("team 5", "team #"),
        ("a.m. 5", "#"),
        ("5  months", "#"),
        ("5 monthsx", "# monthsx"),
        ("è1 x 1é", "# x #"),
    ],
)
def test_masked_forms(text, masked):
    assert mask(text) == masked


def test_long_texts_are_not_kept():
    text = "word " * 1_000
    before = sys.getrefcount(text)
    assert wording_hash(text) == wording_hash(text + "")
    assert sys.getrefcount(text) == before


@pytest.mark.parametrize("run", [1, 255])
def test_a_slot_beside_a_frequent_text_is_found_in_bounded_time(run):
    rule = VolatileRule(Cover.SLOT, 7, wording_hash("x"), wording_hash("right"), run)

    def steps(count):
        index = BlockIndex(Blocks(("x",) * count, (7,) * count))
        index.covered(VolatileRule(Cover.WORDING, 7, wording_hash("x")))
        return count_steps(index.covered, rule)

    assert steps(4 * MAX_NEIGHBORS) < 1.2 * steps(2 * MAX_NEIGHBORS)


def test_a_long_text_is_masked_like_its_parts(monkeypatch):
    words = [
        "12",
        "word",
        "3 minutes",
        "May",
        "1,234",
        "a1b",
        "at",
        "10:15",
        "5 , 6",
        "days",
        "minutes",
        "hours",
        ",",
    ]
    draw = random.Random(1)
    texts = [" ".join(draw.choices(words, k=draw.randrange(200))) for _ in range(300)]
    whole = [mask(text) for text in texts]
    monkeypatch.setattr(volatile, "_PIECE_CHARACTERS", 100)
    assert [mask(text) for text in texts] == whole


@pytest.mark.parametrize("word", ["12 ", "1", "word1 ", "3 minutes ", "# , "])
def test_a_piece_of_a_long_text_is_short(word):
    text = word * (200_000 // len(word))
    ends = [0]
    while ends[-1] < len(text):
        ends.append(volatile._piece_end(text, ends[-1]))
    assert ends[-1] == len(text)
    assert all(0 < b - a <= volatile._PIECE_CHARACTERS for a, b in itertools.pairwise(ends))
