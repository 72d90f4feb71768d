"""A real nginx on loopback that serves directory trees and logs when each request arrived.

Every virtual host has a tree. A host that is a literal loopback address (127.0.0.2) is served at
that address, any other name at 127.0.0.1; all share one port, and a second one with TLS. The
sockets are bound here and passed by the variable NGINX, as nginx passes them to its successor: no
other process can take the port, and the first request waits in the backlog.

The ledger is read from the access log. nginx logs the end of a request ($msec) and its duration
since the first byte ($request_time) in milliseconds, so arrival times are exact to 2 ms.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import os
import socket
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme

from crawld.simweb.ledger import Ledger, LedgerRow
from tests.peer import require_peer
from tests.peer.process import ManagedProcess

PRECISION_S = 0.002

_BIND_TRIES = 20
_SETTLE_TRIES = 50

_ROW = (
    '{"msec":$msec,"request_time":$request_time,"host":"$host","peer":"$remote_addr",'
    '"address":"$server_addr","target":"$request_uri","status":$status,'
    '"user_agent":"$http_user_agent","if_none_match":"$http_if_none_match",'
    '"if_modified_since":"$http_if_modified_since"}'
)

_MAIN = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log warn;
{user}
events {{ worker_connections 4096; }}
http {{
  client_body_temp_path tmp/body; proxy_temp_path tmp/proxy; fastcgi_temp_path tmp/fastcgi;
  uwsgi_temp_path tmp/uwsgi; scgi_temp_path tmp/scgi;
  {http}
}}
"""

_HTTP = """
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  log_format ledger escape=json '{row}';
  access_log access.log ledger;
  server_tokens off;
  gzip on;
  gzip_min_length 256;
  gzip_types text/plain text/css application/javascript application/json image/svg+xml;
  keepalive_timeout 30s;
  keepalive_requests 1000000;
  map $status $retry_after {{ 429 {retry_after_s}; 503 {retry_after_s}; default ""; }}
  {limit_zone}
  {servers}
"""

_SERVER = """
server {{
  {listen}
  server_name {host};
  {certificate}
  add_header Retry-After $retry_after always;
  set $down "";
  if (-f {down}) {{ set $down 1; }}
  if ($request_uri = {status}) {{ set $down ""; }}
  if ($down) {{ return 503; }}
  location = {status} {{ access_log off; stub_status; }}
  {content}
}}
"""

_STATUS = "/.harness/status"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Rate limit per client; requests above it get `status` and Retry-After.

    Attributes:
        rate: in nginx notation, such as `5r/s` or `30r/m`.
        burst: requests above the rate that are still served at once.
        status: 429 or 503.
    """

    rate: str
    burst: int = 0
    status: int = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class NginxOptions:
    """Options of all hosts of one nginx.

    Attributes:
        limit: rate limit per client, or None.
        retry_after_s: the Retry-After of every 429 and 503.
        autoindex: list folders without an index page instead of answering 403.
        authority: also listen with TLS, with certificates from this authority.
        h2: offer HTTP/2 with TLS.
    """

    limit: RateLimit | None = None
    retry_after_s: int = 2
    autoindex: bool = False
    authority: trustme.CA | None = None
    h2: bool = False


class Nginx:
    """A running nginx.

    Attributes:
        port: port of plain HTTP on every address.
        tls_port: port of HTTPS; 0 without an authority.
        hosts: the virtual hosts, in the given order.
        process: the nginx process.
    """

    def __init__(self, prefix: Path, hosts: Mapping[str, str], options: NginxOptions) -> None:
        self.hosts = list(hosts)
        self._prefix = prefix
        self._down_file = prefix / "down"
        self._addresses = {host: _address(host) for host in hosts}
        addresses = sorted(set(self._addresses.values()))
        prefix.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as sockets:
            self.port, plain = _bind(addresses, sockets)
            self.tls_port, secure = _bind(addresses, sockets) if options.authority else (0, [])
            self.process = start_nginx(prefix, self._http(hosts, options), [*plain, *secure])
        # Our copies of the sockets are closed: if nginx rejects its config, this request is
        # refused.
        try:
            self._busy()
        except BaseException as error:
            self.process.end()
            if not isinstance(error, OSError):
                raise
            log = (prefix / "error.log").read_text() if (prefix / "error.log").exists() else ""
            raise self.process.error(f"does not answer: {error}\n{log}") from error

    def url(self, path: str = "/", host: str = "", *, tls: bool = False) -> str:
        """Return the URL of a path at a host, by default the first."""
        scheme, port = ("https", self.tls_port) if tls else ("http", self.port)
        return f"{scheme}://{host or self.hosts[0]}:{port}{path}"

    def ledger(self) -> Ledger:
        """Return all finished requests in order of arrival.

        Waits a limited time for requests in progress, because a client may have the whole response
        before nginx logs it. All three times of a row are the wall time of arrival.
        """
        for _ in range(_SETTLE_TRIES):
            if not self._busy():
                break
        ledger = Ledger()
        lines = (self._prefix / "access.log").read_text(encoding="utf-8").splitlines(keepends=True)
        rows = [_row(json.loads(line)) for line in lines if line.endswith("\n")]
        for row in sorted(rows, key=lambda row: row.at):
            ledger.record(row)
        return ledger

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Answer everything with 503 and Retry-After until the block ends."""
        self._down_file.touch()
        try:
            yield
        finally:
            self._down_file.unlink()

    def _busy(self) -> bool:
        """Return whether any other request is being read or answered."""
        host = self.hosts[0]
        request = urllib.request.Request(
            f"http://{self._addresses[host]}:{self.port}{_STATUS}", headers={"Host": host}
        )
        without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with without_proxy.open(request, timeout=120) as answer:
            words = answer.read().decode().split()
        counts = dict(itertools.pairwise(words))
        return (int(counts["Reading:"]), int(counts["Writing:"])) != (0, 1)

    def _http(self, hosts: Mapping[str, str], options: NginxOptions) -> str:
        limit = options.limit
        zone = ""
        if limit:
            zone = (
                f"limit_req_zone $binary_remote_addr zone=clients:1m rate={limit.rate};"
                f"limit_req_status {limit.status};"
            )
        return _HTTP.format(
            row=_ROW,
            retry_after_s=options.retry_after_s,
            limit_zone=zone,
            servers="".join(self._server(host, body, options) for host, body in hosts.items()),
        )

    def _server(self, host: str, content: str, options: NginxOptions) -> str:
        address = self._addresses[host]
        listen = f"listen {address}:{self.port};"
        certificate = ""
        if options.authority:
            h2 = " http2" if options.h2 else ""
            listen += f" listen {address}:{self.tls_port} ssl{h2};"
            certificate = self._certificate(host, options.authority)
        return _SERVER.format(
            listen=listen,
            host=host,
            certificate=certificate,
            down=self._down_file,
            status=_STATUS,
            content=content,
        )

    def _certificate(self, host: str, authority: trustme.CA) -> str:
        issued = authority.issue_cert(host)
        chain, key = self._prefix / f"{host}.pem", self._prefix / f"{host}.key"
        chain.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())
        return f"ssl_certificate {chain}; ssl_certificate_key {key};"


