"""Checks the config as a whole: conditions that involve several keys or files.

An issue is a value with the path of its key, so that the caller can add the line. A fatal issue
rejects the config; a warning does not. All issues are collected, so that one run of the check shows
every mistake.

Files read: every line of a `seeds_file` (its hosts define the scope), the first `TITLES_CHECKED`
lines of a `titles_file` (its host follows from `title_url`) and of a `views_file`, each
`headers_file`, and the files of secrets of notifications (`crawld/config/check_notify.py`).
"""

from __future__ import annotations

import grp
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from crawld.config.check_notify import check_notify
from crawld.config.derive import (
    ANY_HOST,
    headers_origins,
    host_delay_s,
    is_public_host,
    url_scope,
)
from crawld.config.headers import read_headers
from crawld.config.issue import Issue
from crawld.config.model import Config
from crawld.config.positions import KeyPath
from crawld.config.seeds import BadSeed, read_seeds, read_wiki_titles
from crawld.config.shared_titles import shared_titles
from crawld.config.site import SiteConfig
from crawld.config.views import read_views
from crawld.core.scope import Scope
from crawld.core.url import split_url
from crawld.core.wiki_title import cannot_be_title
from crawld.errors import ConfigError
from crawld.extras import install_command

TITLES_CHECKED = 10_000
"""Lines of a `titles_file` read by the check; the crawl reads all of them."""

MAX_SHOWN = 5
"""Issues of one kind shown per file; the others are only counted."""

MAX_SOCKET_PATH_BYTES = 107
"""`sun_path` of Linux has 108 bytes, including the final zero."""

SHORT_DELAY_S = 1.0
"""A shorter delay for a public host gives a warning, seconds."""


@dataclass(slots=True)
class SiteSeeds:
    """Summary of the seeds of one site.

    Attributes:
        origins: their origins.
        count: usable seeds.
        is_complete: whether all lines of its files were read.
    """

    origins: set[str] = field(default_factory=set)
    count: int = 0
    is_complete: bool = True

    @property
    def hosts(self) -> set[str]:
        """Their hosts."""
        return {split_url(f"{origin}/").host for origin in self.origins}


def check_config(config: Config) -> tuple[list[Issue], dict[str, SiteSeeds]]:
    """Return all issues, and a summary of the seeds of each site by its name."""
    issues = [*_check_daemon(config), *_check_names(config)]
    totals: dict[str, SiteSeeds] = {}
    if len({site.name for site in config.sites}) < len(config.sites):
        return issues, totals  # the checks below need distinct names
    owners: dict[str, str] = {}
    for index, site in enumerate(config.sites):
        total = totals[site.name] = SiteSeeds()
        issues += _check_seeds(index, site, total, owners)
        issues += _check_headers(config, index, total)
    issues += _check_titles(config)
    for index, what in shared_titles(config.sites, {key: totals[key].origins for key in totals}):
        message = f"{what}; a page is visited by the rules of the one that finds it first"
        issues.append(Issue(("site", index), message, fatal=False))
    issues += [*_check_views(config), *_check_revisits(config), *_check_languages(config)]
    issues += _check_politeness(config, totals)
    issues += _check_contact(config, totals)
    issues += check_notify(config)
    issues += _check_plugins(config)
    if not config.sites:
        issues.append(Issue((), "there is no [[site]]: nothing to mirror", fatal=False))
    return issues, totals


def _check_daemon(config: Config) -> Iterator[Issue]:
    socket, group = config.daemon.socket, config.daemon.socket_group
    if socket is not None and len(bytes(socket)) > MAX_SOCKET_PATH_BYTES:
        message = f"is longer than {MAX_SOCKET_PATH_BYTES} bytes, the limit of a socket path"
        yield Issue(("daemon", "socket"), f"daemon.socket {message}; choose a shorter one")
    if group is not None and not _group_exists(group):
        message = f"daemon.socket_group: there is no group {group!r}; create it or unset the key"
        yield Issue(("daemon", "socket_group"), message)


def _group_exists(group: str) -> bool:
    try:
        grp.getgrnam(group)
    except (KeyError, ValueError):
        return False
    return True


def _check_revisits(config: Config) -> Iterator[Issue]:
    least_s = config.schedule.min_revisit_s
    for index, site in enumerate(config.sites):
        if site.max_revisit_s is not None and site.max_revisit_s < least_s:
            message = (
                f"max_revisit_s is below [schedule] min_revisit_s ({least_s:g}), which prevails"
            )
            yield Issue(("site", index, "max_revisit_s"), message, fatal=False)


def _check_languages(config: Config) -> Iterator[Issue]:
    for index, site in enumerate(config.sites):
        if site.wanted is None or site.wanted.language is None or find_spec("py3langid"):
            continue
        hint = f"install it: {install_command('language')}"
        message = f"wanted.language needs py3langid, which is not installed; {hint}"
        yield Issue(("site", index, "wanted"), message)


