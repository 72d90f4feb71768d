"""`crawld check-config`: check a config and print its effect."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from crawld.cli.output import printable
from crawld.config.checks import SiteSeeds
from crawld.config.derive import host_delay_s, user_agent
from crawld.config.load import LoadedConfig, load
from crawld.config.model import Config
from crawld.config.site import SiteConfig
from crawld.core.display import plural
from crawld.errors import EXIT_OK, EXIT_OPERATOR, ConfigError

HOSTS_SHOWN = 5


def check_config(path: Path, *, as_json: bool = False) -> int:
    """Check a config and print its effect; return 0 if it is valid, else 2."""
    try:
        loaded = load(path)
    except ConfigError as error:
        if as_json:
            print(json.dumps({"valid": False, "errors": error.message.splitlines()}))
        else:
            print(printable(str(error)), file=sys.stderr)
        return EXIT_OPERATOR
    if as_json:
        print(json.dumps(config_summary(loaded), ensure_ascii=False, indent=2))
    else:
        _print_summary(loaded)
    return EXIT_OK


def config_summary(loaded: LoadedConfig) -> dict[str, object]:
    """Return the effect of a config as JSON types."""
    config = loaded.config
    return {
        "valid": True,
        "user_agent": user_agent(config),
        "db": str(config.daemon.db),
        "sites": [_site_summary(config, site, loaded.seeds[site.name]) for site in config.sites],
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
        print(f"{', '.join(hosts[:HOSTS_SHOWN])}{more}, {host_delay_s(config, site):g} s apart")
    for warning in loaded.warnings:
        print(f"warning     {warning}")
    print("the config is valid")
