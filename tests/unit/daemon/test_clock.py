"""The two clocks and what is converted between them."""

import trio

from crawld.daemon.clock import Clock

NOW = 1_767_225_600.0
"""Doubles of this size are 2.4e-7 apart."""


async def test_times_are_converted_to_and_fro(autojump_clock):
    clock = Clock(lambda: NOW + trio.current_time())
    await trio.sleep(5.0)
    assert clock.to_wall(trio.current_time()) == clock.now() == NOW + 5.0
    assert clock.to_wall(trio.current_time() - 2.0) == NOW + 3.0
    assert clock.to_monotonic(NOW + 7.5) == 7.5


async def test_a_time_to_come_is_later_than_now_however_near(autojump_clock):
    """A page put back until then would be due at once, again and again."""
    clock = Clock(lambda: NOW)
    for ahead_s in (1e-12, 1e-9, 1e-7):
        assert clock.to_wall(trio.current_time() + ahead_s) > clock.now()
