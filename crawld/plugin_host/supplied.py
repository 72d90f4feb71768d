"""Parts that plug-ins supply by name: policies, estimators, differences, exporters, notifiers.

Parts of crawld itself have plain names, those of a plug-in have its name before them:
`index`, `my_plugin:oldest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crawld.config.values import is_part_name
from crawld.core.change.model import PageModel
from crawld.errors import ConfigError
from crawld.plugin_host.guarded_policy import GuardedPolicy
from crawld.plugin_host.loading import PluginHost, is_built_in
from crawld.plugin_host.plugin import Failed, Hook, Plugin
from crawld.plugins import Difference, Exporter, Notifier, PolicyFactory


@dataclass(frozen=True, slots=True)
class GuardedEstimator:
    """An estimator of a plug-in; without a usable answer the model's own rate counts."""

    hook: Hook
    function: Callable[[PageModel], object]

    def __call__(self, model: PageModel) -> float:
        """Return the rate of change of a page, per second, > 0."""
        if self.hook.plugin.disabled:
            return model.rate
        found = self.hook.run("", self.function, model)
        if isinstance(found, Failed):
            return model.rate
        if not (isinstance(found, float | int) and 0.0 < found <= 1e6):
            self.hook.reject("", f"returned {found!r:.60}, not a rate per second above 0")
            return model.rate
        return float(found)


@dataclass(frozen=True, slots=True)
class GuardedDifference:
    """A difference of a plug-in; without a usable answer crawld's own counts."""

    hook: Hook
    function: Difference
    own: Difference

    def __call__(self, a: str | bytes, b: str | bytes) -> float:
        """Return how much two texts differ, [0, 1]."""
        if self.hook.plugin.disabled:
            return self.own(a, b)
        found = self.hook.run("", self.function, a, b)
        if isinstance(found, Failed):
            return self.own(a, b)
        if not (isinstance(found, float | int) and 0.0 <= found <= 1.0):
            self.hook.reject("", f"returned {found!r:.60}, not a share from 0 to 1")
            return self.own(a, b)
        return float(found)


@dataclass(frozen=True, slots=True)
class Supplied:
    """All parts by name."""

    policies: Mapping[str, PolicyFactory] = field(default_factory=dict)
    estimators: Mapping[str, Callable[[PageModel], float]] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict)
    exporters: Mapping[str, tuple[Hook, Exporter]] = field(default_factory=dict)
    notifiers: Mapping[str, tuple[Hook, Notifier]] = field(default_factory=dict)


def supplied_by(host: PluginHost) -> Supplied:
    """Ask all plug-ins for their parts.

    Raises:
        ConfigError: a plug-in's answer is no table of parts.
    """
    policies = _parts(host, "policies")
    differences = _parts(host, "differences")
    own = differences["rsync"][1]
    return Supplied(
        policies={
            name: factory if hook.plugin is host.built_in else _guarded(hook, factory)
            for name, (hook, factory) in policies.items()
        },
        estimators={
            name: GuardedEstimator(hook, function)
            for name, (hook, function) in _parts(host, "estimators").items()
        },
        differences={
            name: measure if hook.plugin is host.built_in else GuardedDifference(hook, measure, own)
            for name, (hook, measure) in differences.items()
        },
        exporters=_parts(host, "exporters"),
        notifiers=_parts(host, "notifiers"),
    )


def _guarded(hook: Hook, factory: PolicyFactory) -> PolicyFactory:
    return lambda: GuardedPolicy(hook, factory)


def _parts(host: PluginHost, kind: str) -> dict[str, tuple[Hook, Any]]:
    """Return the parts of one kind by name, each with the figures of its calls."""
    found: dict[str, tuple[Hook, Any]] = {}
    plugins: dict[str, Plugin] = {each.name: each for each in host.plugins}
    for plugin_name, function in host.implementations(kind):
        plugin = host.built_in if is_built_in(plugin_name) else plugins[plugin_name]
        for name, part in _asked(plugin, kind, function).items():
            whole = name if plugin is host.built_in else f"{plugin.name}:{name}"
            found[whole] = (Hook(plugin, f"{kind} {name}"), part)
            plugin.hooks[f"{kind} {name}"] = found[whole][0]
    return found


def _asked(plugin: Plugin, kind: str, function: Callable[..., object]) -> Mapping[str, Any]:
    hint = f"return a dict of name to function from {kind}()"
    try:
        answer = function()
    except (Exception, SystemExit) as error:
        why = f'plug-in "{plugin.name}": {kind}() failed: {type(error).__name__}: {error}'
        raise ConfigError(why, hint="correct it, or remove its [[plugin]] block") from error
    if not isinstance(answer, Mapping):
        raise ConfigError(f'plug-in "{plugin.name}": {kind}() returned no table', hint=hint)
    for name, part in answer.items():
        if not (isinstance(name, str) and is_part_name(name) and callable(part)):
            why = f'plug-in "{plugin.name}": {kind}() has {name!r}: {part!r:.60}'
            raise ConfigError(why, hint=hint)
    return answer


def check_named(kind: str, name: str, known: Mapping[str, object]) -> None:
    """Check that a part exists that the config names.

    Raises:
        ConfigError: it does not.
    """
    if name not in known:
        names = ", ".join(sorted(known))
        raise ConfigError(f'there is no {kind} "{name}"', hint=f"known are: {names}")
