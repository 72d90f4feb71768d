"""How long the event loop stands still, and what is blamed."""

import pytest
import structlog
import trio

from crawld.daemon.stall_meter import WINDOW_S, StallMeter


async def stop_the_loop(meter, clock, seconds, page=None):
    """Hold the event loop for some time of its clock, as one step of a task."""
    await trio.lowlevel.checkpoint()
    meter.page = page
    clock.jump(seconds)
    await trio.lowlevel.checkpoint()


async def run_in(name, call, *args):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, *args, name=name)


async def test_the_longest_step_of_a_pass_is_blamed_with_its_page(mock_clock):
    meter = StallMeter()
    with meter.installed():
        await run_in("turn of a.test", stop_the_loop, meter, mock_clock, 0.2, "http://a.test/x")
        await run_in("turn of b.test", stop_the_loop, meter, mock_clock, 0.1)
    assert meter.longest.duration_s == pytest.approx(0.2)
    assert meter.longest.by == "turn of a.test: http://a.test/x"


async def test_stalls_of_the_start_are_forgotten(mock_clock):
    meter = StallMeter()
    with meter.installed():
        await stop_the_loop(meter, mock_clock, 0.2)
        await trio.lowlevel.checkpoint()
        meter.forget()
        assert (meter.longest.duration_s, meter.recent.duration_s) == (0.0, 0.0)
        await run_in("turn of a.test", stop_the_loop, meter, mock_clock, 0.1)
    assert meter.longest.by == meter.recent.by == "turn of a.test"


async def test_a_page_is_blamed_for_the_step_that_analysed_it_only(mock_clock):
    meter, task = StallMeter(), trio.lowlevel.current_task()
    with meter.installed():
        meter.after_io_wait(0.0)
        meter.before_task_step(task)
        meter.page = "http://a.test/x"
        meter.before_task_step(task)
        mock_clock.jump(0.2)
        meter.before_io_wait(0.0)
    assert meter.longest.by == task.name


async def test_steps_of_one_pass_add_up(mock_clock):
    meter = StallMeter()
    with meter.installed():
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(
                    stop_the_loop, meter, mock_clock, 0.01 + number / 1e4, name=f"task {number}"
                )
    assert meter.longest.duration_s >= 0.1
    assert meter.longest.by == "task 9"


async def test_a_late_wake_up_is_blamed_on_what_the_threads_analyse(mock_clock):
    meter = StallMeter()
    with meter.installed():
        with meter.on_thread("http://a.test/large"):
            meter.before_io_wait(0.1)
            mock_clock.jump(2.1)
            meter.after_io_wait(0.1)
        assert meter.longest.duration_s == pytest.approx(2.0)
        assert meter.longest.by == "a thread: http://a.test/large"
        meter.before_io_wait(5.0)
        mock_clock.jump(5.0)
        meter.after_io_wait(5.0)
        assert meter.longest.duration_s == pytest.approx(2.0)
        meter.before_io_wait(0.1)
        mock_clock.jump(3.1)
        meter.after_io_wait(0.1)
        assert meter.longest.by == "a thread or the machine"


async def test_recent_stalls_are_forgotten_and_the_longest_is_kept(autojump_clock):
    meter = StallMeter()
    with meter.installed():
        await run_in("old", stop_the_loop, meter, autojump_clock, 3.0)
        assert (meter.longest.by, meter.recent.by) == ("old", "old")
        await trio.sleep(WINDOW_S)
        await run_in("new", stop_the_loop, meter, autojump_clock, 1.0)
        assert meter.recent.by == "old"
        await trio.sleep(WINDOW_S)
        assert (meter.longest.by, meter.recent.by) == ("old", "new")
        await trio.sleep(3 * WINDOW_S)
        assert (meter.longest.by, meter.recent.by) == ("old", "")


async def test_a_stall_of_a_second_is_logged(mock_clock):
    meter = StallMeter()
    with structlog.testing.capture_logs() as logs, meter.installed():
        await run_in("short", stop_the_loop, meter, mock_clock, 0.9)
        await run_in("long", stop_the_loop, meter, mock_clock, 1.5, "http://a.test/" + "x" * 8_000)
    assert [(each["event"], each["by"][:20]) for each in logs] == [
        ("loop_stalled", "long: http://a.test/")
    ]
    assert len(logs[0]["by"]) <= 300
