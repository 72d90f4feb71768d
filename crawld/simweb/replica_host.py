"""A web of replicas on sockets: what its crawl saw is what its hosts serve.

Every page that the crawl of `replica_web` fetched stands under a path made of its key and shows a
text made of its signature; the root leads to twelve pages, each of those to more, so that a
crawler finds all of them breadth first. A page with nothing to compare is empty, or redirects
where its host redirects.
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
_NO_POINTER: HostPointer = ("", 0)


class ReplicaHost:
    """One host of a web of replicas.

    Attributes:
        name: its name.
        address: the address it stands under in the web; the same for hosts that share one.
        targets: path of each page, the root first.
        group: its group of replicas, -1: none.
    """

    def __init__(
        self,
        web: ReplicaWeb,
        host: int,
        *,
        pages: Ids,
        moved: HostPointer,
        canonical: HostPointer,
        neighbours: list[str],
    ) -> None:
        """Take a host of a web.

        Args:
            web: the web.
            host: its index there.
            pages: places of its pages among those of all.
            moved: where its first pages redirect, and how many do.
            canonical: the host that its first pages name as canonical, and how many do.
            neighbours: names of hosts its root links to.
        """
        hosts = web.hosts
        self.name, self.address = hosts.names[host], hosts.addresses[host]
        self.group = int(web.group[host])
        paths, texts = hosts.page_path[pages].tolist(), hosts.page_signature[pages].tolist()
        if _ROOT not in paths:
            paths, texts = [_ROOT, *paths], [_ROOT, *texts]
        order = sorted(range(len(paths)), key=lambda at: paths[at] != _ROOT)
        self.targets = [_target(paths[at]) for at in order]
        self._texts = [texts[at] for at in order]
        self._place = {target: at for at, target in enumerate(self.targets)}
        self._moved, self._canonical = moved, canonical
        self._neighbours = neighbours

    @property
    def redirect_count(self) -> int:
        """How many of its first pages redirect."""
        return self._moved[1]

    def path_of(self, path: int) -> str:
        """Return where the page of a path key stands."""
        return _target(path)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names it answers to."""
        return (self.name,)

    def handle(self, request: SimRequest) -> SimResponse:
        """Answer a request."""
        at = self._place.get(request.path)
        if at is None or request.method not in ("GET", "HEAD"):
            return build_error_response(request, 404 if at is None else 405)
        port = request.origin.rpartition(":")[2]
        moved = self.redirect_url(request.path, port)
        if moved is not None:
            return build_response(request, 301, extra=f"Location: {moved}\r\n")
        return build_response(request, 200, self.html(request.path, port).encode())

    def redirect_url(self, target: str, port: int | str) -> str | None:
        """Return where the page of a path redirects; None: it shows something itself."""
        there, count = self._moved
        return f"http://{there}:{port}{target}" if self._place[target] < count else None

    def html(self, target: str, port: int | str) -> str:
        """Return the page of a path."""
        at, text = self._place[target], self._texts[self._place[target]]
        there, count = self._canonical
        canonical = f'<link rel="canonical" href="http://{there}:{port}{target}">'
        head = canonical if at < count else ""
        words = " ".join(make_sentence(text, k) for k in range(_SENTENCES)) if text else ""
        below = self.targets[at * _BRANCHING + 1 : (at + 1) * _BRANCHING + 1]
        away = [f"http://{name}:{port}/" for name in self._neighbours] if at == 0 else []
        # Links without words: which pages a copy has must not change the texts of the others.
        links = "".join(f'<a href="{target}"></a>' for target in (*below, *away))
        return f"<!DOCTYPE html><html><head>{head}</head><body><p>{words}</p>{links}</body></html>"


def replica_hosts(web: ReplicaWeb) -> Iterator[ReplicaHost]:
    """Yield the hosts of a web, each ready to answer."""
    hosts = web.hosts
    pages, links = _of_hosts(hosts.page_host, len(hosts)), _of_hosts(hosts.link_host, len(hosts))
    moved = {source: (hosts.names[to], n) for (source, to), n in hosts.redirects.items()}
    canonical = {source: (hosts.names[to], n) for (source, to), n in hosts.canonicals.items()}
    for host, (own, links_out) in enumerate(zip(pages, links, strict=True)):
        neighbours = (hosts.link_target[links_out] % np.uint64(len(hosts))).tolist()
        yield ReplicaHost(
            web,
            host,
            pages=own,
            moved=moved.get(host, _NO_POINTER),
            canonical=canonical.get(host, _NO_POINTER),
            neighbours=[hosts.names[neighbour] for neighbour in neighbours],
        )


def loopback_addresses_of(addresses: tuple[str, ...]) -> list[str]:
    """Return a loopback address for each of some addresses, equal for equal ones.

    The last octet stays, and addresses of one network stay in one.
    """
    numbers: dict[str, int] = {}
    found = []
    for address in addresses:
        network, _, octet = address.rpartition(".")
        number = numbers.setdefault(network, len(numbers)) + 256
        found.append(f"127.{number >> 8}.{number & 255}.{octet}")
    return found


def _of_hosts(host: Ids, count: int) -> list[Ids]:
    """Return the places of the entries of each host."""
    order = np.argsort(host, kind="stable")
    return np.split(order, np.searchsorted(host[order], np.arange(1, count)))


def _target(key: int) -> str:
    return "/" if key == _ROOT else f"/p{key:x}"
