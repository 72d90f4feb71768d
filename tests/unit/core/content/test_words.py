from hypothesis import given
from hypothesis import strategies as st

from crawld.core.content.analysis import read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.words import EditSearch, Op, word_diff
from tests.unit.steps import assert_linear


def diff(old, new, **more):
    """Return the hunks of two bodies, with pieces as `-removed`, `+added` or plain."""
    readings = (read_blocks(f"<body>{each}".encode(), "text/html") for each in (old, new))
    marks = {Op.SAME: "", Op.REMOVED: "-", Op.ADDED: "+"}
    return [
        [marks[piece.op] + piece.text for piece in hunk.pieces]
        for hunk in word_diff(*readings, **more)
    ]


def test_equal_pages_do_not_differ():
    assert diff("<p>one<p>two", "<p>one\n<p>two") == []


def test_one_word_of_a_paragraph():
    assert diff("<p>a<p>It was fine today<p>b", "<p>a<p>It was cold today<p>b") == [
        ["It was ", "-fine", "+cold", " today"]
    ]


def test_words_in_a_row_are_one_piece():
    assert diff("<p>so it was good then", "<p>so we are bad then") == [
        ["so ", "-it was good", "+we are bad", " then"]
    ]


def test_a_changed_number_is_one_piece():
    assert diff("<p>17 of 20 votes.", "<p>18 of 20 votes.") == [["-17", "+18", " of 20 votes."]]


def test_added_and_removed_blocks():
    assert diff("<p>a<p>gone<p>b", "<p>a<p>b<h2>new</h2>") == [["-gone"], ["+h2: new"]]


def test_hunks_give_their_position():
    old, new = (
        Blocks(tuple(texts), (0,) * len(texts)) for texts in ("abcdef", "abXcdef".replace("e", "Y"))
    )
    assert [(hunk.old_block, hunk.new_block) for hunk in word_diff(old, new)] == [(2, 2), (4, 5)]


def test_a_target_is_shown_only_where_it_changed():
    old, new = '<p>see <a href="/a">the page</a> now', '<p>see <a href="/b">the page</a> now'
    [pieces] = diff(old, new)
    assert "-⟨/a⟩" in pieces
    assert "+⟨/b⟩" in pieces
    same = diff(old, old.replace("now", "then"))
    assert same == [["see the page ", "-now", "+then"]]


def test_entities_are_resolved():
    assert diff("<p>if a &lt; b &amp; c", "<p>if a &lt; d &amp; c") == [
        ["if a < ", "-b", "+d", " & c"]
    ]


def test_scripts_without_spaces_are_compared_by_character():
    assert diff("<p>我今天很好", "<p>我昨天很好") == [["我", "-今", "+昨", "天很好"]]


def test_without_steps_a_hunk_is_replaced_as_a_whole():
    assert diff("<p>x a b a b x", "<p>x b a b a x", max_steps=0) == [
        ["x ", "-a b a b", "+b a b a", " x"]
    ]


def test_a_page_of_equal_words_is_compared_in_bounded_time():
    # no word is unique here: only the number of steps limits the work
    old, new = "<p>" + "a b " * 20_000, "<p>" + "b c " * 20_000
    [pieces] = diff(old, new)
    assert {piece[0] for piece in pieces} >= {"-", "+"}


TOKENS = st.lists(st.sampled_from(["a", "b", "c", " ", "\n", "\x02/t\x03"]), max_size=30)


@given(TOKENS, TOKENS, st.sampled_from([0, 9, 10_000]))
def test_edits_spell_both_texts(old, new, steps):
    edits = EditSearch(steps).edits(old, new)
    assert [token for op, token in edits if op is not Op.ADDED] == old
    assert [token for op, token in edits if op is not Op.REMOVED] == new


@given(TOKENS, TOKENS)
def test_edits_are_as_few_as_by_dynamic_programming(old, new):
    # without unique tokens as anchors the edit is the shortest possible
    old, new = [*old, *old], [*new, *new]
    edits = [op for op, _ in EditSearch(10_000).edits(old, new) if op is not Op.SAME]
    row = list(range(len(new) + 1))
    for i, left in enumerate(old, 1):
        above, row = row, [i]
        for j, right in enumerate(new, 1):
            row.append(above[j - 1] if left == right else 1 + min(above[j], row[j - 1]))
    assert len(edits) == row[-1]


def test_the_steps_on_hostile_texts_have_a_limit():
    def shifted(repeats):
        return ["a", "b"] * repeats, ["b", "a"] * repeats + ["c"]

    assert_linear(shifted, lambda texts: EditSearch(1_000).edits(*texts))


def test_texts_beyond_the_limit_are_one_piece():
    old = Blocks(("start", "one two " * 100_000, "x", "one two three"), (0,) * 4)
    new = Blocks(("start", "two one " * 100_000, "x", "one four three"), (0,) * 4)
    first, second = word_diff(old, new)
    assert len(first.pieces) == 2
    assert [piece.text for piece in second.pieces] == ["one two three", "one four three"]
