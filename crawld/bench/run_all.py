"""`crawld bench all`: every benchmark, each in its own process, one after the other.

A process each, so that none inherits the memory, threads or settings of another. One that fails, or
whose peers are not installed, does not stop the others.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterable

from crawld.bench import crawld_process
from crawld.bench.result import machine
from crawld.bench.run import Progress

_STOP_S = 60.0


def run_all(names: Iterable[str], *, quick: bool, progress: Progress) -> dict[str, object]:
    """Run benchmarks; return their results by name, and the exit codes of those that failed."""
    results: dict[str, object] = {}
    failed: dict[str, int] = {}
    for name in names:
        progress(f"== {name}")
        code, output = _run(name, quick=quick)
        if code:
            failed[name] = code
        else:
            results[name] = json.loads(output)
    return {"name": "all", "results": results, "failed": failed, "machine": machine()}


def _run(name: str, *, quick: bool) -> tuple[int, str]:
    """Return the exit code of a benchmark and what it printed; its progress goes to our stderr."""
    command = crawld_process.command("bench", name, "--json", *(["--quick"] if quick else []))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            output, _ = process.communicate()
        except BaseException:
            # It ends its programs and removes its folder.
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return process.returncode, output
