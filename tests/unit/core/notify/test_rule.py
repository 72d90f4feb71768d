"""What a rule reports, by kind, size and text; the text of a change in short."""

import pytest
import re2

from crawld.core.content.words import Hunk, Op, Piece
from crawld.core.notify.change_text import MAX_SHOWN_CHARACTERS, change_text
from crawld.core.notify.rule import RuleFilter, search_pattern
from crawld.errors import ConfigError


def hunk(*pieces):
    return Hunk(0, 0, tuple(Piece(op, text) for op, text in pieces))


def wanted(**fields):
    given = {
        "sites": frozenset(),
        "admits": lambda url: True,
        "kinds": frozenset({"changed", "gone"}),
    }
    return RuleFilter(**{**given, **fields})


EDIT = change_text(
    [hunk((Op.SAME, "The door is "), (Op.REMOVED, "wide open"), (Op.ADDED, "now safely shut"))]
)


def test_words_are_counted():
    assert (EDIT.words_added, EDIT.words_removed, EDIT.words) == (3, 2, 5)
    assert EDIT.added_text == "now safely shut"
    assert not EDIT.is_cut


def test_unchanged_text_is_left_out_but_for_its_ends():
    long = "begin " + "x" * 500 + " end"
    [first, change, last] = change_text(
        [hunk((Op.SAME, long), (Op.ADDED, "new"), (Op.SAME, long))]
    ).pieces
    assert first.text == " … " + long[-60:]
    assert change == Piece(Op.ADDED, "new")
    assert last.text == long[:60] + " … "
    middle = change_text(
        [hunk((Op.ADDED, "a"), (Op.SAME, long), (Op.ADDED, "b"), (Op.SAME, "short"))]
    ).pieces
    assert middle[1].text == long[:60] + " … " + long[-60:]
    assert middle[3].text == "short"


def test_what_is_shown_is_bounded():
    long = change_text([hunk((Op.ADDED, "word " * 1_000)) for _ in range(50)])
    assert long.is_cut
    assert sum(len(piece.text) for piece in long.pieces) == MAX_SHOWN_CHARACTERS
    assert long.words_added == 50_000
    many = change_text([hunk((Op.ADDED, "a"))] * 100_000)
    assert len(many.pieces) <= MAX_SHOWN_CHARACTERS


def test_no_difference_has_no_text():
    empty = change_text([])
    assert (empty.words, empty.pieces, empty.is_cut, empty.added_text) == (0, (), False, "")


def test_size_and_text_decide():
    assert wanted(min_words=5).wants("changed", "", EDIT)
    assert not wanted(min_words=6).wants("changed", "", EDIT)
    assert wanted(min_words=6).wants("gone", "", None)
    assert wanted(min_words=6).wants("back", "", EDIT)  # sizes are about changes only
    assert wanted(min_words=6).wants("changed", "", None)  # unknown: told rather than lost
    safely, open_ = search_pattern("(?i)SAFELY"), search_pattern("open")
    assert wanted(matches=safely).wants("changed", "", EDIT)
    assert not wanted(matches=open_).wants("changed", "The door", EDIT)  # removed, not added
    assert wanted(matches=open_).wants("changed", "Is it open?", EDIT)


def test_share_decides_about_changes_only():
    half = wanted(min_share=0.5)
    assert half.may_want("changed", "s", "https://a.org/", 0.5)
    assert not half.may_want("changed", "s", "https://a.org/", 0.49)
    assert half.may_want("changed", "s", "https://a.org/", None)
    assert half.may_want("gone", "s", "https://a.org/", 0.0)


def test_a_pattern_that_takes_much_memory_is_refused():
    with pytest.raises(ConfigError, match="does not compile"):
        search_pattern("a{1000}" * 100)


def test_hostile_text_is_searched_in_linear_time():
    # Of Python's own engine this takes the age of the universe.
    assert search_pattern("(a*)*b")("a" * 200_000) is None
    assert isinstance(search_pattern("a")("cat"), type(re2.search("a", "a")))
