"""The site that `crawld bench fetch` crawls: static files, the same in every run.

One directory per host, named after its address: a wiki of the simulated web with pages at `/` and
`/wiki/TITLE`, and a robots.txt that forbids none of them, so that every crawler must fetch and
match one.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from crawld.simweb.demo import loopback_addresses
from crawld.simweb.graph import SiteGraph
from crawld.simweb.render import PageStyle, Rendering
from crawld.simweb.stateless_random import draw

PAGES_PER_HOST = 100
PAGE_BYTES = 26_000
_CROSS_LINKS = 150  # drawn with repeats from a hundred pages: about 65 different links per page
_SEED = 20_000
_ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /search\n"


@dataclass(frozen=True, slots=True)
class SiteTree:
    """Files to serve.

    Attributes:
        directory: one subdirectory per host.
        addresses: the hosts, each an address of 127.0.0.0/8.
    """

    directory: Path
    addresses: tuple[str, ...]

    @property
    def page_count(self) -> int:
        """Number of pages of all hosts."""
        return len(self.addresses) * PAGES_PER_HOST

    def seeds(self, port: int) -> list[str]:
        """Return the home page URL of each host."""
        return [f"http://{address}:{port}/" for address in self.addresses]

    def urls(self, port: int) -> list[str]:
        """Return the URLs of all pages, hosts in turn, as a polite crawler requests them."""
        graphs = [_graph(k) for k in range(len(self.addresses))]
        origins = [f"http://{address}:{port}" for address in self.addresses]
        return [
            origin + graph.path(page)
            for page in range(PAGES_PER_HOST)
            for origin, graph in zip(origins, graphs, strict=True)
        ]


def write_site(directory: Path, hosts: int) -> SiteTree:
    """Write the files of a number of hosts, each with `PAGES_PER_HOST` pages in a subdirectory."""
    tree = SiteTree(directory, tuple(loopback_addresses(hosts)))
    with ProcessPoolExecutor() as processes:
        directories = [directory / address for address in tree.addresses]
        for _ in processes.map(_write_host, directories, map(_graph, range(hosts))):
            pass  # consume the iterator: it raises the errors of the processes
    return tree


def _graph(number: int) -> SiteGraph:
    return SiteGraph(PAGES_PER_HOST, seed=draw(_SEED, number), cross_links=_CROSS_LINKS)


def _write_host(directory: Path, graph: SiteGraph) -> None:
    (directory / "wiki").mkdir(parents=True)
    (directory / "robots.txt").write_text(_ROBOTS, encoding="utf-8")
    rendering = Rendering(graph, PageStyle(page_bytes=PAGE_BYTES))
    for page in range(graph.pages):
        path = "/index.html" if page == 0 else graph.path(page)
        (directory / path[1:]).write_bytes(rendering.html(page, 0))
