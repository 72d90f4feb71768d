"""Serve static files on addresses of 127.0.0.0/8 with the system's nginx.

It has its prefix in a directory of the benchmark, one worker and no access log, and serves from the
page cache. Each page has an ETag, a Last-Modified and `Cache-Control: max-age=0`, so that a correct
cache can and must revalidate it.
"""

from __future__ import annotations

import os
import pwd
import resource
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from crawld.bench.process import Child, program_error, run_child
from crawld.bench.site_tree import SiteTree
from crawld.errors import OperatorError

_START_S = 20.0
_TRIES = 3
_OPEN_FILES = 65_536

_CONFIG = """\
daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile {open_files};
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    default_type text/html;
    types {{ text/plain txt; }}
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600s;
    keepalive_requests 1000000;
    client_body_temp_path temporary;
    proxy_temp_path temporary;
    fastcgi_temp_path temporary;
    uwsgi_temp_path temporary;
    scgi_temp_path temporary;
    server {{
{listen}
        charset utf-8;
        root {root}/$server_addr;
        add_header Cache-Control max-age=0;
        location / {{ {paths} }}
    }}
}}
"""


@contextmanager
def serve(tree: SiteTree, directory: Path, *, fallback: str | None = None) -> Iterator[int]:
    """Serve a site until the block ends; yield the port, the same on all addresses.

    Args:
        directory: the prefix of the server; it is created.
        fallback: path of the file that is shown at every path without a file; None: a 404.

    Raises:
        OperatorError: nginx is not installed, or does not start.
    """
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise OperatorError("the benchmark needs nginx", hint="apt-get install nginx-light")
    directory.mkdir()
    command = [program, "-p", str(directory), "-c", "nginx.conf", "-e", "stderr"]
    for attempt in range(1, _TRIES + 1):
        port = free_port()
        (directory / "nginx.conf").write_text(_config(tree, port, fallback), encoding="utf-8")
        with run_child(command, directory) as child:
            if _wait_listening(child, tree.addresses[-1], port):
                yield port
                child.stop(signal.SIGTERM)
                return
            # Another process may have taken the port in the meantime.
            if attempt == _TRIES:
                raise program_error(program, "does not start", child)


def _config(tree: SiteTree, port: int, fallback: str | None) -> str:
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    listen = "\n".join(f"        listen {address}:{port};" for address in tree.addresses)
    _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONFIG.format(
        user=user,
        listen=listen,
        root=tree.directory,
        paths=f"try_files $uri {fallback};" if fallback else "index index.html;",
        open_files=min(open_files, _OPEN_FILES),
    )


def free_port() -> int:
    """Return a port that is free now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_listening(child: Child, address: str, port: int) -> bool:
    until_s = time.monotonic() + _START_S
    while time.monotonic() < until_s:
        if not child.running():
            return False
        with closing(socket.socket()) as probe:
            if probe.connect_ex((address, port)) == 0:
                return True
    return False
