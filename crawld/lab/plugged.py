"""Plug-ins in the laboratory: the same objects as in the daemon, loaded by the same config."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from crawld.config.load import load
from crawld.errors import OperatorError
from crawld.plugin_host.in_use import PluginsInUse, no_plugins, use_plugins


@lru_cache(maxsize=4)
def plugins_of(config: Path | None) -> PluginsInUse:
    """Return the plug-ins of a config; each process of an experiment loads them once.

    Raises:
        ConfigError: the config or a plug-in cannot be used.
    """
    return no_plugins() if config is None else use_plugins(load(config).config)


def refuse_failed(plugins: PluginsInUse) -> None:
    """Refuse the result of an experiment in which a plug-in failed: it would not be its own.

    Raises:
        OperatorError: one did.
    """
    for plugin in plugins.host.plugins:
        if plugin.failures_in_all:
            count = plugin.failures_in_all
            raise OperatorError(
                f'plug-in "{plugin.name}" failed {count} times, the last: {plugin.last_failure}',
                hint="correct it; try: crawld plugins check " + plugin.origin,
            )
