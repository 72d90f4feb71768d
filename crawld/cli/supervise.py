"""`crawld run --supervise`: a small parent that restarts the daemon, for machines without systemd.

It imports nothing of the daemon. The child is a `crawld run` in the same process group; signals to
the parent are passed on, and the kernel sends the child SIGTERM when the parent dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from crawld.errors import EXIT_OK, EXIT_OPERATOR

FIRST_PAUSE_S: Final = 1.0
"""Pause before the first restart; it doubles with each."""

MAX_PAUSE_S: Final = 60.0

STEADY_S: Final = 600.0
"""A daemon that ran for so long is restarted after the first pause again."""

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
_AWAITED: Final = frozenset({*_PASSED_ON, signal.SIGCHLD})

_PR_SET_PDEATHSIG: Final = 1

_ENDED_BY_SIGNAL: Final = 128
"""Added to the number of the signal that ended the child, as shells do."""


def supervise(config: Path, socket: Path | None) -> int:
    """Run the daemon of a config as a child until it ends by itself or is told to; return its code.

    A clean end (0) and an error that only the operator can fix (2) end the parent too. After any
    other end the daemon is started again, however often.
    """
    command = [sys.executable, "-P", "-m", "crawld.cli.main", "run", "-c", str(config)]
    if socket is not None:
        command += ["--socket", str(socket)]
    return Supervisor(command).run()


class Supervisor:
    """Keeps one child running.

    Args:
        command: program and arguments of the child.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = False

    def run(self) -> int:
        """Run until the child needs no restart; return its exit code."""
        usual = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        try:
            return self._run(usual)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)

    def _run(self, usual: set[int | signal.Signals]) -> int:
        pause_s = FIRST_PAUSE_S
        while True:
            began_s = time.monotonic()
            code = self._run_child(usual)
            if self._is_stopping or code in (EXIT_OK, EXIT_OPERATOR):
                return code if code >= 0 else _ENDED_BY_SIGNAL - code
            if time.monotonic() - began_s >= STEADY_S:
                pause_s = FIRST_PAUSE_S
            print(
                f"crawld: the daemon ended ({_end_text(code)}); restart in {pause_s:g} s",
                file=sys.stderr,
                flush=True,
            )
            self._wait(pause_s)
            if self._is_stopping:
                return EXIT_OK
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def _run_child(self, usual: set[int | signal.Signals]) -> int:
        parent = os.getpid()

        def prepare() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(EXIT_OK)  # the parent died before the kernel was told

        # One thread and little memory: what runs between fork and exec is safe here.
        self._child = subprocess.Popen(self._command, preexec_fn=prepare)
        while (code := self._child.poll()) is None:
            self._pass_on(signal.sigwaitinfo(_AWAITED))
        self._child = None
        return code

    def _wait(self, pause_s: float) -> None:
        until_s = time.monotonic() + pause_s
        while not self._is_stopping and (left_s := until_s - time.monotonic()) > 0:
            received = signal.sigtimedwait(_AWAITED, left_s)
            if received is not None:
                self._pass_on(received)

    def _pass_on(self, received: signal.struct_siginfo) -> None:
        if received.si_signo in _STOPPING:
            self._is_stopping = True
        # The terminal (a positive code: the kernel) sends Ctrl-C to the child too.
        from_process = received.si_code <= 0
        if received.si_signo in _PASSED_ON and from_process and self._child is not None:
            self._child.send_signal(received.si_signo)


def _end_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
