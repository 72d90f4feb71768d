"""Start Python programs of crawld by fork from a process that has imported them.

The imports of a daemon take 1.2 CPU seconds, a fork takes milliseconds. A program runs as by
`python -m MODULE`: its module is executed as `__main__`, with its own arguments, environment,
directory, output, session and exit code. It only shares the imported modules, so tests of the
start itself, of signals during it or of its imports execute the program instead.

One server per process of pytest. It ends with it, and a program with its server (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from crawld.net.tls import client_context

IMPORTED = (
    *("crawld.cli.main", "crawld.cli.run", "crawld.cli.mirror", "crawld.cli.mirror_view"),
    *("crawld.cli.serve", "crawld.cli.crawlctl", "crawld.cli.watch", "crawld.cli.demo"),
    *("crawld.cli.export", "crawld.export.static", "crawld.cli.import_"),
    *("crawld.daemon.api.server", "crawld.daemon.dashboard.app", "crawld.simweb.__main__"),
    *("crawld.daemon.hints.finder", "crawld.daemon.hints.wikis", "crawld.daemon.hints.events"),
    *("pydantic.v1", "anyio._backends._trio", "apsw.aio", "numpy.random", "encodings.idna"),
)
"""Modules that the server imports; with them come nearly all others."""

START_S = 120.0
MESSAGE_BYTES = 256 * 1024
_PR_SET_PDEATHSIG = 1


class ForkedProgram:
    """A program started by the server.

    Attributes:
        pid: its process id, also the id of its group.
    """

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._code: int | None = None

    def wait(self) -> int:
        """Return its exit code once it has ended, negative for a signal."""
        if self._code is None:
            self._code = self._server.ask({"wait": self.pid})
        return self._code


class ForkServer:
    """The process that forks.

    Attributes:
        pid: its process id, the parent of every program.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(START_S)
        guard = [shutil.which("setpriv") or "setpriv", "--pdeathsig", "TERM"]
        with theirs:
            self._process = subprocess.Popen(
                [*guard, sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.pid = self._process.pid

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        output: tuple[int, int],
    ) -> ForkedProgram:
        """Start `python -m MODULE ARGUMENTS`.

        Args:
            environment: all variables.
            output: descriptors of standard output and standard error.
        """
        wanted = {
            "module": module,
            "arguments": list(arguments),
            "directory": str(directory),
            "environment": dict(environment),
        }
        return ForkedProgram(self, self.ask(wanted, output))

    def ask(self, message: object, descriptors: Sequence[int] = ()) -> Any:
        """Return the answer to a message."""
        socket.send_fds(self._socket, [json.dumps(message).encode()], descriptors)
        return json.loads(self._socket.recv(MESSAGE_BYTES))

    def end(self) -> None:
        """End the server and, through it, programs that still run."""
        self._socket.close()
        self._process.wait()


@cache
def fork_server() -> ForkServer:
    """Return the server of this process; started when it is needed first."""
    return ForkServer()


def end_fork_server() -> None:
    """End the server of this process if there is one."""
    if fork_server.cache_info().currsize:
        fork_server().end()
        fork_server.cache_clear()


def server_pid() -> int | None:
    """Return the process id of the server, if one runs."""
    return fork_server().pid if fork_server.cache_info().currsize else None


def _serve(control: socket.socket) -> str | None:
    """Serve until the client is gone; return, in a new process, the name of its module."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 2)
        if not data:
            return None
        message = json.loads(data)
        if "wait" in message:
            _, status = os.waitpid(message["wait"], 0)
            control.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())
            continue
        parent = os.getpid()
        if os.fork() == 0:
            _become(message, descriptors, parent)
            # The client may end the group of this process from now on.
            control.send(json.dumps(os.getpid()).encode())
            control.close()
            return str(message["module"])
        for each in descriptors:
            os.close(each)


def _become(message: dict[str, Any], descriptors: Sequence[int], parent: int) -> None:
    """Give this new process all that an executed program gets."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)  # the server died before the kernel was told
    os.setsid()
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(message["directory"])
    os.environ.clear()
    os.environ.update(message["environment"])
    if os.environ.keys() & {"SSL_CERT_FILE", "SSL_CERT_DIR"}:
        client_context.cache_clear()
    sys.argv = ["", *message["arguments"]]  # runpy names the program


class _End:
    """Ends a program as Python does, but leaves its memory to the kernel.

    To free each object would copy each page that is shared with the server: 55 ms, of 80 to 250
    that a program takes. It is the first exit handler, so called last: an error is shown, threads
    are waited for, all other handlers have run.
    """

    def __init__(self) -> None:
        self._code = 0
        atexit.register(self._leave)

    def _leave(self) -> None:
        with contextlib.suppress(OSError):  # Python tells that the output cannot be written
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._code)

    def run(self, module: str) -> None:
        """Execute a module as `__main__`."""
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            self._code = end.code if isinstance(end.code, int) else int(end.code is not None)
            raise
        except KeyboardInterrupt:  # ends by its signal
            atexit.unregister(self._leave)
            raise
        except BaseException:
            self._code = 1
            raise


def _main() -> None:
    end = _End()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        for each in IMPORTED:
            import_module(each)
        client_context()  # reads the certificates of all authorities
        import_module("crawld.daemon.api.server").control_routes()
        gc.collect()
        gc.freeze()
        module = _serve(control)
    if module is not None:
        for name in (module, f"{module}.__main__"):  # it is executed once more, as `__main__`
            sys.modules.pop(name, None)
        end.run(module)


if __name__ == "__main__":
    _main()
