"""Adds URLs as seeds, and warns where their hosts cannot be fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence

import trio
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from crawld.config.derive import is_public_host
from crawld.config.site import SiteConfig
from crawld.core.url import split_url
from crawld.daemon.api.lookup import canonical
from crawld.daemon.api.schemas import status as schemas
from crawld.daemon.daemon import Daemon
from crawld.daemon.frontier.site import ActiveSite
from crawld.errors import OperatorError
from crawld.net.address import literal_address, refusal
from crawld.net.resolver import ResolutionError
from crawld.store.frontier import tombstone

HOSTS_CHECKED = 8
"""Hosts whose addresses are looked up before the answer."""

LOOKUP_S = 5.0
"""How long the answer waits for all of them."""

NO_ANSWER = f"{{host}}: no answer about its name in {LOOKUP_S:g} s; it is tried again"


async def add(daemon: Daemon, form: schemas.AddForm) -> schemas.Added:
    """Add URLs as seeds of a known site, or as a new one."""
    urls = list(dict.fromkeys(canonical(url) for url in form.urls))
    is_new = form.site is None or all(
        site.name != form.site for site in daemon.state.sites.values()
    )
    if is_new:
        site = await daemon.site_registry.add(_new_site(daemon, form, urls))
    else:
        assert form.site is not None
        site = daemon.site_registry.by_name(form.site)
    purged = await daemon.database.read(tombstone.select, urls)
    out = frozenset(purged)
    admitted = await daemon.state.add_seeds(site, [url for url in urls if url not in out])
    refused = [
        schemas.RefusedUrls(
            reason=each.reason, refused=each.count, example=each.example, last_at=each.at
        )
        for each in admitted.refusals
    ]
    if purged:
        refused.append(
            schemas.RefusedUrls(
                reason="purged",
                refused=len(purged),
                example=purged[0],
                last_at=daemon.clock.now(),
            )
        )
    return schemas.Added(
        site=site.name,
        new_site=is_new,
        admitted=len(admitted.found),
        refused=refused,
        warnings=await _warnings(daemon, site, urls),
    )


def _new_site(daemon: Daemon, form: schemas.AddForm, urls: list[str]) -> SiteConfig:
    public = [url for url in urls if is_public_host(daemon.config, split_url(url).host)]
    if public and daemon.config.daemon.contact is None:
        raise OperatorError(
            f"{split_url(public[0]).host} is a public host and no contact is set",
            hint="set [daemon] contact, or start with --contact",
        )
    derived = re.sub(r"[^A-Za-z0-9.-]+", "-", split_url(urls[0]).host).strip("-.")[:64]
    try:
        return SiteConfig(
            name=form.site or derived or "site",
            seeds=tuple(urls),
            max_depth=form.max_depth,
            max_pages=form.max_pages,
            host_delay_s=form.host_delay_s,
            allow_private=form.allow_private,
        )
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise HTTPException(422, f"{key}: {first['msg']}") from None


async def _warnings(daemon: Daemon, site: ActiveSite, urls: Sequence[str]) -> list[str]:
    """Return why pages of the first hosts cannot be fetched, as far as is known at once."""
    found: dict[str, str] = {}
    if site.paused:
        found[""] = f"site {site.name} is paused; to resume: crawlctl resume --site {site.name}"
    hosts = list(dict.fromkeys(split_url(url).host for url in urls))[:HOSTS_CHECKED]

    async def check(host: str) -> None:
        found[host] = NO_ANSWER.format(host=host)  # until there is one
        if why := await _host_trouble(daemon, site, host):
            found[host] = f"{host}: {why}"
        else:
            del found[host]

    with trio.move_on_after(LOOKUP_S):
        async with trio.open_nursery() as nursery:
            for host in hosts:
                nursery.start_soon(check, host)
    for url in urls[:HOSTS_CHECKED]:
        origin, host = split_url(url).origin, split_url(url).host
        if host in found:
            continue  # so its robots.txt cannot be read either
        robots = daemon.crawl.robots.in_memory(origin)
        if daemon.crawl.robots.closed_until(origin) > trio.current_time():
            found[origin] = f"{origin}: its robots.txt cannot be read, so nothing else is"
        elif robots is not None and not robots.allowed(url):
            found[url] = f"{url}: robots.txt forbids it"
    return list(found.values())


async def _host_trouble(daemon: Daemon, site: ActiveSite, host: str) -> str | None:
    """Return why a host has no address that may be asked; None if it has one."""
    if site.config.proxy is not None:
        return None  # the proxy looks names up
    literal = literal_address(host)
    try:
        addresses = (str(literal),) if literal else await daemon.resolver.resolve(host)
    except ResolutionError as error:
        if error.kind == "nxdomain":
            return "there is no such host name; it is tried again later"
        return f"its name cannot be looked up ({error.detail}); it is tried again"
    allow = site.permits_private(host)
    refusals = [refusal(address, allow_private=allow) for address in addresses]
    if not all(refusals):
        return None
    return f"{refusals[0]}, so it is not fetched; a site that may: crawlctl add --allow-private"
