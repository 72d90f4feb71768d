"""Compares two configs: which changed keys a reload applies, and which need a restart.

Keys are named by table: `politeness.host_delay_s`, `site.docs.max_depth`, and `site.docs` for a
site that was added or removed; `notify.NAME` and `plugin.NAME` alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from crawld.config.key import needs_restart
from crawld.config.model import Config
from crawld.config.notify import NotifyConfig
from crawld.config.plugin import PluginConfig
from crawld.config.site import SiteConfig


def runtime_changes(old: Config, new: Config) -> list[str]:
    """Return the changed keys that a running daemon can apply."""
    return [key for key, restart in _changes(old, new) if not restart]


def restart_needed(old: Config, new: Config) -> list[str]:
    """Return the changed keys that need a restart; any of them makes a reload fail."""
    return [key for key, restart in _changes(old, new) if restart]


def _changes(old: Config, new: Config) -> Iterator[tuple[str, bool]]:
    for name in Config.model_fields:
        if name not in ("sites", "notify", "plugins"):
            yield from _changed_keys(name, getattr(old, name), getattr(new, name))
    yield from _changed_blocks("site", old.sites, new.sites)
    yield from _changed_blocks("notify", old.notify, new.notify)
    if [each.name for each in old.plugins] != [each.name for each in new.plugins]:
        yield "plugin", True  # their order counts, too
    else:
        yield from _changed_blocks("plugin", old.plugins, new.plugins)


def _changed_blocks(
    table: str,
    old: Sequence[SiteConfig | NotifyConfig | PluginConfig],
    new: Sequence[SiteConfig | NotifyConfig | PluginConfig],
) -> Iterator[tuple[str, bool]]:
    before = {block.name: block for block in old}
    after = {block.name: block for block in new}
    for name in sorted(before.keys() | after.keys()):
        if name in before and name in after:
            yield from _changed_keys(f"{table}.{name}", before[name], after[name])
        else:
            yield f"{table}.{name}", False


def _changed_keys(table: str, old: BaseModel, new: BaseModel) -> Iterator[tuple[str, bool]]:
    for key, field in type(old).model_fields.items():
        if getattr(old, key) != getattr(new, key):
            yield f"{table}.{key}", needs_restart(field)
