"""The hashes of many texts at once are those of the formula, text by text."""

from hashlib import blake2b, shake_128

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.seen import universal
from crawld.core.seen.texts import TextBlock
from crawld.core.seen.universal import UniversalHash, universal_hash

TEXTS = st.lists(st.binary(max_size=90), max_size=20)
LONG = [b"x" * length for length in (0, 1, 4, 2_047, 2_048, 2_049, 100_000)]
SEED = 0x5EED


def hashed(texts, purposes=slice(0, 3), seed=SEED):
    block = TextBlock.of_octets(texts)
    return universal_hash(seed, 3).of(block.octets, block.starts, block.ends, purposes)


def by_the_formula(text, purpose):
    key = SEED.to_bytes(8, "little")
    octets = shake_128(key).digest(8 * 514 * 3)
    factors = np.frombuffer(octets, "<u8").reshape(514, 3)[:, purpose].tolist()
    total = factors[0] + len(text) * factors[1]
    if len(text) > 2_048:
        text = blake2b(text, key=key, digest_size=16).digest()
    for at in range(0, len(text), 4):
        total += int.from_bytes(text[at : at + 4], "little") * factors[2 + at // 4]
    return (total & (1 << 64) - 1) >> 32


@pytest.mark.parametrize("wide_below", [0, 16_384])
@given(texts=TEXTS)
def test_a_hash_is_the_sum_of_products(wide_below, texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(universal, "_WIDE_BELOW", wide_below)
        patch.setattr(universal, "_TOGETHER", 3)
        found = hashed(texts)
    assert found.tolist() == [[by_the_formula(text, n) for n in range(3)] for text in texts]


def test_long_texts_are_hashed_with_the_seed():
    found = hashed(LONG)
    assert found.tolist() == [[by_the_formula(text, n) for n in range(3)] for text in LONG]


def test_texts_that_differ_in_their_end_have_different_hashes():
    texts = [b"abc" + b"\0" * count for count in range(40)]
    assert len({tuple(row) for row in hashed(texts).tolist()}) == len(texts)


def test_a_purpose_has_its_own_function():
    one, two = hashed([b"a.org"] * 2, slice(0, 1)), hashed([b"a.org"] * 2, slice(1, 2))
    assert one.tolist() == one[::-1].tolist() != two.tolist()


def test_texts_that_collide_under_one_seed_do_not_under_others():
    """Nobody finds collisions who does not know the seed: here the hash has but 16 bits."""
    texts = [b"https://a.org/%d" % number for number in range(3_000)]
    first = hashed(texts, slice(0, 1))[:, 0] >> np.uint64(16)
    order = np.argsort(first)
    same = np.flatnonzero(np.diff(first[order].astype(np.int64)) == 0)
    left, right = ([texts[at] for at in order[same + more]] for more in (0, 1))
    assert len(left) > 30
    again = 0
    for seed in range(1, 30):
        one, two = (
            hashed(part, slice(0, 1), seed)[:, 0] >> np.uint64(16) for part in (left, right)
        )
        again += int(np.count_nonzero(one == two))
    assert again <= 3


def test_the_functions_of_a_seed_are_made_once():
    assert universal_hash(5, 3) is universal_hash(5, 3)
    assert isinstance(universal_hash(5, 3), UniversalHash)
