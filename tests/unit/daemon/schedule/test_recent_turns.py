"""Turns of the last hour: counted by minute, the newest kept in full."""

from crawld.daemon.schedule.recent_turns import KEPT, MINUTES, RecentTurns


def test_turns_are_counted_by_minute():
    turns = RecentTurns()
    for at in (0.0, 30.0, 61.0, 300.0):
        turns.add("a.test", at, at + 0.5)
    counts = turns.per_minute(301.0)
    assert len(counts) == MINUTES
    assert counts[-6:] == [2, 1, 0, 0, 0, 1]
    assert sum(turns.per_minute(301.0 + 3_600.0)) == 0
    turns.add("a.test", 9_999.0, 10_000.0)
    assert turns.per_minute(10_000.0)[-1] == 1


def test_the_rate_is_that_of_the_last_minute():
    turns = RecentTurns()
    assert turns.per_s(100.0) == 0.0
    for second in range(120):
        turns.add("a.test", second, second + 0.5)
    assert turns.per_s(120.0) == 1.0
    assert turns.per_s(1_000.0) == 0.0


def test_the_rate_is_right_when_more_were_made_than_are_kept():
    turns = RecentTurns()
    for number in range(2 * KEPT):
        turns.add("a.test", number / 1_000, number / 1_000)
    assert abs(turns.per_s(2 * KEPT / 1_000) - 1_000) < 5


def test_the_newest_turns_of_a_host_are_found():
    turns = RecentTurns()
    for number in range(KEPT + 10):
        turns.add(f"{number % 2}.test", float(number), number + 0.5)
    assert [span.began_at for span in turns.of_host("0.test", 2)] == [KEPT + 6.0, KEPT + 8.0]
    found = turns.by_host({"1.test", "2.test"}, 1)
    assert [span.began_at for span in found["1.test"]] == [KEPT + 9.0]
    assert found["2.test"] == []
