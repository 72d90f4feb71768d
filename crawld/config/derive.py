"""Derives the values of `core/` and `net/` from the config.

Nothing is cached: call the functions again after a reload.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address
from zoneinfo import ZoneInfo

from crawld.config.model import Config
from crawld.config.notify import NotifyConfig
from crawld.config.site import SiteConfig
from crawld.config.values import parse_quiet_hours, parse_rule
from crawld.core.notify.rule import RuleFilter, search_pattern
from crawld.core.politeness import DelayRules
from crawld.core.scope import Scope, ScopeRule
from crawld.core.traps import TrapLimits
from crawld.core.url import split_url
from crawld.version import crawld_version


def user_agent(config: Config) -> str:
    """Return the User-Agent header: `crawld/VERSION (+contact)`."""
    product = f"crawld/{crawld_version()}"
    return f"{product} (+{config.daemon.contact})" if config.daemon.contact else product


def site_scope(site: SiteConfig, seed_hosts: Iterable[str]) -> Scope:
    """Return the scope of a site: the hosts of its seeds (`LoadedConfig.seeds`) and its `hosts`."""
    return Scope(
        include=_rules(site.include),
        exclude=_rules(site.exclude),
        max_depth=site.max_depth,
        hosts=frozenset((*seed_hosts, *site.hosts)),
        subdomains=site.subdomains,
    )


def delay_rules(config: Config, site: SiteConfig, now: float) -> DelayRules:
    """Return the delays and quiet hours for the hosts of a site.

    `now` (Unix seconds) selects summer or winter time, so call again every hour.
    """
    general = config.politeness
    quiet = general.quiet_hours if site.quiet_hours is None else site.quiet_hours
    zone = site.timezone or general.timezone
    return DelayRules(
        host_delay_s=host_delay_s(config, site),
        address_delay_s=general.address_delay_s,
        max_crawl_delay_s=general.max_crawl_delay_s if general.respect_crawl_delay else 0.0,
        quiet_hours=parse_quiet_hours(quiet, utc_offset_s(zone, now) if quiet else 0),
    )


def host_delay_s(config: Config, site: SiteConfig) -> float:
    """Return the delay between two requests to a host of a site."""
    return config.politeness.host_delay_s if site.host_delay_s is None else site.host_delay_s


def utc_offset_s(zone: str, now: float) -> int:
    """Return local time minus UTC in a time zone at a time, seconds."""
    if zone == "UTC":
        return 0
    offset = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def trap_limits(config: Config) -> TrapLimits:
    """Return the trap limits."""
    frontier = config.frontier
    return TrapLimits(
        max_url_length=frontier.max_url_length,
        max_segments=frontier.max_segments,
        max_repeated_segments=frontier.max_repeated_segments,
        max_query_parameters=frontier.max_query_parameters,
        max_calendar_run=frontier.max_calendar_run,
        max_calendar_past_years=frontier.max_calendar_past_years,
        max_pages_per_host=frontier.max_pages_per_host,
    )


def importance_rules(site: SiteConfig) -> tuple[tuple[Scope, float], ...]:
    """Return the weights of a site, in order, for `importance`."""
    return tuple(
        (url_scope(include=(weight.pattern,)), weight.importance) for weight in site.weights
    )


ANY_HOST = "any"
"""Stands for every host in the scopes of `url_scope`."""


def url_scope(*, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> Scope:
    """Return a scope that checks URLs regardless of their host (pass `ANY_HOST`)."""
    return Scope(include=_rules(include), exclude=_rules(exclude), hosts=frozenset({ANY_HOST}))


def _rules(texts: Iterable[str]) -> tuple[ScopeRule, ...]:
    return tuple(parse_rule(text) for text in texts)


def importance(rules: tuple[tuple[Scope, float], ...], url: str) -> float:
    """Return the importance of a canonical URL by its first matching weight; default 1."""
    for scope, weight in rules:
        if scope.refusal(url, ANY_HOST, 0) is None:
            return weight
    return 1.0


def rule_filter(rule: NotifyConfig) -> RuleFilter:
    """Return what a rule of notification reports."""
    scope = url_scope(include=rule.include, exclude=rule.exclude)
    return RuleFilter(
        sites=frozenset(rule.sites),
        admits=lambda url: scope.refusal(url, ANY_HOST, 0) is None,
        kinds=frozenset(rule.kinds),
        min_share=rule.min_changed_share,
        min_words=rule.min_changed_words,
        matches=None if rule.matches is None else search_pattern(rule.matches),
    )


def wants_content_type(site: SiteConfig, media_type: str) -> bool:
    """Whether a site stores bodies of a media type (`text/html`, no parameters, any case)."""
    return matches_media_type(media_type, site.content_types)


def matches_media_type(media_type: str, wanted: Iterable[str]) -> bool:
    """Whether a media type (no parameters, any case) matches a pattern such as `image/*`."""
    return _matches(media_type.lower(), tuple(wanted))


@lru_cache(maxsize=1_024)
def _matches(lowered: str, wanted: tuple[str, ...]) -> bool:
    """Asked twice a visit, for the same few media types."""
    return any(fnmatch.fnmatchcase(lowered, each) for each in wanted)


def allows_private(site: SiteConfig, host: str) -> bool:
    """Whether a host of the site may have a private or loopback address."""
    return site.allow_private or host in site.allow_private_hosts


def headers_origins(
    config: Config, site: SiteConfig, seed_origins: Iterable[str]
) -> frozenset[str]:
    """Return the origins that get the `headers_file` of a site.

    They are those that the operator named, as seeds or in `headers_origins`, with https. An origin
    with http counts only if the operator said so, or if its bytes stay on this machine.
    """
    return frozenset(
        origin
        for origin in (*seed_origins, *site.headers_origins)
        if origin.startswith("https:")
        or site.headers_over_http
        or (site.proxy is None and is_loopback_host(config, split_url(f"{origin}/").host))
    )


def is_loopback_host(config: Config, host: str) -> bool:
    """Whether a host is this machine, judged by its name and `[dns] hosts`."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        fixed = config.dns.hosts.get(host, ())
        return bool(fixed) and all(ip_address(address).is_loopback for address in fixed)


def is_public_host(config: Config, host: str) -> bool:
    """Whether a host seems to be a public one, judged by its name.

    Non-global address literals, `localhost` and its subdomains, and names for which `[dns] hosts`
    has only such addresses are private.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        fixed = config.dns.hosts.get(host, ())
        return not fixed or any(ip_address(address).is_global for address in fixed)
