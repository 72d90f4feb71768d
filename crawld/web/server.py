"""The web listener: its socket, and the server that speaks HTTP on it.

The socket is bound here, not by the server, so that a port of 0 is known before the first request
and an address that cannot be had is an operator's error with its remedy.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
from functools import partial
from typing import Final, cast

import trio
from hypercorn.config import Config as ServerConfig
from hypercorn.trio import serve
from hypercorn.typing import ASGIFramework

from crawld.errors import OperatorError
from crawld.web.app import MirrorApp

GRACE_S: Final = 1.0
"""How long an answer may still take when the listener ends."""

BACKLOG: Final = 128

MAX_REQUESTS_PER_CONNECTION: Final = 1_000_000


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Args:
        host: a literal address, or `localhost`.
        port: 0: any that is free.

    Raises:
        OperatorError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1" if host == "localhost" else host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise OperatorError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint="name another address with --listen or [web] listen; port 0 takes any free one",
        ) from error
    return listening


def listener_url(listening: socket.socket) -> str:
    """Return the address a browser can be pointed at."""
    host, port = listening.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        host = "::1" if address.version == 6 else "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


async def serve_mirror(
    app: MirrorApp,
    listening: socket.socket,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; the socket is closed then."""
    config = ServerConfig()
    config.bind = [f"fd://{listening.detach()}"]
    config.graceful_timeout = GRACE_S
    config.h11_max_incomplete_size = 64 * 1024
    config.keep_alive_max_requests = MAX_REQUESTS_PER_CONNECTION
    config.include_server_header = False
    config.errorlog = _quiet_logger()
    config.accesslog = None
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, cast("ASGIFramework", app), config, mode="asgi"))
        task_status.started()


def _quiet_logger() -> logging.Logger:
    # Junk on the socket is the client's affair; the server's own words would fill the log.
    logger = logging.getLogger("crawld.web.server")
    logger.setLevel(logging.CRITICAL)
    return logger
