"""Properties of content analysis for any text."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawld.core.content.alignment import find_gaps
from crawld.core.content.analysis import analyse, difference_of, read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.difference import difference, one_way, weak_checksums
from crawld.core.content.fingerprint import SKETCH_BYTES, resemblance, sketch
from crawld.core.content.noise_learning import MAX_RULES, ReadingPair
from crawld.core.content.volatile import VolatileRules

# Few letters make repeats likely, and with them matches at unusual offsets.
texts = st.binary(max_size=200) | st.text("ab", max_size=120).map(str.encode)


def naive_one_way(new: bytes, old: bytes, size: int) -> float:
    """rsync by its report: compare every offset with every block."""
    blocks = [old[i : i + size] for i in range(0, len(old), size)]
    full = {block for block in blocks if len(block) == size}
    position = unmatched = 0
    while position < len(new):
        rest = new[position:]
        if rest[:size] in full:
            position += size
        elif blocks and rest == blocks[-1]:
            position = len(new)
        else:
            unmatched += 1
            position += 1
    return unmatched / len(new)


@given(texts.filter(bool), texts, st.integers(1, 40))
def test_one_way_is_what_rsync_finds(new, old, size):
    assert abs(one_way(new, old, size) - naive_one_way(new, old, size)) < 1e-12


@given(texts, texts, st.integers(1, 40))
def test_difference_is_symmetric_and_bounded(a, b, size):
    there = difference(a, b, block_bytes=size)
    assert there == difference(b, a, block_bytes=size)
    assert 0 <= there <= 1
    assert difference(a, a, block_bytes=size) == 0
    if not a and b:
        assert there == 1


@given(st.binary(min_size=1, max_size=300), st.data())
def test_deletion_counts(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    assert difference(text, text[:start] + text[stop:], block_bytes=16) > 0


@given(st.binary(min_size=1, max_size=200), st.integers(1, 64))
def test_weak_checksum_is_the_printed_formula(text, size):
    size = min(size, len(text))
    for k, checksum in enumerate(weak_checksums(text, size).tolist()):
        window = text[k : k + size]
        a = sum(window) % 2**16
        b = sum((size - i) * x for i, x in enumerate(window)) % 2**16
        assert checksum == a + 2**16 * b


def test_long_texts_are_matched_across_slices():
    rng = np.random.default_rng(7)
    old = rng.bytes(600_000)
    new = old[:100_001] + b"x" + old[100_001:400_000] + rng.bytes(1000) + old[400_000:]
    assert one_way(new, old) < 0.003
    assert one_way(rng.bytes(600_000), old) == 1


@given(st.text(max_size=300))
def test_sketch_resembles_itself(text):
    assert len(sketch(text)) == SKETCH_BYTES
    assert resemblance(sketch(text), sketch(text)) == 1


@settings(max_examples=30)
@given(st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_resemblance_is_within_its_bound(share, seed):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 10**9, size=(3, 3000)).astype(str)
    common = int(share * 3000)
    # Except for 3 shingles at the seam, exactly the shingles of the common start are shared.
    a = " ".join([*words[0, :common], *words[1, common:]])
    b = " ".join([*words[0, :common], *words[2, common:]])
    true = max(0, common - 3) / (2 * 2997 - max(0, common - 3))
    found = resemblance(sketch(a), sketch(b))
    assert found == resemblance(sketch(b), sketch(a))
    assert abs(found - true) <= 5 * (true * (1 - true) / SKETCH_BYTES) ** 0.5 + 0.03


# Fragments that combine in unusual ways: unclosed, misnested, hidden, foreign, raw.
pieces = st.sampled_from(
    [
        *("<p>", "</p>", "<div class='ad'>", "</div>", "<a href='/x?sid=1'>", "</a>", "<table>"),
        *("<tr><td>", "</table>", "<li>", "<b hidden>", "<span style='display:none'>", "</span>"),
        *("<script>", "</script>", "<!--", "-->", "<svg>", "<a xlink:href=y>", "</svg>", "<math>"),
        *("<template>", "</template>", "<pre>", "<br hidden>", "<img src=i?t=1>", "<xmp>"),
        *("</xmp>", "<plaintext>", "<select><option>", "</select>", "<base href>"),
        *("<link rel href>", "\0", "<meta content name>", "<meta http-equiv=refresh content=';'>"),
        *("word", " 17 ", "<", ">"),
    ]
)
markups = st.lists(pieces, max_size=40).map("".join)


@given(markups, st.sampled_from(["text/html", "text/plain", "application/xml", None]))
def test_any_markup_has_an_analysis(markup, declared):
    found = analyse(markup.encode(), declared)
    assert len(found.blocks.texts) == len(found.blocks.places)
    assert all(found.blocks.texts)
    assert analyse(markup.encode(), declared, previous=found.blocks).difference == 0


@given(markups, markups, st.booleans())
def test_rules_are_few_and_never_make_equal_pages_differ(old, new, pair):
    first, second = (read_blocks(m.encode(), "text/html") for m in (old, new))
    rules = ReadingPair.of(first, second).learn(VolatileRules(), pair=pair)
    assert len(rules.rules) <= MAX_RULES
    assert VolatileRules.from_bytes(rules.to_bytes()) == rules
    assert difference_of(second, second, rules) == 0
    assert pair or not rules.confirmed().rules


rows = st.lists(st.sampled_from("abcdefg"), max_size=25)


@given(rows, rows)
def test_outside_gaps_blocks_are_equal_in_order(left, right):
    gaps = find_gaps(*(Blocks(tuple(side), (0,) * len(side)) for side in (left, right)))
    i = j = 0
    for i_start, i_stop, j_start, j_stop in [*gaps, (len(left), len(left), len(right), len(right))]:
        assert left[i:i_start] == right[j:j_start]
        assert i_start < i_stop or j_start < j_stop or (i_start, j_start) == (len(left), len(right))
        i, j = i_stop, j_stop
    assert bool(gaps) == (left != right)
