"""`crawld bench NAME`: measure crawld and comparable programs in one run."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from crawld.bench import run as benchmarks
from crawld.bench.compare import changes, changes_text, read_result
from crawld.bench.result import as_json, as_text
from crawld.bench.run_all import run_all
from crawld.cli.logs import configure_logs
from crawld.cli.output import print_progress
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK


def bench(
    name: str,
    *,
    json_out: bool = False,
    quick: bool = False,
    known: int | None = None,
    hosts: int | None = None,
    days: float | None = None,
    seed: Sequence[int] | None = None,
    compare: Path | None = None,
) -> int:
    """Run a benchmark, or all, and print its result; return the exit code.

    Args:
        compare: an earlier result; its ratios are shown beside those of this run.
    """
    earlier = read_result(compare) if compare is not None else None
    # Some benchmarks run a daemon in this process; its log must not take part.
    configure_logs(style="console", level=lambda: "error")
    with _interrupted_by(signal.SIGTERM, signal.SIGHUP):
        if name == benchmarks.ALL:
            value = run_all(benchmarks.BENCHMARKS, quick=quick, progress=print_progress)
        else:
            value = benchmarks.run(
                name,
                quick=quick,
                progress=print_progress,
                known=known,
                hosts=hosts,
                days=days,
                seed=seed or None,
            )
    found = None if earlier is None else changes(earlier, value)
    if json_out:
        compared = {} if found is None else {"changes": [each._asdict() for each in found]}
        print(as_json(value | compared))
    else:
        tables = [] if found is None else [changes_text(found)]
        print("\n\n".join([*_tables(value), *tables]))
    return EXIT_INCOMPLETE if value.get("failed") else EXIT_OK


def _tables(value: dict[str, Any]) -> Iterator[str]:
    """Yield the table of each benchmark in a result, and the names of those that failed."""
    if value["name"] != benchmarks.ALL:
        yield as_text(value)
        return
    yield from map(as_text, value["results"].values())
    if value["failed"]:
        yield f"failed: {', '.join(value['failed'])}"


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
