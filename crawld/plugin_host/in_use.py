"""The plug-ins of a config, ready for use: their hooks by stage, and the parts that they supply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from crawld.config.model import Config
from crawld.plugin_host.builtin import BUILT_IN
from crawld.plugin_host.loading import PluginHost, load_plugins
from crawld.plugin_host.queue_stage import QueueStage, queue_stage
from crawld.plugin_host.response_stage import ResponseStage
from crawld.plugin_host.supplied import Supplied, check_named, supplied_by
from crawld.plugins import Estimator


@dataclass(frozen=True, slots=True)
class PluginsInUse:
    """Plug-ins and parts.

    Attributes:
        response: None: no plug-in reads responses.
    """

    host: PluginHost
    supplied: Supplied
    response: ResponseStage | None = None

    def queue_of(self, site: str) -> QueueStage | None:
        """Return the queue stage of a site; None: no plug-in is asked about its pages."""
        hooks = self.host.hooks
        return queue_stage(site, hooks("weigh_page"), hooks("admit_page"), hooks("order_new_pages"))

    def estimator(self, config: Config) -> Estimator | None:
        """Return the estimator of change rates that a config names; None: the models' own."""
        name = config.schedule.estimator
        return None if name is None else self.supplied.estimators[name]

    def check(self, config: Config) -> None:
        """Check that every part exists that a config names.

        Raises:
            ConfigError: one does not.
        """
        parts = self.supplied
        check_named("policy", config.schedule.policy, parts.policies)
        if config.schedule.estimator is not None:
            check_named("estimator", config.schedule.estimator, parts.estimators)
        for site in config.sites:
            check_named("difference", site.difference, parts.differences)
            if site.policy is not None:
                check_named("policy", site.policy, parts.policies)
        for rule in config.notify:
            if rule.notifier is not None:
                check_named("notifier", rule.notifier, parts.notifiers)


def use_plugins(config: Config, built_in: Mapping[str, object] = BUILT_IN) -> PluginsInUse:
    """Load the plug-ins of a config.

    Args:
        built_in: parts of crawld itself, with those of `BUILT_IN` at least.

    Raises:
        ConfigError: one of them cannot be used, or the config names a part that none supplies.
    """
    host = load_plugins(config.plugins, config.daemon.plugins_dir, built_in)
    readers = host.hooks("read_response")
    found = PluginsInUse(host, supplied_by(host), ResponseStage(readers) if readers else None)
    found.check(config)
    return found


@lru_cache(maxsize=1)
def no_plugins() -> PluginsInUse:
    """Return the parts of crawld itself, without a plug-in."""
    return use_plugins(Config())
