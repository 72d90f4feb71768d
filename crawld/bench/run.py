"""The list of benchmarks, and how to run one.

Each benchmark is a module with `run(*, quick, progress)`. It is imported only when it runs, because
it may need packages of the bench extra.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol, cast

from crawld.errors import OperatorError
from crawld.extras import install_command

Progress = Callable[[str], None]

BENCHMARKS = {
    "fetch": "crawld.bench.fetch",
    "change": "crawld.bench.change",
    "allocate": "crawld.bench.allocate",
    "select": "crawld.bench.select",
    "hints": "crawld.bench.hints",
    "stream": "crawld.bench.stream",
    "serve": "crawld.bench.serve",
    "replica": "crawld.bench.replica",
    "export": "crawld.bench.export",
    "hostile": "crawld.bench.hostile",
    "control": "crawld.bench.control",
    "seen": "crawld.bench.seen",
    "profiles": "crawld.bench.profiles",
    "scale": "crawld.bench.scale",
    "plugins": "crawld.bench.plugins",
}

ALL: Final = "all"
"""Stands for every benchmark on the command line (`run_all.py`)."""


class Benchmark(Protocol):
    """A benchmark module."""

    def run(self, *, quick: bool, progress: Progress) -> dict[str, object]:
        """Measure and return the value of `result.build_result`.

        Args:
            quick: run for seconds or minutes only; the figures mean little.
            progress: called with one line of progress at a time.
        """


SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "seen": ("known",),
    "scale": ("known",),
    "replica": ("hosts", "days", "seed"),
    "profiles": ("hosts", "seed"),
}
"""The options of the benchmarks whose size can be chosen."""


class SizedBenchmark(Protocol):
    """A benchmark module whose size can be chosen."""

    def run(self, *, quick: bool, progress: Progress, **sizes: object) -> dict[str, object]:
        """Measure one size; see `Benchmark.run`."""


def run(name: str, *, quick: bool, progress: Progress, **sizes: object) -> dict[str, object]:
    """Run one benchmark by its name.

    Args:
        sizes: options as in `SIZES`; None: not given.

    Raises:
        OperatorError: there is no such benchmark, it has no such option, or a package that it needs
            is not installed.
    """
    if name not in BENCHMARKS:
        raise OperatorError(
            f"there is no benchmark {name!r}", hint=f"there are: {', '.join(BENCHMARKS)}"
        )
    try:
        module = importlib.import_module(BENCHMARKS[name])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "crawld":
            raise
        raise OperatorError(
            f"the benchmark {name} needs the package {error.name}",
            hint=install_command("bench"),
        ) from None
    given = {option: value for option, value in sizes.items() if value is not None}
    for option in given:
        if option not in SIZES.get(name, ()):
            having = next(each for each, options in SIZES.items() if option in options)
            raise OperatorError(
                f"the benchmark {name} has no --{option}", hint=f"`{having}` has it"
            )
    if given:
        return cast("SizedBenchmark", module).run(quick=quick, progress=progress, **given)
    return cast("Benchmark", module).run(quick=quick, progress=progress)
