"""`crawld bench NAME`: measure crawld and comparable programs in one run."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from crawld.bench import run as benchmarks
from crawld.bench.result import as_json, as_text
from crawld.cli.logs import configure_logs
from crawld.cli.output import print_progress


def bench(
    name: str,
    *,
    json_out: bool = False,
    quick: bool = False,
    known: int | None = None,
    hosts: int | None = None,
    days: float | None = None,
    seed: Sequence[int] | None = None,
) -> None:
    """Run a benchmark and print its result."""
    # Some benchmarks run a daemon in this process; its log must not take part.
    configure_logs(style="console", level=lambda: "error")
    with _interrupted_by(signal.SIGTERM, signal.SIGHUP):
        value = benchmarks.run(
            name,
            quick=quick,
            progress=print_progress,
            known=known,
            hosts=hosts,
            days=days,
            seed=seed or None,
        )
    print(as_json(value) if json_out else as_text(value))


@contextmanager
def _interrupted_by(*numbers: signal.Signals) -> Iterator[None]:
    """Let signals interrupt the block as Ctrl-C does: programs are stopped and folders removed.

    Raises:
        SystemExit: one of the signals came.
    """
    came: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        came.append(number)
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)  # nothing interrupts the removal
        signal.raise_signal(signal.SIGINT)

    if not callable(signal.getsignal(signal.SIGINT)):
        # Shells let background programs ignore Ctrl-C, and trio interrupts its tasks by no other.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for each in numbers:
        signal.signal(each, interrupt)
    try:
        yield
    except BaseException as error:
        if came:
            raise SystemExit(128 + came[0]) from error
        raise
