"""`crawld check-config`: check a config and print its effect."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from crawld.cli.output import printable
from crawld.config.checks import SiteSeeds
from crawld.config.derive import host_delay_s, user_agent
from crawld.config.load import LoadedConfig, load
from crawld.config.model import Config
from crawld.config.site import SiteConfig
from crawld.core.display import delay_text, plural
from crawld.errors import EXIT_OK, EXIT_OPERATOR, ConfigError

if TYPE_CHECKING:
    from crawld.cli.online_check import OnlineResult

HOSTS_SHOWN = 5


def check_config(path: Path, *, as_json: bool = False, online: bool = False) -> int:
    """Check a config and print its effect; return 0 if it is valid, else 2.

    Args:
        online: whether wikis are asked about titles, categories and prefixes; 2 if one cannot be.
    """
    try:
        loaded = load(path)
        _load_plugins(loaded.config)
    except ConfigError as error:
        if as_json:
            print(json.dumps({"valid": False, "errors": error.message.splitlines()}))
        else:
            print(printable(str(error)), file=sys.stderr)
        return EXIT_OPERATOR
    if online:
        from crawld.cli.online_check import check_online

        results = check_online(loaded)
    else:
        results = []
    if as_json:
        more = {"online": [asdict(each) for each in results]} if online else {}
        print(json.dumps(config_summary(loaded) | more, ensure_ascii=False, indent=2))
    else:
        _print_summary(loaded)
        for result in results:
            _print_result(result)
    return EXIT_OPERATOR if any(each.failure for each in results) else EXIT_OK


def _load_plugins(config: Config) -> None:
    """Load the plug-ins that a config names, as the daemon does at its start.

    Raises:
        ConfigError: one cannot be used, or the config names a part that none supplies.
    """
    if not config.plugins:
        return
    from crawld.daemon.daemon_parts import DAEMON_PARTS
    from crawld.plugin_host.builtin import BUILT_IN
    from crawld.plugin_host.in_use import use_plugins

    use_plugins(config, {**BUILT_IN, **DAEMON_PARTS})


def _print_result(result: OnlineResult) -> None:
    """Print what a wiki says about the titles of a site, every problem by name."""
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in result.titles.items())
    found = result.failure or ": ".join(filter(None, (result.software, counts)))
    print(printable(f"online      {result.site}: {found}"))
    for problem in result.problems:
        print(printable(f"warning     {result.site}: {problem}"))


def config_summary(loaded: LoadedConfig) -> dict[str, object]:
    """Return the effect of a config as JSON types."""
    config = loaded.config
    return {
        "valid": True,
        "user_agent": user_agent(config),
        "db": str(config.daemon.db),
        "sites": [_site_summary(config, site, loaded.seeds[site.name]) for site in config.sites],
        "notify": [{"name": rule.name, "receiver": rule.receiver} for rule in config.notify],
        "plugins": [plugin.name for plugin in config.plugins],
        "warnings": list(loaded.warnings),
    }


def _site_summary(config: Config, site: SiteConfig, seeds: SiteSeeds) -> dict[str, object]:
    return {
        "name": site.name,
        "seeds": seeds.count,
        "seeds_complete": seeds.is_complete,
        "hosts": sorted(seeds.hosts.union(site.hosts)),
        "host_delay_s": host_delay_s(config, site),
        "max_depth": site.max_depth,
        "max_pages": site.max_pages,
    }


def _print_summary(loaded: LoadedConfig) -> None:
    config = loaded.config
    print(f"user agent  {user_agent(config)}")
    print(f"database    {config.daemon.db}")
    for site in config.sites:
        seeds = loaded.seeds[site.name]
        hosts = sorted(seeds.hosts.union(site.hosts))
        more = f" and {len(hosts) - HOSTS_SHOWN} more" if len(hosts) > HOSTS_SHOWN else ""
        at_least = "" if seeds.is_complete else "at least "
        print(f"site        {site.name}: {at_least}{plural(seeds.count, 'seed')} on", end=" ")
        delay = delay_text(host_delay_s(config, site))
        print(f"{', '.join(hosts[:HOSTS_SHOWN])}{more}, {delay} apart")
    for rule in config.notify:
        what = f"{', '.join(rule.kinds)} pages of {', '.join(rule.sites) or 'all sites'}"
        print(f"notify      {rule.name}: {rule.receiver}, {what}, {rule.when}")
    for plugin in config.plugins:
        print(f"plug-in     {plugin.name}: not loaded here; crawld plugins check -c FILE tries it")
    for warning in loaded.warnings:
        print(f"warning     {warning}")
    print("the config is valid")
