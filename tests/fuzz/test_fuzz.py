"""The kept inputs of each target, and mutations of them by a fixed sequence.

The search that finds new inputs is `make fuzz`; here nothing depends on chance or on speed.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.mutate import mutated
from tests.fuzz.targets import MAX_BYTES, TARGETS, inputs_of

MUTATIONS = 250


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_stay_mended(name):
    kept = inputs_of(name)
    assert kept
    for path in kept:
        TARGETS[name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_of_kept_inputs(name):
    draw = random.Random(f"mutations of {name}")
    seeds = [path.read_bytes() for path in inputs_of(name)]
    for _ in range(MUTATIONS):
        data = mutated(seeds, draw)
        assert len(data) <= MAX_BYTES
        try:
            TARGETS[name](data)
        except BaseException as error:
            error.add_note(f"{name}: {data!r}")
            raise


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name):
    @settings(derandomize=True, max_examples=60, database=None)
    @given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode()))
    def check(data):
        TARGETS[name](data)

    check()