def _check_names(config: Config) -> Iterator[Issue]:
    seen: set[str] = set()
    for index, site in enumerate(config.sites):
        if site.name in seen:
            path: KeyPath = ("site", index, "name")
            yield Issue(path, f"two sites are named {site.name!r}; rename one")
        seen.add(site.name)


def _check_plugins(config: Config) -> Iterator[Issue]:
    """Check names; whether a plug-in can be used is checked where it is loaded."""
    seen: set[str] = set()
    sites = {site.name for site in config.sites}
    for index, plugin in enumerate(config.plugins):
        path: KeyPath = ("plugin", index, "name")
        if plugin.name in seen:
            yield Issue(path, f"two plug-ins are named {plugin.name!r}; join their blocks")
        seen.add(plugin.name)
        for name in set(plugin.sites) - sites:
            place: KeyPath = ("plugin", index, "sites")
            yield Issue(place, f'plug-in "{plugin.name}": there is no site "{name}"', fatal=False)
    for path, name in _named_parts(config):
        plugin_name, colon, _ = name.partition(":")
        if colon and plugin_name not in seen:
            hint = f'add [[plugin]] name = "{plugin_name}"'
            yield Issue(path, f'{path[-1]} = "{name}": no such plug-in is used; {hint}')


def _named_parts(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield the keys that name a part which a plug-in may supply."""
    yield ("schedule", "policy"), config.schedule.policy
    if config.schedule.estimator is not None:
        yield ("schedule", "estimator"), config.schedule.estimator
    for index, site in enumerate(config.sites):
        yield ("site", index, "difference"), site.difference
        if site.policy is not None:
            yield ("site", index, "policy"), site.policy
    for index, rule in enumerate(config.notify):
        if rule.notifier is not None:
            yield ("notify", index, "notifier"), rule.notifier


def _check_seeds(
    index: int, site: SiteConfig, total: SiteSeeds, owners: dict[str, str]
) -> Iterator[Issue]:
    """Check the seeds of a site; `owners` has the first site of each listed seed."""
    rules = url_scope(include=site.include, exclude=site.exclude)
    yield from _check_listed(index, site, rules, total, owners)
    titles_file = site.titles_file if site.title_url is not None else None
    for key, path in (("seeds_file", site.seeds_file), ("titles_file", titles_file)):
        if path is not None:
            yield from _check_file(("site", index, key), site, rules, total)
    if not total.count:
        yield Issue(("site", index), f'site "{site.name}" has no usable seed')


def _check_listed(
    index: int, site: SiteConfig, rules: Scope, total: SiteSeeds, owners: dict[str, str]
) -> Iterator[Issue]:
    known: set[str] = set()
    others: set[str] = set()
    listed = site.model_copy(update={"seeds_file": None, "titles_file": None})
    for seed in read_seeds(listed):
        path: KeyPath = ("site", index, "seeds", seed.line)
        if isinstance(seed, BadSeed):
            yield Issue(path, f'site "{site.name}": seed {seed.reason}')
            continue
        total.count += 1
        total.origins.add(split_url(seed.url).origin)
        if reason := rules.refusal(seed.url, ANY_HOST, 0):
            message = f'site "{site.name}": seed {seed.url} is outside the site\'s scope ({reason})'
            yield Issue(path, f"{message}; fix the rule or remove the seed")
        if seed.url in known:
            yield Issue(path, f'site "{site.name}": seed {seed.url} is listed twice', fatal=False)
        known.add(seed.url)
        owner = owners.setdefault(seed.url, site.name)
        # A part of a wiki is filled by the wiki's lists: its seeds only say which wiki it is.
        if owner != site.name and not site.wiki_scoped:
            others.add(seed.url)
            message = (
                f'site "{site.name}": seed {seed.url} belongs to site "{owner}", which names it'
                " first; a page has one site, so give this site a seed of its own"
            )
            yield Issue(path, message, fatal=False)
    if others and others == known and site.seeds_file is None and site.titles_file is None:
        message = f'site "{site.name}" would stay empty: other sites name all its seeds first'
        yield Issue(("site", index, "seeds"), f"{message}; give it a seed of its own")


def _check_views(config: Config) -> Iterator[Issue]:
    """Check the first lines of files of views."""
    for index, site in enumerate(config.sites):
        path: KeyPath = ("site", index, "views_file")
        try:
            views = read_views(site, max_lines=TITLES_CHECKED, max_bad=MAX_SHOWN)
        except ConfigError as error:
            yield Issue(path, f'site "{site.name}": {error.message}')
            continue
        if views is None:
            continue
        for bad in views.bad:
            message = f"{bad.source}, line {bad.line}: {bad.reason}: {bad.text!r}"
            yield Issue(path, f'site "{site.name}": {message}', fatal=False)
        if views.bad_count > len(views.bad):
            message = f"{views.bad_count - len(views.bad)} more lines cannot be used"
            yield Issue(path, f'site "{site.name}": {site.views_file}: {message}', fatal=False)


def _check_titles(config: Config) -> Iterator[Issue]:
    """Warn of titles that no wiki can have."""
    for index, site in enumerate(config.sites):
        path: KeyPath = ("site", index, "wiki_titles" if site.wiki_titles else "titles_file")
        bad: list[str] = []
        try:
            titles = dict.fromkeys(read_wiki_titles(site))
            bad = [title for title in titles if cannot_be_title(title)]
        except ConfigError as error:
            yield Issue(path, f'site "{site.name}": {error.message}; {error.hint}')
        for title in bad[:MAX_SHOWN]:
            message = f'site "{site.name}": {title!r} cannot be the title of a wiki page; skipped'
            yield Issue(path, message, fatal=False)
        if len(bad) > MAX_SHOWN:
            message = f'site "{site.name}": {len(bad) - MAX_SHOWN} more such titles; skipped'
            yield Issue(path, message, fatal=False)


def _check_file(path: KeyPath, site: SiteConfig, rules: Scope, total: SiteSeeds) -> Iterator[Issue]:
    key = str(path[-1])
    other = {"seeds_file": "titles_file", "titles_file": "seeds_file"}[key]
    alone = site.model_copy(update={"seeds": (), other: None})
    limit = TITLES_CHECKED if key == "titles_file" else None
    bad = outside = lines = 0
    try:
        for seed in read_seeds(alone, max_lines=limit):
            lines += 1
            if isinstance(seed, BadSeed):
                bad += 1
                if bad <= MAX_SHOWN:
                    place = f"{seed.source}, line {seed.line}"
                    yield Issue(path, f"{place}: {seed.reason}; skipped", fatal=False)
                continue
            total.count += 1
            # Many lines have few origins: a slice is faster than a parsed URL.
            total.origins.add(seed.url[: seed.url.index("/", 8)])
            outside += rules.refusal(seed.url, ANY_HOST, 0) is not None
    except ConfigError as error:
        yield Issue(path, f'site "{site.name}": {error.message}; {error.hint}')
    total.is_complete &= lines != limit
    if bad > MAX_SHOWN:
        yield Issue(path, f"{key}: {bad - MAX_SHOWN} more bad lines; skipped", fatal=False)
    if outside:
        message = f"{key}: {outside} of {lines} lines are outside the site's scope"
        yield Issue(path, f"{message}; skipped", fatal=False)


def _check_headers(config: Config, index: int, seeds: SiteSeeds) -> Iterator[Issue]:
    site = config.sites[index]
    if site.headers_file is None:
        return
    path: KeyPath = ("site", index, "headers_file")
    try:
        headers = read_headers(Path(site.headers_file))
    except ConfigError as error:
        hint = f"; {error.hint}" if error.hint else ""
        yield Issue(path, f'site "{site.name}": {error.message}{hint}')
    else:
        for warning in headers.warnings:
            yield Issue(path, f'site "{site.name}": {warning}', fatal=False)
    named = seeds.origins.union(site.headers_origins)
    sent = headers_origins(config, site, named)
    if left := sorted(named - sent):
        message = f'site "{site.name}": headers_file is not sent to {left[0]}, which is unencrypted'
        hint = "use https://, or set headers_over_http = true to send it all the same"
        yield Issue(path, f"{message}; {hint}", fatal=not sent)


def _check_politeness(config: Config, totals: dict[str, SiteSeeds]) -> Iterator[Issue]:
    """Report hosts that several sites share but with different politeness."""
    claims: dict[str, tuple[SiteConfig, object]] = {}
    clashes: set[tuple[str, str]] = set()
    for index, site in enumerate(config.sites):
        politeness = _politeness(config, site)
        for host in sorted(totals[site.name].hosts.union(site.hosts)):
            first, other = claims.setdefault(host, (site, politeness))
            pair = (first.name, site.name)
            if other != politeness and pair not in clashes:
                clashes.add(pair)
                message = f'sites "{pair[0]}" and "{pair[1]}" both have {host},'
                hint = "give both the same host_delay_s, quiet_hours and timezone"
                yield Issue(("site", index), f"{message} with different politeness; {hint}")


def _politeness(config: Config, site: SiteConfig) -> object:
    general = config.politeness
    quiet = general.quiet_hours if site.quiet_hours is None else site.quiet_hours
    return host_delay_s(config, site), quiet, (site.timezone or general.timezone) if quiet else None


def _check_contact(config: Config, totals: dict[str, SiteSeeds]) -> Iterator[Issue]:
    for index, site in enumerate(config.sites):
        hosts = totals[site.name].hosts.union(site.hosts)
        public = min((host for host in hosts if is_public_host(config, host)), default=None)
        if public is None:
            continue
        if config.daemon.contact is None:
            message = f"{public} is a public host, and its operator must be able to reach you"
            hint = 'set [daemon] contact = "you@example.org" (or --contact)'
            yield Issue(("daemon",), f"{message}; {hint}")
            return
        delay_s = host_delay_s(config, site)
        if delay_s < SHORT_DELAY_S:
            message = f'site "{site.name}": {delay_s:g} s between requests to {public} is short'
            yield Issue(
                ("site", index), f"{message}; make sure that its operator agrees", fatal=False
            )
