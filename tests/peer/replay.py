"""Replay exports: WARC files with pywb, ZIM files with kiwix-serve."""

from __future__ import annotations

import contextlib
import shutil
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.peer import require_peer
from tests.peer.process import ManagedProcess, ProcessError, run

_TRIES = 600
_POLL_S = 0.1

_PYWB = """
import socket, sys
from gevent.monkey import patch_all
patch_all()
from gevent.pywsgi import WSGIServer
from pywb.apps.frontendapp import FrontEndApp
WSGIServer(socket.socket(fileno=int(sys.argv[1])), FrontEndApp()).serve_forever()
"""


@contextlib.contextmanager
def with_pywb(folder: Path, archives: Sequence[Path]) -> Iterator[str]:
    """Replay WARC files; yield the URL of the collection."""
    folder.mkdir()
    manager = Path(sys.executable).with_name("wb-manager")
    for command in (["init", "mirror"], ["add", "mirror", *map(str, archives)]):
        done = run([manager, *command], cwd=folder)
        if done.returncode:
            raise ProcessError(f"wb-manager {command[0]}: {done.stderr}")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        number = listening.fileno()
        pywb = ManagedProcess(
            [sys.executable, "-c", _PYWB, str(number)], folder, name="pywb", pass_fds=[number]
        )
    with _ending(pywb):
        yield f"http://127.0.0.1:{port}/mirror"


@contextlib.contextmanager
def with_kiwix(folder: Path, zim: Path) -> Iterator[str]:
    """Serve a ZIM file; yield the URL of its content."""
    program = require_peer("kiwix-serve")
    # kiwix-serve takes a port, not a socket; if another process takes it first, try the next.
    for attempt in range(5):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        kiwix = ManagedProcess(
            [program, "--address", "127.0.0.1", "--port", str(port), zim],
            folder,
            name=f"kiwix-{attempt}",
        )
        with _ending(kiwix):
            if _answers(kiwix, f"http://127.0.0.1:{port}/"):
                yield f"http://127.0.0.1:{port}/{zim.stem}"
                return
    raise kiwix.error("does not answer")


def installed_command(name: str) -> Path:
    """Return the path of a command from a Python package of the test extra."""
    beside = Path(sys.executable).with_name(name)
    return beside if beside.exists() else Path(shutil.which(name) or name)


@contextlib.contextmanager
def _ending(process: ManagedProcess) -> Iterator[None]:
    try:
        yield
    finally:
        process.end()


def _answers(process: ManagedProcess, url: str) -> bool:
    for _ in range(_TRIES):
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            if process.exits_within(_POLL_S):
                return False
        else:
            return True
    return False
