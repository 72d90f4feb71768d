"""Ready-made sites: the one that `crawld demo` mirrors, and webs of many hosts."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address

from crawld.simweb.change_process import SiteChangeRates
from crawld.simweb.graph import SiteGraph
from crawld.simweb.render import PLAIN_STYLE, Noise, PageStyle
from crawld.simweb.site import SimSite
from crawld.simweb.stateless_random import draw

DEMO_PAGES = 80
DEMO_ROBOTS = "User-agent: *\nDisallow: /private/\n"
_FIRST_ADDRESS = int(IPv4Address("127.1.0.1"))
_MAX_ADDRESSES = int(IPv4Address("127.255.255.255")) - _FIRST_ADDRESS


def make_demo_site(
    seed: int, clock: Callable[[], float], *, hosts: tuple[str, ...] = ("127.0.0.1",)
) -> SimSite:
    """Build a small wiki whose pages change every few seconds to minutes.

    It has 80 pages. One in eight never changes, a quarter changes in bursts; mean intervals range
    from 10 s to 20 minutes. Each response carries a date stamp and a comment.
    The site starts now.
    """
    start_at = clock()
    change_rates = SiteChangeRates(10.0, 1200.0, static_share=0.125, bursty_share=0.25)
    return SimSite(
        hosts,
        SiteGraph(DEMO_PAGES, seed=seed, branching=6, cross_links=8),
        changes=change_rates.changes(start_at=start_at, seed=draw(seed, 1)),
        start_at=start_at,
        style=PageStyle(page_bytes=6000, noise=frozenset({Noise.DATE, Noise.COMMENT})),
        robots=DEMO_ROBOTS,
        sitemap=True,
    )


def loopback_addresses(count: int) -> list[str]:
    """Return `count` different addresses of 127.0.0.0/8, from 127.1.0.1 on.

    Raises:
        ValueError: there are fewer.
    """
    if count > _MAX_ADDRESSES:
        raise ValueError(f"127.0.0.0/8 has only {_MAX_ADDRESSES} usable addresses")
    return [str(IPv4Address(_FIRST_ADDRESS + k)) for k in range(count)]


def make_sites(
    hosts: list[str],
    *,
    pages: int,
    seed: int,
    style: PageStyle = PLAIN_STYLE,
    change_rates: SiteChangeRates | None = None,
    start_at: float = 0.0,
) -> list[SimSite]:
    """Build a site of `pages` pages per host, in the order of `hosts`, all different.

    Pages are static without `change_rates`. All sites were created at `start_at`.
    """
    sites = []
    for k, host in enumerate(hosts):
        site_seed = draw(seed, k)
        site = SimSite((host,), SiteGraph(pages, seed=site_seed), start_at=start_at, style=style)
        if change_rates is not None:
            site.changes = change_rates.changes(start_at=start_at, seed=site_seed)
        sites.append(site)
    return sites
