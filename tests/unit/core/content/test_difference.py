import random

import pytest

from crawld.core.content.difference import difference, one_way
from tests.unit.steps import count_steps

SIZE = 2**16


def same_checksum() -> tuple[bytes, bytes]:
    """Return two texts without a common block, where every window has a block's weak checksum."""
    block = bytearray(b"a" * 32)
    block[3] += 1
    block[5] -= 2
    block[7] += 1
    return b"a" * SIZE, bytes(block) * (SIZE // 32)


def many_matches() -> tuple[bytes, bytes]:
    """Return two texts where one byte in 64 differs."""
    old = random.Random(1).randbytes(SIZE)
    new = bytearray(old)
    for at in range(0, SIZE, 64):
        new[at] ^= 1
    return bytes(new), old


@pytest.mark.parametrize("texts", [same_checksum, many_matches])
def test_the_work_on_hostile_texts_has_a_limit(texts):
    new, old = texts()
    steps = count_steps(difference, new, old, max_steps=5_000)
    longer = count_steps(difference, new * 2, old * 2, max_steps=5_000)
    assert longer < 1.2 * steps


def test_the_limit_holds_within_the_windows_of_one_pass():
    new, old = (text[:256] for text in same_checksum())
    few, many = (count_steps(difference, new, old, max_steps=most) for most in (1, 200))
    assert few < many / 2


def test_what_lies_beyond_the_limit_counts_as_new():
    new, old = many_matches()
    assert difference(new, old) == pytest.approx(0.5, abs=0.01)
    assert 0.6 < difference(new, old, max_steps=5_000) < 1.0


def test_the_larger_share_of_the_two_directions_counts():
    old = random.Random(2).randbytes(8 * 32)
    longer = old + random.Random(3).randbytes(2 * 32)
    assert (one_way(longer, old), one_way(old, longer)) == pytest.approx((0.2, 0.0))
    assert difference(longer, old) == difference(old, longer) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("new", "old", "share"),
    [
        (b"..abcd", b"abcd", 2 / 6),  # old is one block
        (b"aaaaa", b"aaaaaa", 1 / 5),  # its short last block overlaps what is covered
        (b"abcdXXef", b"abcdef", 2 / 8),  # its short last block covers the end
        (b"abc", b"abcd", 1.0),  # new is shorter than a block
    ],
)
def test_short_texts(new, old, share):
    assert one_way(new, old, 4) == pytest.approx(share)


def test_text_counts_as_utf_8_also_with_a_lone_surrogate():
    assert difference("é" * 32, ("é" * 32).encode()) == 0.0
    assert difference("a\ud800" * 16, "a\ud800" * 16 + "b") == pytest.approx(1 / 65)
