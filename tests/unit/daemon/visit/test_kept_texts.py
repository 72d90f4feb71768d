"""Texts that wait for the search take no more than their memory."""

from crawld.daemon.visit.kept_texts import KeptTexts


def test_a_text_is_taken_once():
    texts = KeptTexts()
    texts.keep(b"a", "words")
    assert texts.take(b"b") is None
    assert texts.take(b"a") == "words"
    assert texts.take(b"a") is None


def test_the_oldest_make_room_and_one_too_large_is_not_kept():
    text = "x" * 1_000
    texts = KeptTexts(3 * text.__sizeof__())
    for key in (b"a", b"b", b"a", b"c", b"d"):
        texts.keep(key, text)
    assert [texts.take(key) is not None for key in (b"a", b"b", b"c", b"d")] == [1, 0, 1, 1]
    texts.keep(b"e", "x" * 10_000)
    assert texts.take(b"e") is None
