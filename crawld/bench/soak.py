"""A long run on real sockets: does a daemon's need of memory, files and disk grow with time?

A simulated web in its own process serves hosts that change, each on its own loopback address. The
daemon does all its normal work. At equal times its memory, open files, the sizes of its database
and log (WAL), the lateness of its slots and its visits are read from outside. The first part of the
run, in which pages are new and caches fill, is settling: slopes are those of the rest.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from crawld.bench import crawld_process
from crawld.bench.process import program_error
from crawld.bench.result import machine
from crawld.bench.simweb_process import run_simweb
from crawld.core.units import DAY_S
from crawld.simweb.demo import loopback_addresses
from crawld.simweb.ledger import Ledger

SETTLING_S: Final = 1_200.0
SETTLING_SHARE: Final = 0.5
"""Settling ends after `SETTLING_S`, in a short run after this share of it."""

SAMPLES: Final = 600
LEAST_SAMPLE_S: Final = 2.0
PAGES: Final = 20
"""Pages of each host."""

MAX_WAL_MB: Final = 256.0
MAX_RSS_SLOPE_MB_PER_H: Final = 1.0
JUDGED_S: Final = 3_600.0
"""Time after settling from which on the slope of the memory is judged; before, noise hides it."""

FIGURES: Final = {
    "rss_mb": "memory, MB",
    "open_files": "open files",
    "file_mb": "database, MB",
    "wal_mb": "log (WAL), MB",
    "lateness_p99_ms": "lateness of slots, p99, ms",
    "visits_per_s": "visits a second",
}
"""What is drawn, with its label."""


@dataclass(frozen=True, slots=True)
class SoakSample:
    """One look at the daemon.

    Attributes:
        at_h: hours since its start.
        file_mb, wal_mb: sizes of the database and its log; MB are 2^20 bytes.
        lateness_p99_ms: of its last few thousand requests.
        visits: since its start.
        visits_per_s: since the sample before.
    """

    at_h: float
    rss_mb: float
    open_files: int
    file_mb: float
    wal_mb: float
    lateness_p99_ms: float
    visits: int
    visits_per_s: float


@dataclass(frozen=True, slots=True)
class SoakLoad:
    """Size of the run.

    Attributes:
        rate: requests a second to all hosts together.
        hosts: number of hosts; each has its delay.
    """

    hours: float
    rate: float = 200.0
    hosts: int = 400

    @property
    def delay_s(self) -> float:
        """Return the delay of each host."""
        return self.hosts / self.rate


Told = Callable[[dict[str, object]], None]


def soak(
    directory: Path,
    load: SoakLoad,
    *,
    told: Told = lambda result: None,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, object]:
    """Run a daemon for hours; return samples, slopes and faults.

    A KeyboardInterrupt ends the run early, with the result so far.

    Args:
        directory: an empty folder.
        told: gets the result so far, at each sample.
    """
    ledger_file = directory / "web" / "ledger.jsonl"
    arguments = ["--addresses", str(load.hosts), "--pages", str(PAGES), "--page-bytes", "6000"]
    # From a change every four rounds of visits to one in a day.
    round_s = load.delay_s * PAGES
    arguments += ["--change-interval-s", f"{4 * round_s:.0f}", f"{max(DAY_S, 8 * round_s):.0f}"]
    samples: list[SoakSample] = []
    exit_code: int | None = None
    with run_simweb(directory / "web", *arguments, "--ledger", str(ledger_file)) as (web, port):
        seeds = [f"http://{address}:{port}/" for address in loopback_addresses(load.hosts)]
        tables = {
            "politeness": f"host_delay_s = {load.delay_s:.3f}",
            "schedule": f"min_revisit_s = {max(1.0, round_s / 4):.0f}",
        }
        config = crawld_process.write_config(directory, "soak", seeds, tables)
        with crawld_process.run_daemon_process(config) as daemon:
            daemon.wait_answering()
            try:
                for sample in _samples(daemon, directory, load.hours):
                    samples.append(sample)
                    told(_result(load, samples))
                    progress(
                        f"{sample.at_h:.3f} h: {sample.rss_mb:.0f} MB, {sample.open_files} files, "
                        f"WAL {sample.wal_mb:.1f} MB, {sample.visits_per_s:.0f} visits a second"
                    )
            except KeyboardInterrupt:
                progress("interrupted: the result is that of the time so far")
            exit_code = daemon.child.stop(signal.SIGTERM).exit_code
        web.stop(signal.SIGTERM)
    early = len(Ledger.read(ledger_file).violations(delay_s=load.delay_s))
    return _result(load, samples, exit_code=exit_code, early_requests=early)


def _samples(
    daemon: crawld_process.DaemonProcess, directory: Path, hours: float
) -> Iterator[SoakSample]:
    began_s = time.monotonic()
    every_s = max(LEAST_SAMPLE_S, 3_600.0 * hours / SAMPLES)
    before: SoakSample | None = None
    while (at_h := (time.monotonic() - began_s) / 3_600.0) < hours:
        if not daemon.child.running(for_ms=int(1_000 * every_s)):
            raise program_error("crawld", "ended", daemon.child)
        at_h = (time.monotonic() - began_s) / 3_600.0
        found = _look(daemon, directory, at_h, before)
        if found is not None:
            before = found
            yield found


def _look(
    daemon: crawld_process.DaemonProcess, directory: Path, at_h: float, before: SoakSample | None
) -> SoakSample | None:
    """Return a sample; None if the daemon does not answer in time."""
    status = daemon.status()
    if status is None:
        return None
    slots, visits = status["slots"], crawld_process.visits_made(status)
    assert isinstance(slots, dict)
    since = (before.visits, before.at_h) if before is not None else (0, 0.0)
    database = crawld_process.database_path(directory)
    return SoakSample(
        at_h=at_h,
        rss_mb=daemon.child.rss_mb(),
        open_files=len(os.listdir(f"/proc/{status['pid']}/fd")),
        file_mb=_size_mb(database),
        wal_mb=_size_mb(database.with_name(f"{database.name}-wal")),
        lateness_p99_ms=float(slots["lateness_p99_ms"]),
        visits=visits,
        visits_per_s=(visits - since[0]) / max(3_600.0 * (at_h - since[1]), 1e-9),
    )


def _size_mb(path: Path) -> float:
    return path.stat().st_size / 2**20 if path.exists() else 0.0


def slope_per_h(hours: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Return the slope of a line through values, by least squares, and its standard error.

    The residuals of neighbouring samples are not independent: the error is a lower bound.
    """
    if len(hours) < 3:
        return 0.0, float("inf")
    x = np.asarray(hours) - np.mean(hours)
    y = np.asarray(values, dtype=float)
    slope = float(x @ y / (x @ x))
    residuals = y - y.mean() - slope * x
    return slope, float(np.sqrt(residuals @ residuals / (len(x) - 2) / (x @ x)))


