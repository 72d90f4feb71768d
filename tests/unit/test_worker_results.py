"""Connections on threads of their own keep nothing of a call that its caller has."""

import gc
import weakref

import apsw
import pytest

from crawld.workers import THREADS


class Large:
    """Stands for a large page."""


@pytest.fixture
async def connection():
    made = await THREADS.connect(":memory:", apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    yield made
    await made.aclose()


async def test_a_result_belongs_to_its_caller(connection):
    result = await connection.run(lambda _: Large())
    gone = weakref.ref(result)
    del result
    gc.collect()
    assert gone() is None


async def test_arguments_are_dropped_when_the_call_has_ended(connection):
    argument = Large()
    gone = weakref.ref(argument)
    assert (
        await connection.run(lambda _, *given, **named: len(given) + len(named), argument, a=1) == 2
    )
    del argument
    gc.collect()
    assert gone() is None


async def test_what_a_failed_call_held_is_dropped_with_its_error(connection):
    alive = []

    def fail(_):
        held = Large()
        alive.append(weakref.ref(held))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        await connection.run(fail)
    assert "fail" in [entry.name for entry in caught.traceback]
    del caught
    gc.collect()
    assert alive[0]() is None
