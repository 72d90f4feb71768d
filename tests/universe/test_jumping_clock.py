"""The clock of a universe moves from deadline to deadline, and not while a task can run."""

import trio

from crawld.universe.jumping_clock import JumpingClock

YEAR_S = 365 * 86_400.0


def test_it_jumps_to_each_deadline_in_order():
    seen = []

    async def sleep(seconds):
        await trio.sleep(seconds)
        seen.append((seconds, trio.current_time()))

    async def run():
        async with trio.open_nursery() as nursery:
            for seconds in (YEAR_S, 2.0, 1.0):
                nursery.start_soon(sleep, seconds)
        with trio.move_on_after(3.0):
            await trio.sleep_forever()
        return trio.current_time()

    assert trio.run(run, clock=JumpingClock()) == YEAR_S + 3.0
    assert seen == [(1.0, 1.0), (2.0, 2.0), (YEAR_S, YEAR_S)]


def test_it_stands_while_a_task_can_run():
    async def run():
        with trio.move_on_after(1.0):
            for _ in range(100):
                await trio.lowlevel.checkpoint()
        return trio.current_time()

    assert trio.run(run, clock=JumpingClock()) == 0.0


def test_its_own_sleep_ends_in_order_with_deadlines_and_by_a_cancellation():
    clock, seen = JumpingClock(), []

    async def sleep(seconds, own):
        if own:
            await clock.sleep(seconds)
        else:
            await trio.sleep(seconds)
        seen.append(trio.current_time())

    async def run():
        async with trio.open_nursery() as nursery:
            for seconds, own in ((4.0, True), (1.0, True), (2.0, False), (1.0, True)):
                nursery.start_soon(sleep, seconds, own)
            with trio.move_on_after(3.0) as scope:
                await clock.sleep(9.0)
            seen.append(("cancelled", trio.current_time(), scope.cancelled_caught))
        await clock.sleep(10.0)
        return trio.current_time()

    assert trio.run(run, clock=clock) == 14.0
    assert seen == [1.0, 1.0, 2.0, ("cancelled", 3.0, True), 4.0]