def _result(
    load: SoakLoad,
    samples: Sequence[SoakSample],
    *,
    exit_code: int | None = None,
    early_requests: int | None = None,
) -> dict[str, object]:
    # Of the time it had: the run may have been ended early.
    run_h = samples[-1].at_h if samples else 0.0
    settled_h = min(SETTLING_S / 3_600.0, SETTLING_SHARE * run_h)
    settled = [sample for sample in samples if sample.at_h >= settled_h]
    hours = [sample.at_h for sample in settled]
    slopes = {
        name: slope_per_h(hours, [getattr(sample, name) for sample in settled]) for name in FIGURES
    }
    result: dict[str, object] = {
        "load": asdict(load),
        "machine": machine(),
        "settled_h": settled_h,
        "slopes_per_h": {name: round(slope, 4) for name, (slope, _) in slopes.items()},
        "slope_errors_per_h": {
            name: None if error == float("inf") else round(error, 4)
            for name, (_, error) in slopes.items()
        },
        "maxima": {
            name: max((getattr(sample, name) for sample in samples), default=0) for name in FIGURES
        },
        "mean_visits_per_s": _mean([sample.visits_per_s for sample in settled]),
        "early_requests": early_requests,
        "exit_code": exit_code,
        "samples": [asdict(sample) for sample in samples],
    }
    return result | {"faults": _faults(result, hours)}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _faults(result: Mapping[str, object], hours: Sequence[float]) -> list[str]:
    """Return what is wrong, a line each."""
    slopes, maxima = result["slopes_per_h"], result["maxima"]
    assert isinstance(slopes, dict)
    assert isinstance(maxima, dict)
    found = []
    judged = bool(hours) and hours[-1] - hours[0] >= JUDGED_S / 3_600.0
    if judged and slopes["rss_mb"] >= MAX_RSS_SLOPE_MB_PER_H:
        found.append(f"memory grows by {slopes['rss_mb']:.2f} MB an hour")
    if maxima["wal_mb"] > MAX_WAL_MB:
        found.append(f"the log grew to {maxima['wal_mb']:.0f} MB")
    if result["early_requests"]:
        found.append(f"{result['early_requests']} requests came sooner than the delay")
    if result["exit_code"]:
        found.append(f"the daemon ended with {result['exit_code']}")
    return found


def plot(result: Mapping[str, object], path: Path) -> None:
    """Draw each figure over time as SVG, with the line of its slope.

    Raises:
        OperatorError: matplotlib is not installed.
    """
    from crawld.lab.plot import plot_panels

    samples, slopes, errors = (
        result[name] for name in ("samples", "slopes_per_h", "slope_errors_per_h")
    )
    assert isinstance(samples, list)
    assert isinstance(slopes, dict)
    assert isinstance(errors, dict)
    hours = [float(sample["at_h"]) for sample in samples]
    panels = [
        (
            f"{label}: {slopes[name]:+.2f} (±{errors[name] or 0.0:.2f}) an hour",
            [float(sample[name]) for sample in samples],
        )
        for name, label in FIGURES.items()
    ]
    plot_panels(hours, panels, path, x_label="hours", settled=float(str(result["settled_h"])))
