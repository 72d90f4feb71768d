import doctest

from crawld.core.dust import pace
from crawld.core.dust.pace import ANSWERED_SHARE, LONGEST_S, SHORTEST_S, pause_s


def test_a_fast_crawl_is_examined_many_times_before_two_hundredths_of_it():
    """Forty thousand URLs: by one visit in a second, 800 of them are 2 %."""
    runs = [0.0, SHORTEST_S]
    while runs[-1] < 800.0:
        last_at, now = runs[-2:]
        runs.append(now + pause_s(int(now), int(now - last_at), now - last_at))
    assert len(runs) >= 10


def test_a_host_that_stands_still_is_examined_rarely():
    assert pause_s(1_000_000, 0, 600.0) == LONGEST_S
    assert pause_s(1_000_000, 600, 600.0) == LONGEST_S


def test_what_was_asked_for_is_read_when_it_was_visited():
    assert pause_s(2_000, 300, 300.0, asked=100) == 100.0
    assert pause_s(2_000, 300, 300.0, asked=1) == 2_000 * ANSWERED_SHARE
    assert pause_s(2_000, 300, 300.0, asked=4_000) == pause_s(2_000, 300, 300.0)
    assert pause_s(2_000, 0, 300.0, asked=40) == LONGEST_S


def test_examples():
    assert doctest.testmod(pace).failed == 0
