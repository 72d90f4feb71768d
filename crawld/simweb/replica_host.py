"""Serve a web of replicas: its hosts answer with what its crawl saw.

Each page that the crawl of `replica_web` fetched has a path made from its path key and a text made
from its signature. The root links to twelve pages, each of those to twelve more, so a crawler finds
all pages breadth first. A page without a signature is empty, or redirects if its host redirects.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crawld.core.replica.hosts import Ids, path_key
from crawld.simweb.message import SimRequest, SimResponse, build_error_response, build_response
from crawld.simweb.page_text import make_sentence
from crawld.simweb.replica_web import ReplicaWeb

_BRANCHING = 12
_SENTENCES = 5
_ROOT = path_key("/")

HostPointer = tuple[str, int]
"""A host name, and the number of leading pages that point to that host."""

_NO_POINTER: HostPointer = ("", 0)


class ReplicaHost:
    """One host of a web of replicas.

    Attributes:
        name: host name.
        hosts: the names it answers to, which is its name.
        address: its address in the web; hosts may share one.
        targets: path of each page, the root first.
        group: its group of replicas; -1 for none.
    """

    def __init__(
        self,
        web: ReplicaWeb,
        host: int,
        *,
        pages: Ids,
        redirects: HostPointer,
        canonical: HostPointer,
        neighbors: list[str],
    ) -> None:
        """Prepare the host with index `host` in the web.

        Args:
            pages: indices of its pages among all pages.
            redirects: target of its redirects, and number of leading pages that redirect.
            canonical: host named as canonical, and number of leading pages that name it.
            neighbors: host names that its root links to.
        """
        hosts = web.hosts
        self.name, self.address = hosts.names[host], hosts.addresses[host]
        self.hosts = (self.name,)
        self.group = int(web.group[host])
        paths, texts = hosts.page_path[pages].tolist(), hosts.page_signature[pages].tolist()
        if _ROOT not in paths:
            paths, texts = [_ROOT, *paths], [_ROOT, *texts]
        order = sorted(range(len(paths)), key=lambda at: paths[at] != _ROOT)
        self.targets = [page_target(paths[at]) for at in order]
        self._texts = [texts[at] for at in order]
        self._index = {target: at for at, target in enumerate(self.targets)}
        self._redirects, self._canonical = redirects, canonical
        self._neighbors = neighbors

    def handle(self, request: SimRequest) -> SimResponse:
        """Return the response to a request."""
        at = self._index.get(request.path)
        if at is None or request.method not in ("GET", "HEAD"):
            return build_error_response(request, 404 if at is None else 405)
        port = request.origin.rpartition(":")[2]
        location = self.redirect_url(request.path, port)
        if location is not None:
            return build_response(request, 301, extra=f"Location: {location}\r\n")
        return build_response(request, 200, self.html(request.path, port).encode())

    def redirect_url(self, target: str, port: int | str) -> str | None:
        """Return the redirect target of a page; None if the page has content."""
        host, count = self._redirects
        return f"http://{host}:{port}{target}" if self._index[target] < count else None

    def html(self, target: str, port: int | str) -> str:
        """Return the HTML of a page."""
        at, text = self._index[target], self._texts[self._index[target]]
        host, count = self._canonical
        canonical = f'<link rel="canonical" href="http://{host}:{port}{target}">'
        head = canonical if at < count else ""
        words = " ".join(make_sentence(text, k) for k in range(_SENTENCES)) if text else ""
        below = self.targets[at * _BRANCHING + 1 : (at + 1) * _BRANCHING + 1]
        away = [f"http://{name}:{port}/" for name in self._neighbors] if at == 0 else []
        # Links have no text: the pages that a copy has must not change the texts of the others.
        links = "".join(f'<a href="{target}"></a>' for target in (*below, *away))
        return f"<!DOCTYPE html><html><head>{head}</head><body><p>{words}</p>{links}</body></html>"


def replica_hosts(web: ReplicaWeb) -> Iterator[ReplicaHost]:
    """Yield the hosts of a web, ready to answer requests."""
    hosts = web.hosts
    pages, links = (
        _indices_by_host(host, len(hosts)) for host in (hosts.page_host, hosts.link_host)
    )
    redirects = {source: (hosts.names[to], n) for (source, to), n in hosts.redirects.items()}
    canonical = {source: (hosts.names[to], n) for (source, to), n in hosts.canonicals.items()}
    for host, (own, links_out) in enumerate(zip(pages, links, strict=True)):
        neighbors = (hosts.link_target[links_out] % np.uint64(len(hosts))).tolist()
        yield ReplicaHost(
            web,
            host,
            pages=own,
            redirects=redirects.get(host, _NO_POINTER),
            canonical=canonical.get(host, _NO_POINTER),
            neighbors=[hosts.names[neighbor] for neighbor in neighbors],
        )


def loopback_addresses_of(addresses: tuple[str, ...]) -> list[str]:
    """Map addresses to loopback addresses; equal addresses map to equal ones.

    The last octet stays the same, and addresses of one /24 network stay in one network.
    """
    numbers: dict[str, int] = {}
    found = []
    for address in addresses:
        network, _, octet = address.rpartition(".")
        number = numbers.setdefault(network, len(numbers)) + 256
        found.append(f"127.{number >> 8}.{number & 255}.{octet}")
    return found


def _indices_by_host(host: Ids, count: int) -> list[Ids]:
    """Return, for each host, the indices of its entries."""
    order = np.argsort(host, kind="stable")
    return np.split(order, np.searchsorted(host[order], np.arange(1, count)))


def page_target(key: int) -> str:
    """Return the path of the page with a path key."""
    return "/" if key == _ROOT else f"/p{key:x}"
