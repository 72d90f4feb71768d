"""The plug-ins of a running daemon: they are guarded, their failures logged, their cost told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import structlog

from crawld.daemon.stall_meter import StallMeter
from crawld.plugin_host.in_use import PluginsInUse
from crawld.plugin_host.loop_guard import LoopGuard
from crawld.plugin_host.plugin import Plugin
from crawld.plugin_host.process_memory import ResidentMemory

log = structlog.get_logger(__name__)


@contextmanager
def guarded(plugins: PluginsInUse, meter: StallMeter) -> Iterator[None]:
    """Guard the plug-ins while the context lasts; without a plug-in it does nothing."""
    if not plugins.host.plugins:
        yield
        return
    guard = LoopGuard(meter)
    with ExitStack() as stack:
        memory = stack.enter_context(closing(ResidentMemory()))
        for plugin in plugins.host.plugins:
            plugin.guard, plugin.memory, plugin.on_failure = guard, memory, log_failure
            log.info("plugin_used", plugin=plugin.name, origin=plugin.origin)
        stack.enter_context(guard.installed())
        yield
        for plugin in plugins.host.plugins:
            plugin.guard = plugin.memory = None


def log_failure(plugin: Plugin, hook: str, where: str, why: str) -> None:
    """Log what went wrong with a plug-in, and that it is disabled."""
    log.warning("plugin_failed", plugin=plugin.name, hook=hook, of=where, why=why)
    if plugin.disabled:
        hint = "crawlctl status shows it; correct it, then restart"
        log.error("plugin_disabled", plugin=plugin.name, why=plugin.disabled, hint=hint)
