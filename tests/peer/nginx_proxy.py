"""nginx with the snippet of contrib/ in front of a web listener, its paths and ports replaced.

The socket is bound here and passed to nginx, as in `nginx.py`: the first request waits for nginx.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.peer.nginx import start_nginx


@contextlib.contextmanager
def with_nginx_proxy(prefix: Path, snippet: str, port: int) -> Iterator[int]:
    """Run nginx in front of a loopback port; yield nginx's own port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        own: int = listening.getsockname()[1]
        for written, here in (
            ("/var/cache/nginx/crawld", str(prefix / "cache")),
            ("server 127.0.0.1:8080;", f"server 127.0.0.1:{port};"),
            ("listen 80;", f"listen 127.0.0.1:{own};"),
        ):
            assert snippet.count(written) == 1, f"the snippet does not say {written!r} once"
            snippet = snippet.replace(written, here)
        front = start_nginx(prefix, snippet, [listening.fileno()])
    try:
        yield own
    finally:
        front.end()
