"""nginx with the snippet of contrib/ in front of a web listener, its paths and ports replaced.

The socket is bound here and passed to nginx, as in `nginx.py`: the first request waits for nginx.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.peer import require_peer
from tests.peer.process import ManagedProcess

_CONFIG = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
{user}
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path tmp/body; proxy_temp_path tmp/proxy; fastcgi_temp_path tmp/fastcgi;
  uwsgi_temp_path tmp/uwsgi; scgi_temp_path tmp/scgi;
  {snippet}
}}
"""


@contextlib.contextmanager
def with_nginx_proxy(prefix: Path, snippet: str, port: int) -> Iterator[int]:
    """Run nginx in front of a loopback port; yield nginx's own port."""
    program = require_peer("nginx")
    (prefix / "tmp").mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        own: int = listening.getsockname()[1]
        for written, here in (
            ("/var/cache/nginx/crawld", str(prefix / "cache")),
            ("server 127.0.0.1:8080;", f"server 127.0.0.1:{port};"),
            ("listen 80;", f"listen 127.0.0.1:{own};"),
        ):
            assert snippet.count(written) == 1, f"the snippet does not say {written!r} once"
            snippet = snippet.replace(written, here)
        user = "user root;" if os.getuid() == 0 else ""
        (prefix / "nginx.conf").write_text(_CONFIG.format(user=user, snippet=snippet))
        front = ManagedProcess(
            [program, "-p", prefix, "-e", "error.log", "-c", prefix / "nginx.conf"],
            prefix,
            name="nginx-front",
            environment={"NGINX": f"{listening.fileno()};"},
            pass_fds=[listening.fileno()],
        )
    try:
        yield own
    finally:
        front.end()
