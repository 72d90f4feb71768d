"""`crawld lab soak`: hours of a daemon on real sockets."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from crawld.cli.lab_output import write_json
from crawld.cli.output import with_exit_code
from crawld.errors import EXIT_OK

EXIT_FAULTS = 1


@with_exit_code
def soak(
    *,
    hours: Annotated[float, typer.Option(min=0.01, help="Length of the run.")] = 2.0,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second, all hosts.")] = 200.0,
    hosts: Annotated[int, typer.Option(min=1, max=60_000, help="Hosts on loopback.")] = 400,
    json_path: Annotated[
        Path | None, typer.Option("--json", help="Result file; written at each sample.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot over time, SVG.")] = None,
) -> int:
    """Run a daemon for hours, and tell how its memory, files and disk grow; exit with 1 if wrongly.

    Ctrl-C and SIGTERM end the run early, with the result so far.
    """
    from crawld.bench.soak import SoakLoad
    from crawld.bench.soak import plot as plot_soak
    from crawld.bench.soak import soak as run_soak

    def keep(result: dict[str, object]) -> None:
        if json_path is not None:
            write_json(json_path, result)

    for number in (signal.SIGINT, signal.SIGTERM):
        # Shells let background programs ignore Ctrl-C.
        signal.signal(number, signal.default_int_handler)
    load = SoakLoad(hours=hours, rate=rate, hosts=hosts)
    with tempfile.TemporaryDirectory(prefix="crawld-soak-") as folder:
        result: dict[str, Any] = run_soak(Path(folder), load, told=keep, progress=_tell)
    keep(result)
    if plot is not None:
        plot_soak(result, plot)
    for name, slope in result["slopes_per_h"].items():
        error, most = result["slope_errors_per_h"][name], result["maxima"][name]
        print(f"{name:>16}: {slope:+.3f} (± {error}) an hour, {most:.1f} at most")
    print(f"mean_visits_per_s: {result['mean_visits_per_s']:.1f}")
    print(f"early_requests: {result['early_requests']}")
    print("\n".join(result["faults"]) or "no faults")
    return EXIT_FAULTS if result["faults"] else EXIT_OK


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
