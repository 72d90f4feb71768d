"""Texts that wait for the search take no more than their memory."""

import trio
import trio.testing

from crawld.daemon.visit.kept_texts import ROOM_S, KeptTexts


def test_a_text_is_taken_once():
    texts = KeptTexts()
    texts.keep(b"a", "words")
    assert texts.take(b"b") is None
    assert texts.take(b"a") == "words"
    assert texts.take(b"a") is None


def test_what_finds_no_room_is_not_kept_so_that_a_job_behind_finds_what_it_comes_to_first():
    text = "x" * 1_000
    texts = KeptTexts(most_bytes=3 * text.__sizeof__() + 1)
    for key in (b"a", b"b", b"a", b"c", b"d"):
        texts.keep(key, text)
    assert [texts.take(key) is not None for key in (b"b", b"a", b"c", b"d")] == [1, 1, 1, 0]
    texts.keep(b"e", "x" * 10_000)
    assert texts.take(b"e") is None
    texts.keep(b"f", text)
    assert texts.take(b"f") == text


def test_what_two_runs_have_not_taken_is_forgotten():
    texts = KeptTexts(full_bytes="x".__sizeof__())
    texts.keep(b"a", "x")
    texts.keep(b"b", "x")
    texts.end_run()
    texts.keep(b"c", "x")
    texts.keep(b"b", "y")
    assert texts.is_full
    texts.end_run()
    assert texts.is_full
    texts.end_run()
    assert not texts.is_full
    assert texts.take(b"b") is None
    texts.keep(b"d", "x")
    texts.end_run()
    assert texts.take(b"d") == "x"


async def test_a_full_store_of_texts_makes_visits_wait_until_one_is_taken(autojump_clock):
    texts = KeptTexts("x".__sizeof__())
    await texts.wait_for_room()
    texts.keep(b"a", "x")
    texts.keep(b"b", "x")
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(texts.wait_for_room)
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 3
        assert texts.take(b"a") == "x"
        began_at = trio.current_time()
    assert trio.current_time() == began_at


async def test_no_visit_waits_long_for_texts_that_nobody_takes(autojump_clock):
    texts = KeptTexts("x".__sizeof__())
    texts.keep(b"a", "x")
    texts.keep(b"b", "x")
    began_at = trio.current_time()
    await texts.wait_for_room()
    assert trio.current_time() == began_at + ROOM_S
