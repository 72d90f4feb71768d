"""Listening sockets; `crawld/net/http_server.py` runs on them.

Sockets are bound here and not by the server, so that an address in use gives an `OperatorError`
with a hint, and the port chosen for 0 is known before the first request.
"""

from __future__ import annotations

import grp
import ipaddress
import os
import socket
import stat
from pathlib import Path
from typing import Final, Protocol

import trio

from crawld.errors import OperatorError
from crawld.net.http_server import Application, HttpServer
from crawld.net.server_limits import ServerLimits

BACKLOG: Final = 128
"""Connections that the kernel holds until they are accepted."""

DEFAULT_LIMITS: Final = ServerLimits()


class Listener(Protocol):
    """A bound address that can serve one application.

    Attributes:
        url: the address for a browser, or `unix:` and a path.
    """

    url: str

    async def serve(
        self,
        app: Application,
        limits: ServerLimits = DEFAULT_LIMITS,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve an application until cancelled, then close the socket."""


class SocketListener:
    """A listening socket; the file of a Unix socket (`path`) is deleted when the server ends."""

    def __init__(self, bound: socket.socket, path: Path | None = None) -> None:
        self._socket = bound
        self._path = path
        self.url = f"unix:{path}" if path is not None else _url(*bound.getsockname()[:2])

    async def serve(
        self,
        app: Application,
        limits: ServerLimits = DEFAULT_LIMITS,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the HTTP server on the socket; see `Listener`."""
        self._socket.setblocking(False)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._socket))
        try:
            await HttpServer(app, limits).serve(listener, task_status)
        finally:
            if self._path is not None:
                self._path.unlink(missing_ok=True)


def _url(host: str, port: int) -> str:
    """Return the URL that reaches a TCP socket from this machine."""
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        host = "::1" if address.version == 6 else "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def listen_tcp(host: str, port: int) -> SocketListener:
    """Listen on a TCP address: a literal IP address or `localhost`; port 0 takes any free port.

    Raises:
        OperatorError: the address is in use or not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1" if host == "localhost" else host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise OperatorError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint="name another address with --listen or [web] listen; port 0 takes any free one",
        ) from error
    return SocketListener(bound)


def listen_unix(path: Path, group: str | None) -> SocketListener:
    """Listen on a Unix socket that only its owner and a group can connect to.

    Call it only while holding the database lock: then a socket that does not answer is left over
    from a dead daemon.

    Args:
        path: path of the socket; a dead socket there is replaced, any other file is not.
        group: group that may connect besides the owner; None: the group of the process.

    Raises:
        OperatorError: the path is taken, the directory is missing, or the group is unknown.
    """
    _delete_dead_socket(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode must be right from the start: before a later chmod, everyone would have access.
    previous_umask = os.umask(0o117)
    try:
        bound.bind(str(path))
        if group is not None:
            os.chown(path, -1, grp.getgrnam(group).gr_gid)
        bound.listen(BACKLOG)
    except (OSError, KeyError) as error:
        bound.close()
        raise OperatorError(
            f"cannot create the control socket {path}: {error}",
            hint="set [daemon] socket to a path in a directory that you own",
        ) from error
    finally:
        os.umask(previous_umask)
    return SocketListener(bound, path)


def _delete_dead_socket(path: Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise OperatorError(f"cannot create the control socket {path}: {error}") from error
    if not stat.S_ISSOCK(status.st_mode):
        raise OperatorError(
            f"{path} exists and is not a socket", hint="move it away or set [daemon] socket"
        )
    if status.st_uid != os.geteuid():
        raise OperatorError(
            f"the socket {path} belongs to another user (uid {status.st_uid})",
            hint="remove it as that user, or set [daemon] socket",
        )
    # The daemon of this database is dead; a daemon with another database may own the socket.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise OperatorError(
        f"another daemon answers on {path}", hint="set [daemon] socket, or stop the other daemon"
    )