def start_nginx(prefix: Path, http: str, sockets: Sequence[int]) -> ManagedProcess:
    """Start nginx on listening sockets, given by their file descriptors, with this `http` block."""
    program = require_peer("nginx")
    (prefix / "tmp").mkdir(parents=True)
    (prefix / "access.log").touch()
    config = prefix / "nginx.conf"
    # As root, the worker keeps root's rights: the trees are in folders that only root can read.
    config.write_text(_MAIN.format(user="user root;" if os.getuid() == 0 else "", http=http))
    return ManagedProcess(
        [program, "-p", prefix, "-e", "error.log", "-c", config],
        prefix,
        name="nginx",
        environment={"NGINX": "".join(f"{number};" for number in sockets)},
        pass_fds=sockets,
    )


def with_nginx(
    prefix: Path, trees: Mapping[str, Path], options: NginxOptions | None = None
) -> contextlib.AbstractContextManager[Nginx]:
    """Serve a directory tree for each virtual host; changes to its files are visible at once.

    nginx's configuration, logs and temporary files are in `prefix`.
    """
    options = options or NginxOptions()
    contents = {host: _tree(tree, options) for host, tree in trees.items()}
    return with_nginx_config(contents, prefix, options)


@contextlib.contextmanager
def with_nginx_config(
    contents: Mapping[str, str], prefix: Path, options: NginxOptions | None = None
) -> Iterator[Nginx]:
    """Serve virtual hosts, each given by the body of its nginx `server` block."""
    nginx = Nginx(prefix, contents, options or NginxOptions())
    try:
        yield nginx
    finally:
        nginx.process.end()


def documentation_tree() -> Path:
    """Return the folder of a real documentation tree: SQLite's, 766 pages."""
    return require_peer("documentation").parent


def _tree(tree: Path, options: NginxOptions) -> str:
    location = f"index index.html; autoindex {'on' if options.autoindex else 'off'};"
    if limit := options.limit:
        burst = f" burst={limit.burst} nodelay" if limit.burst else ""
        location += f" limit_req zone=clients{burst};"
    return f'root "{tree}"; location / {{ {location} }}'


def _row(line: dict[str, object]) -> LedgerRow:
    at = float(str(line.pop("msec"))) - float(str(line.pop("request_time")))
    return LedgerRow(first_byte_s=at, complete_s=at, at=at, **line)  # type: ignore[arg-type]


def _address(host: str) -> str:
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        return "127.0.0.1"


def _bind(addresses: list[str], sockets: contextlib.ExitStack) -> tuple[int, list[int]]:
    """Listen on one free port of all addresses; return the port and the file descriptors."""
    for _ in range(_BIND_TRIES):
        with contextlib.ExitStack() as attempt:
            port, bound = 0, []
            try:
                for address in addresses:
                    listening = attempt.enter_context(socket.socket())
                    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    listening.bind((address, port))
                    listening.listen(511)
                    port = listening.getsockname()[1]
                    bound.append(listening.fileno())
            except OSError:
                continue  # the port is taken on a later address
            sockets.push(attempt.pop_all())
            return port, bound
    raise RuntimeError(f"no port is free at all of {addresses}")
