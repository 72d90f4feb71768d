"""Counts the work of a call, so that tests can show that work on remote text is linear.

Seconds depend on the machine and its load; steps do not.
"""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import apsw

import crawld

_PACKAGE = str(Path(crawld.__file__).parent)

_WHOLE_TEXT = frozenset(
    {
        *("casefold", "count", "decode", "encode", "expandtabs", "isascii", "isdigit", "isspace"),
        *("lower", "lstrip", "partition", "replace", "rpartition", "rsplit", "rstrip", "split"),
        *("splitlines", "strip", "swapcase", "title", "translate", "upper", "zfill"),
    }
)
"""Methods of str and bytes that read, or copy, all of their text."""

_STEPS_PER_LINE = 6
"""A line runs about six bytecodes; to count them one by one takes four times as long."""

_CHARACTERS_PER_STEP = 16
"""C code reads this many characters in about the time of one bytecode."""

_Input = TypeVar("_Input")


def count_steps(call: Callable[..., object], *args: Any, **kwargs: Any) -> int:
    """Return the work of one call: the same number on every machine and at every run.

    It is about the number of bytecodes executed in files of crawld: six for each line, and for each
    round of a loop or comprehension within a line. To them comes a step for each sixteen characters
    of a text whose methods read all of it (`lower`, `split`, `replace` ...).

    It does not see what one call of other C code costs: slices, `find` with offsets (which may or
    may not read the rest), concatenation, `re`, numpy, Lexbor. A quadratic cost must be impossible
    there by construction: patterns on remote text are google-re2 or possessive, and consume what
    they have read; no loop takes a slice of the rest, counts in it, or searches it for what it may
    not contain. Caches (`lru_cache`) make a second call cheaper: pass fresh text.
    """
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        if event == "call":
            if not frame.f_code.co_filename.startswith(_PACKAGE):
                return None
        elif event == "line":
            steps += _STEPS_PER_LINE
        return trace

    def profile(frame: FrameType, event: str, function: Any) -> None:
        nonlocal steps
        if event != "c_call" or not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        text = getattr(function, "__self__", None)
        if isinstance(text, str | bytes) and function.__name__ in _WHOLE_TEXT:
            steps += len(text) // _CHARACTERS_PER_STEP

    old_trace, old_profile = sys.gettrace(), sys.getprofile()
    collects = gc.isenabled()
    gc.disable()  # finalizers of crawld would count
    sys.setprofile(profile)
    sys.settrace(trace)
    try:
        call(*args, **kwargs)
    finally:
        sys.settrace(old_trace)
        sys.setprofile(old_profile)
        if collects:
            gc.enable()
    return steps


def sql_steps(connection: apsw.Connection, call: Callable[..., object], *args: Any) -> int:
    """Return the steps of SQLite's virtual machine in `call(connection, *args)`."""
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    connection.set_progress_handler(count, 1)
    try:
        call(connection, *args)
    finally:
        connection.set_progress_handler(None)
    return steps


def assert_linear(
    make_input: Callable[[int], _Input],
    call: Callable[[_Input], object],
    *,
    size: int = 500,
    doublings: int = 3,
    factor: float = 2.3,
) -> None:
    """Assert that the work of `call(make_input(size))` grows no faster than its size.

    The size is doubled `doublings` times; each time the steps may at most double, with a little
    (`factor`) for logarithms and for what is done once. A cap makes them grow less. Read what
    `count_steps` does not see.
    """
    call(make_input(1))  # imports, and caches that every call fills
    steps = count_steps(call, make_input(size))
    for _ in range(doublings):
        size *= 2
        after = count_steps(call, make_input(size))
        assert after <= factor * steps + 500, f"{after} steps at size {size}, {steps} at half of it"
        steps = after
